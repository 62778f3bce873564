/* site.c - see site.h
 *
 * The programs of one job run one after the other, as SlurmUser, in a process group of their own that is killed when one has ended or its time is over. Jobs' run side by
 * side, at most RUNNING_MAX of them; the rest waits. A program that cannot be run counts as failed. A job's EpilogSlurmctld ends its
 * PrologSlurmctld, should that still run. The core hears of an end only while it may change: while the store fails, later. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "ctld/replies.h"
#include "ctld/site.h"
#include "ctld/turn.h"
#include "model/scriptenv.h"

#define RUNNING_MAX 128
#define HELD_MS 200

struct site {
	struct site *next;
	struct ctld *d;
	uint32_t job_id, restarts;
	bool epilog;
	struct envlist env;
	char **path;                   /* of the configuration when it was begun */
	size_t n, at;
	int status;
	uv_process_t process;
	uv_timer_t timer;              /* its time limit; then, when over, the next try to tell the core */
};
static struct { struct site *waiting, *all; size_t running; } sites;

static const char *name_of(const struct site *s) { return s->epilog ? "EpilogSlurmctld" : "PrologSlurmctld"; }

static void site_free(struct site *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->path[i]);
	free(s->path);
	envlist_fini(&s->env);
	free(s);
}

static void unlink_from(struct site **at, const struct site *s)
{
	for (; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			return;
		}
}

static void program_next(struct site *s);

static void sites_go(void)
{
	while (sites.waiting && sites.running < RUNNING_MAX) {
		struct site *s = sites.waiting;
		sites.waiting = s->next;
		s->next = sites.all;
		sites.all = s;
		sites.running++;
		program_next(s);
	}
}

static void on_timer_closed(uv_handle_t *h)
{
	site_free(h->data);
	sites.running--;
	sites_go();
}

/* All have ended, or one has failed. */
static void tell_core(uv_timer_t *timer)
{
	struct site *s = timer->data;
	struct core_event ev = { .type = EV_SCRIPT_DONE };
	if (s->d->stopping)
		return;
	if (!turn_open_for_changes(s->d)) {
		uv_timer_start(timer, tell_core, HELD_MS, 0);
		return;
	}
	ev.script.job_id = s->job_id;
	ev.script.restarts = s->restarts;
	ev.script.epilog = s->epilog;
	ev.script.status = s->status;
	unlink_from(&sites.all, s);
	uv_close((uv_handle_t *)timer, on_timer_closed);
	turn_step(s->d, &ev);
}

static void on_late(uv_timer_t *timer)
{
	struct site *s = timer->data;
	log_error("%s of JobId=%u did not end in time and is killed: %s", name_of(s), s->job_id, s->path[s->at]);
	(void)kill(-s->process.pid, SIGKILL);
}

static void on_process_closed(uv_handle_t *h)
{
	struct site *s = h->data;
	s->at++;
	program_next(s);
}

static void on_end(uv_process_t *p, int64_t status, int signal)
{
	struct site *s = p->data;
	s->status = signal ? signal : (int)(status & 255) << 8;
	log_flag(SCRIPT, "%s of JobId=%u: %s ended with status %d:%d", name_of(s), s->job_id, s->path[s->at], s->status >> 8 & 255, s->status & 127);
	if (s->status)
		log_error("%s JobId=%u %s exit status %d:%d", name_of(s), s->job_id, s->path[s->at], s->status >> 8 & 255, s->status & 127);
	(void)kill(-p->pid, SIGKILL);  /* what it left behind in its group */
	uv_timer_stop(&s->timer);
	uv_close((uv_handle_t *)p, on_process_closed);
}

static uint64_t limit_ms(const struct site *s)
{
	enum conf_key key = s->epilog ? CONF_EpilogTimeout : CONF_PrologTimeout;
	uint64_t sec = conf_num(s->d->conf, conf_is_set(s->d->conf, key) ? key : CONF_PrologEpilogTimeout);
	return sec >= 65534 ? 0 : sec * 1000;
}

static void program_next(struct site *s)
{
	if (s->status || s->at == s->n) {
		uv_timer_start(&s->timer, tell_core, 0, 0);
		return;
	}
	char *argv[] = { s->path[s->at], NULL };
	uv_stdio_container_t io[3] = { { .flags = UV_IGNORE }, { .flags = UV_IGNORE }, { .flags = UV_IGNORE } };
	uv_process_options_t o = { .file = s->path[s->at], .args = argv, .env = s->env.var, .exit_cb = on_end, .stdio = io, .stdio_count = 3, .cwd = "/",
				   .flags = UV_PROCESS_DETACHED };
	s->process.data = s;
	log_flag(SCRIPT, "%s of JobId=%u: running %s", name_of(s), s->job_id, s->path[s->at]);
	int rc = uv_spawn(s->d->loop, &s->process, &o);
	if (rc) {
		log_error("%s=%s cannot be run: %s", name_of(s), s->path[s->at], uv_strerror(rc));
		s->status = 127 << 8;
		uv_close((uv_handle_t *)&s->process, on_process_closed);
		return;
	}
	if (limit_ms(s))
		uv_timer_start(&s->timer, on_late, limit_ms(s), 0);
}

static void prolog_kill(const struct site *epilog)
{
	for (struct site *s = sites.all; s; s = s->next)
		if (s->job_id == epilog->job_id && !s->epilog && uv_is_active((uv_handle_t *)&s->process))
			(void)kill(-s->process.pid, SIGKILL);
}

static void site_post(struct ctld *d, void *arg)
{
	struct site *s = arg, **at = &sites.waiting;
	if (d->stopping) {
		site_free(s);
		return;
	}
	if (s->epilog)
		prolog_kill(s);
	uv_timer_init(d->loop, &s->timer);
	s->timer.data = s;
	while (*at)
		at = &(*at)->next;
	*at = s;
	sites_go();
}

void site_run(struct ctld *d, const struct core_effect *e)
{
	const struct core_job *j = core_job_find(d->core, e->job_id);
	Pb__JobRecord *r = j ? reply_record(d, j) : NULL;
	const char *const *list;
	if (!r)
		return;
	struct site *s = xcalloc(1, sizeof *s);
	*s = (struct site){ .d = d, .job_id = e->job_id, .restarts = e->value, .epilog = e->epilog };
	s->n = conf_list(d->conf, e->epilog ? CONF_EpilogSlurmctld : CONF_PrologSlurmctld, &list);
	s->path = xcalloc(s->n + 1, sizeof *s->path);
	for (size_t i = 0; i < s->n; i++)
		s->path[i] = xstrdup(list[i]);
	r->restarts = e->value;
	envlist_set(&s->env, "PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
	envlist_set(&s->env, "SLURM_CLUSTER_NAME", conf_str(d->conf, CONF_ClusterName));
	envlist_set(&s->env, "SLURM_CONF", conf_path(d->conf));
	envlist_set(&s->env, "SLURM_SCRIPT_CONTEXT", e->epilog ? "epilog_slurmctld" : "prolog_slurmctld");
	scriptenv_job(&s->env, r, e->epilog);
	scriptenv_names(&s->env, r);
	pb__job_record__free_unpacked(r, NULL);
	turn_after(d, site_post, s);
}

void site_stop(void)
{
	for (struct site *s = sites.all; s; s = s->next)
		if (uv_is_active((uv_handle_t *)&s->process))
			(void)kill(-s->process.pid, SIGKILL);
}
