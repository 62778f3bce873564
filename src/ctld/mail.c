/* mail.c - see mail.h
 *
 * MailProg gets -s, the subject and the address as words of their own (no shell sees them) and the job in its environment. At most RUNNING_MAX run
 * at a time; at most WAITING_MAX wait, then mails are dropped, which is logged once. An address is never an option: it may not begin with '-'. */
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/log.h"
#include "ctld/mail.h"
#include "ctld/replies.h"
#include "ctld/turn.h"
#include "model/states.h"
#include "model/timespec.h"

#define RUNNING_MAX 8
#define WAITING_MAX 2000

struct letter { struct letter *next; struct ctld *d; char *subject, *to; char **env; size_t env_n, env_cap; };
static struct { struct letter *first, **last; size_t waiting, running, dropped; bool said; } box;

static void letter_free(struct letter *l)
{
	for (size_t i = 0; i < l->env_n; i++)
		free(l->env[i]);
	free(l->env);
	free(l->subject);
	free(l->to);
	free(l);
}

static void letters_go(void);

/* NULL ends the list. */
static void env_put(struct letter *l, char *word)
{
	l->env = xgrow(l->env, &l->env_cap, l->env_n + 1, sizeof *l->env);
	l->env[l->env_n] = word;
	l->env_n += word != NULL;
}

#define ENV(name, fmt, ...) env_put(l, xasprintf("SLURM_" name "=" fmt, __VA_ARGS__))
static void env_text(struct letter *l, const char *name, const char *value)
{
	if (value && *value)
		env_put(l, xasprintf("SLURM_%s=%s", name, value));
}

static void env_times(struct letter *l, const Pb__JobRecord *r, const char *type)
{
	char text[32];
	uint64_t now = ctld_now_ms() / 1000, until = job_state_is_final(r->state) && r->end_time ? r->end_time : now;
	ENV("JOB_START_TIME", "%llu", (unsigned long long)r->start_time);
	ENV("JOB_END_TIME", "%llu", (unsigned long long)r->end_time);
	if (!strcmp(type, "Began")) {
		timespec_format(r->eligible_time && r->start_time > r->eligible_time ? (uint32_t)(r->start_time - r->eligible_time) : 0, text, sizeof text);
		ENV("JOB_QUEUED_TIME", "%s", text);
		return;
	}
	timespec_format(r->start_time && until > r->start_time ? (uint32_t)(until - r->start_time) : 0, text, sizeof text);
	ENV("JOB_RUN_TIME", "%s", text);
	if (!strcmp(type, "Ended") || !strcmp(type, "Failed")) {
		uint32_t status = r->exit_status;
		ENV("JOB_EXIT_CODE", "%u", status);
		ENV("JOB_EXIT_CODE2", "%u:%u", status >> 8 & 255, status & 127);
		ENV("JOB_EXIT_CODE_MAX", "%u", status >> 8 & 255);
		ENV("JOB_DERIVED_EC", "%u", r->derived_status);
		if (status & 127)
			ENV("JOB_TERM_SIGNAL_MAX", "%u", status & 127);
	}
}

static void env_fill(struct letter *l, const struct ctld *d, const Pb__JobRecord *r, const char *type)
{
	const Pb__JobDesc *j = r->desc;
	env_put(l, xstrdup("PATH=/usr/bin:/bin:/usr/sbin:/sbin"));
	env_text(l, "CLUSTER_NAME", conf_str(d->conf, CONF_ClusterName));
	env_text(l, "CONF", conf_path(d->conf));
	ENV("JOB_ID", "%u", r->job_id);
	ENV("JOBID", "%u", r->job_id);
	if (r->has_array_job_id)
		ENV("ARRAY_JOB_ID", "%u", r->array_job_id);
	if (r->has_array_task_id)
		ENV("ARRAY_TASK_ID", "%u", r->array_task_id);
	ENV("JOB_UID", "%u", r->uid);
	ENV("JOB_GID", "%u", r->gid);
	env_text(l, "JOB_USER", r->user);
	env_text(l, "JOB_GROUP", r->group);
	env_text(l, "JOB_NAME", j->name);
	env_text(l, "JOB_ACCOUNT", j->account);
	env_text(l, "JOB_QOS", j->qos ? j->qos : "normal");
	env_text(l, "JOB_PARTITION", r->partition ? r->partition : j->partition);
	env_text(l, "JOB_COMMENT", j->comment);
	env_text(l, "JOB_WORK_DIR", j->work_dir);
	env_text(l, "JOB_STDIN", j->std_in);
	env_text(l, "JOB_STDOUT", j->std_out);
	env_text(l, "JOB_STDERR", j->std_err);
	env_text(l, "JOB_SLUID", r->sluid);
	env_text(l, "JOB_NODELIST", r->alloc ? r->alloc->nodes : "(null)");
	ENV("JOB_NUM_NODES", "%u", r->num_nodes);
	ENV("JOB_RESTART_COUNT", "%u", r->restarts);
	env_text(l, "JOB_STATE", job_state_name(r->state, 0));
	env_text(l, "JOB_MAIL_TYPE", type);
	env_times(l, r, type);
	env_put(l, NULL);
}

static void on_close(uv_handle_t *h)
{
	letter_free(h->data);
	free(h);
	box.running--;
	letters_go();
}

static void on_exit_(uv_process_t *p, int64_t status, int signal)
{
	struct letter *l = p->data;
	if (status || signal)
		log_error("MailProg ended with %s %lld for \"%s\"", signal ? "signal" : "status", signal ? (long long)signal : (long long)status, l->subject);
	uv_close((uv_handle_t *)p, on_close);
}

static void letter_send(struct letter *l)
{
	const char *program = conf_str(l->d->conf, CONF_MailProg);
	char *argv[] = { (char *)program, (char *)"-s", l->subject, l->to, NULL };
	uv_stdio_container_t io[3] = { { .flags = UV_IGNORE }, { .flags = UV_IGNORE }, { .flags = UV_IGNORE } };
	uv_process_options_t o = { .file = program, .args = argv, .env = l->env, .exit_cb = on_exit_, .stdio = io, .stdio_count = 3, .cwd = "/" };
	uv_process_t *p = xcalloc(1, sizeof *p);
	p->data = l;
	box.running++;
	int rc = uv_spawn(l->d->loop, p, &o);
	if (!rc)
		return;
	if (!box.said)
		log_error("MailProg=%s cannot be run: %s; no mail is sent", program, uv_strerror(rc));
	box.said = true;
	uv_close((uv_handle_t *)p, on_close);
}

static void letters_go(void)
{
	while (box.first && box.running < RUNNING_MAX) {
		struct letter *l = box.first;
		box.first = l->next;
		box.waiting--;
		letter_send(l);
	}
}

static void letter_post(struct ctld *d, void *arg)
{
	struct letter *l = arg;
	if (d->stopping) {
		letter_free(l);
		return;
	}
	if (box.waiting >= WAITING_MAX) {
		if (!box.dropped++)
			log_error("more than %d mails wait for MailProg: further ones are dropped", WAITING_MAX);
		letter_free(l);
		return;
	}
	if (!box.first)
		box.last = &box.first;
	*box.last = l;
	box.last = &l->next;
	box.waiting++;
	letters_go();
}

/* The address: --mail-user or the job's user, with MailDomain where it has none. NULL: it would be an option of MailProg, or there is none. */
static char *address(const struct ctld *d, const Pb__JobRecord *r)
{
	const char *to = r->desc->mail_user && *r->desc->mail_user ? r->desc->mail_user : r->user, *domain = conf_str(d->conf, CONF_MailDomain);
	if (!to || !*to || *to == '-')
		return NULL;
	return domain && *domain && !strchr(to, '@') ? xasprintf("%s@%s", to, domain) : xstrdup(to);
}

void mail_add(struct ctld *d, const struct core_effect *e)
{
	const struct core_job *j = core_job_find(d->core, e->job_id);
	const char *program = conf_str(d->conf, CONF_MailProg);
	Pb__JobRecord *r = j && program && *program ? reply_record(d, j) : NULL;
	if (!r)
		return;
	char *to = r->desc ? address(d, r) : NULL;
	if (!to) {
		log_info("job %u: no mail: \"%s\" is no address", r->job_id, r->desc && r->desc->mail_user ? r->desc->mail_user : "");
		pb__job_record__free_unpacked(r, NULL);
		return;
	}
	struct letter *l = xcalloc(1, sizeof *l);
	l->d = d;
	l->subject = xstrdup(e->text);
	l->to = to;
	env_fill(l, d, r, e->mail_type);
	pb__job_record__free_unpacked(r, NULL);
	turn_after(d, letter_post, l);
}
