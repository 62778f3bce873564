/* scontrol_local.c - keywords about the host scontrol runs on: listjobs, liststeps, listpids, getent, pidinfo, show slurmd
 *
 * The slurmd of this host is asked, not slurmctld: they work while slurmctld is down. Which node the host is: the name given, else SLURMD_NODENAME
 * (inside a job), else the node whose name or NodeHostname is the host's. */
#include <ctype.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/json.h"
#include "cli/scontrol.h"
#include "model/stepid.h"
#include "proto/agent.pb-c.h"

#define LOCAL_MS 10000

struct local { struct conf *conf; const char *node; struct wire_client *wire; Pb__NodeInfoRsp *info; };

static void local_close(struct local *l)
{
	if (l->info)
		pb__node_info_rsp__free_unpacked(l->info, NULL);
	wire_client_close(l->wire);
	if (l->conf)
		conf_destroy(l->conf);
}

static const Pb__NodeRecord *node_here(const struct conf *conf, const char *name, struct error *err)
{
	Pb__NodeRecord *const *node;
	char host[256] = "";
	size_t n = conf_nodes(conf, &node);
	if (!name)
		name = getenv("SLURMD_NODENAME");
	if (!name && !gethostname(host, sizeof host - 1))
		host[strcspn(host, ".")] = 0;
	for (size_t i = 0; i < n; i++)
		if (name ? !strcmp(node[i]->name, name) : !strcmp(node[i]->name, host) || (node[i]->hostname && !strcmp(node[i]->hostname, host)))
			return node[i];
	if (name)
		error_set(err, ESLURM_INVALID_NODE_NAME, "node %s is not known: %s has no NodeName line for it", name, conf_path(conf));
	else
		error_set(err, ESLURM_INVALID_NODE_NAME, "this host (%s) is no node of %s: give a node's name after the keyword", host, conf_path(conf));
	return NULL;
}

/* By job; batch and extern before the numbered ones. */
static int step_order(const void *a, const void *b)
{
	const Pb__NodeStep *p = *(const Pb__NodeStep *const *)a, *q = *(const Pb__NodeStep *const *)b;
	bool p_word = stepid_word(p->step_id) != NULL, q_word = stepid_word(q->step_id) != NULL;
	if (p->job_id != q->job_id)
		return p->job_id < q->job_id ? -1 : 1;
	return p_word != q_word ? q_word - p_word : p->step_id < q->step_id ? -1 : p->step_id > q->step_id;
}

/* What runs on the node. false: it was said why not. */
static bool local_open(struct scontrol *s, const char *name, struct local *l)
{
	Pb__Empty req = PB__EMPTY__INIT;
	struct error err = { 0 };
	ProtobufCMessage *msg = NULL;
	*l = (struct local){ 0 };
	const Pb__NodeRecord *node = conf_load(NULL, &l->conf, &err) < 0 ? NULL : node_here(l->conf, name, &err);
	if (!node) {
		scontrol_fail(s, "scontrol: error: %s", err.line);
		local_close(l);
		return false;
	}
	l->node = node->name;
	int rc = client_node_open(scontrol_client(s), node, LOCAL_MS, &l->wire, &err);
	if (!rc)
		rc = wire_call(l->wire, RPC_D_INFO, &req.base, LOCAL_MS, &msg, &err);
	if (rc < 0) {
		scontrol_fail(s, "scontrol: error: the slurmd of node %s at %s:%u does not answer: %s", l->node, client_node_addr(node), node->port, err.line[0] ? err.line : error_text(rc));
		local_close(l);
		return false;
	}
	l->info = (Pb__NodeInfoRsp *)msg;
	qsort(l->info->step, l->info->n_step, sizeof *l->info->step, step_order);
	return true;
}

/* The processes of a step; NULL: it has just ended. */
static Pb__StatRsp *step_pids(const struct local *l, const Pb__NodeStep *step)
{
	Pb__StatReq req = PB__STAT_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	req.job_id = step->job_id;
	req.step_id = step->step_id;
	req.has_only_pids = req.only_pids = true;
	if (wire_call(l->wire, RPC_D_STAT, &req.base, LOCAL_MS, &msg, NULL) < 0)
		return NULL;
	Pb__StatRsp *rsp = (Pb__StatRsp *)msg;
	if (!rsp->code)
		return rsp;
	pb__stat_rsp__free_unpacked(rsp, NULL);
	return NULL;
}

/* --- text or JSON ----------------------------------------------------------------------------------------- */

struct list { struct scontrol *s; struct str out; struct json j; bool json; };

static void list_begin(struct list *l, struct scontrol *s, const char *name)
{
	*l = (struct list){ .s = s, .json = s->json || s->yaml };
	if (l->json) {
		json_init(&l->j, &l->out, s->yaml != NULL);
		json_open(&l->j, NULL, '{');
		json_open(&l->j, name, '[');
	}
}

static void list_end(struct list *l)
{
	if (l->json) {
		json_close(&l->j);
		json_end(&l->j, l->s->argv, l->s->argc);
	}
	out_flush(&l->out);
	str_fini(&l->out);
}

static bool one_node(struct scontrol *s, int argc, char **argv)
{
	if (argc > 2)
		scontrol_fail(s, "too many arguments for keyword:%s", argv[0]);
	return argc <= 2;
}

static bool job_seen(const Pb__NodeInfoRsp *info, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (info->step[i]->job_id == info->step[at]->job_id)
			return true;
	return false;
}

static void list_steps(struct scontrol *s, int argc, char **argv, bool jobs)
{
	struct local l;
	struct list out;
	if (!one_node(s, argc, argv) || !local_open(s, argc > 1 ? argv[1] : NULL, &l))
		return;
	if (!l.info->n_step && !s->json && !s->yaml) {
		scontrol_fail(s, "No slurmstepd's found on this node");
		local_close(&l);
		return;
	}
	list_begin(&out, s, jobs ? "jobs" : "steps");
	if (!out.json)
		str_add(&out.out, jobs ? "JOBID\n" : "JOBID    STEPID  \n");
	for (size_t i = 0; i < l.info->n_step; i++) {
		const Pb__NodeStep *step = l.info->step[i];
		char word[32];
		stepid_text(step->step_id, word, sizeof word);
		if (jobs && job_seen(l.info, i))
			continue;
		if (out.json) {
			json_open(&out.j, NULL, '{');
			json_u64(&out.j, "job_id", step->job_id);
			if (!jobs)
				json_text(&out.j, "step_id", word);
			json_close(&out.j);
		} else if (jobs) {
			str_addf(&out.out, "%-8u\n", step->job_id);
		} else {
			str_addf(&out.out, "%-8u %-8s\n", step->job_id, word);
		}
	}
	list_end(&out);
	local_close(&l);
}
void scontrol_listjobs(struct scontrol *s, int argc, char **argv) { list_steps(s, argc, argv, true); }
void scontrol_liststeps(struct scontrol *s, int argc, char **argv) { list_steps(s, argc, argv, false); }

/* --- listpids --------------------------------------------------------------------------------------------- */

static void pid_put(struct list *out, const Pb__NodeStep *step, const Pb__StatRsp *stat, uint32_t pid)
{
	const Pb__StepTask *task = NULL;
	char word[32], local[16] = "-", rank[16] = "-";
	stepid_text(step->step_id, word, sizeof word);
	for (size_t i = 0; i < stat->n_task; i++)
		if (stat->task[i]->pid == pid)
			task = stat->task[i];
	if (out->json) {
		json_open(&out->j, NULL, '{');
		json_num(&out->j, "global_task_id", task != NULL, false, task ? task->rank : 0);
		json_num(&out->j, "local_task_id", task != NULL, false, task ? task->local : 0);
		json_u64(&out->j, "job_id", step->job_id);
		json_i64(&out->j, "pid", (int32_t)pid);
		json_text(&out->j, "step_id", word);
		json_close(&out->j);
		return;
	}
	if (task) {
		snprintf(local, sizeof local, "%u", task->local);
		snprintf(rank, sizeof rank, "%u", task->rank);
	}
	str_addf(&out->out, "%-8d %-8u %-8s %-7s %-8s \n", (int)pid, step->job_id, word, local, rank);
}

/* "5", "5.0", "5.batch", a SLUID, "*". `typed` is what messages name. */
struct wanted { const char *typed; bool all, step, any; uint32_t job_id, step_id; };

/* The job of a SLUID, which only slurmctld knows. */
static bool sluid_job(struct scontrol *s, const char *sluid, uint32_t *ret)
{
	Pb__StepListReq req = PB__STEP_LIST_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	bool found = false;
	if (client_call(scontrol_client(s), RPC_STEP_LIST, &req.base, 0, &msg, NULL) < 0)
		return false;
	const Pb__StepListRsp *rsp = (const Pb__StepListRsp *)msg;
	for (size_t i = 0; !found && i < rsp->n_step; i++)
		if (rsp->step[i]->sluid && !strcmp(rsp->step[i]->sluid, sluid)) {
			*ret = rsp->step[i]->job_id;
			found = true;
		}
	protobuf_c_message_free_unpacked(msg, NULL);
	return found;
}

static bool wanted_parse(struct scontrol *s, const char *text, struct wanted *w)
{
	unsigned long long id = 0;
	*w = (struct wanted){ .typed = text, .all = !strcmp(text, "*") };
	if (w->all)
		return true;
	char *job = xstrdup(text), *step = strchr(job, '.');
	if (step)
		*step++ = 0;
	bool good = *job == 's' && strlen(job) == 14 ? sluid_job(s, job, &w->job_id) : str_to_u64(job, 1, UINT32_MAX, &id) == 0;
	if (id)
		w->job_id = (uint32_t)id;
	w->step = step != NULL;
	good = good && (!step || stepid_of_word(step, &w->step_id) || str_to_u64(step, 0, STEP_ID_INTERACTIVE - 1, &id) == 0);
	if (good && step && !stepid_of_word(step, &w->step_id))
		w->step_id = (uint32_t)id;
	free(job);
	if (!good)
		scontrol_fail(s, "\"%s\" does not look like a jobid", text);
	return good;
}

static void pids_missing(struct scontrol *s, const struct wanted *w, const struct local *l)
{
	if (w->all)
		scontrol_fail(s, "No job steps exist on this node.");
	else
		scontrol_fail(s, "%s=%s does not exist on node %s.", w->step ? "StepId" : "JobId", w->typed, l->node);
}

void scontrol_listpids(struct scontrol *s, int argc, char **argv)
{
	struct local l;
	struct list out;
	struct wanted w;
	if (argc > 3)
		scontrol_fail(s, "too many arguments for keyword:%s", argv[0]);
	if (argc > 3 || !wanted_parse(s, argc > 1 ? argv[1] : "*", &w) || !local_open(s, argc > 2 ? argv[2] : NULL, &l))
		return;
	for (size_t i = 0; i < l.info->n_step; i++) {
		const Pb__NodeStep *step = l.info->step[i];
		bool fits = w.all || (step->job_id == w.job_id && (!w.step || step->step_id == w.step_id));
		Pb__StatRsp *stat = fits ? step_pids(&l, step) : NULL;
		if (!fits)
			continue;
		if (!w.any) {
			list_begin(&out, s, "pids");
			if (!out.json)
				str_add(&out.out, "PID      JOBID    STEPID   LOCALID GLOBALID\n");
		}
		w.any = true;
		for (size_t k = 0; stat && k < stat->n_pid; k++)
			pid_put(&out, step, stat, stat->pid[k]);
		for (size_t k = 0; stat && k < stat->n_task; k++)
			if (stat->task[k]->pid == UINT32_MAX)     /* of the extern step */
				pid_put(&out, step, stat, UINT32_MAX);
		if (stat)
			pb__stat_rsp__free_unpacked(stat, NULL);
	}
	if (!w.any && (s->json || s->yaml) && w.all)
		list_begin(&out, s, "pids"), w.any = true;
	if (w.any)
		list_end(&out);
	else
		pids_missing(s, &w, &l);
	local_close(&l);
}

/* --- getent ------------------------------------------------------------------------------------------------ */

static void entities_print(uint32_t uid)
{
	struct passwd *pw = getpwuid(uid);
	gid_t groups[256];
	int n = sizeof groups / sizeof *groups;
	if (!pw) {
		printf("User:\n%u\nGroups:\n\n", uid);
		return;
	}
	char *name = xstrdup(pw->pw_name);
	gid_t gid = pw->pw_gid;
	printf("User:\n%s:*:%u:%u:%s:%s:%s\nGroups:\n", name, pw->pw_uid, gid, pw->pw_gecos, pw->pw_dir, pw->pw_shell);
	if (getgrouplist(name, gid, groups, &n) < 0)
		n = sizeof groups / sizeof *groups;
	for (int i = 0; i < n; i++) {
		struct group *g = getgrgid(groups[i]);
		if (g)
			printf("%s:*:%u:%s\n", g->gr_name, g->gr_gid, name);
	}
	putchar('\n');
	free(name);
}

void scontrol_getent(struct scontrol *s, int argc, char **argv)
{
	struct local l;
	if (!one_node(s, argc, argv) || !local_open(s, argc > 1 ? argv[1] : NULL, &l))
		return;
	for (size_t i = 0; i < l.info->n_step; i++) {
		char name[48];
		stepid_format(l.info->step[i]->job_id, l.info->step[i]->step_id, name, sizeof name);
		printf("JobId=%s:\n", name);
		entities_print(l.info->step[i]->uid);
	}
	local_close(&l);
}

/* --- pidinfo ------------------------------------------------------------------------------------------------ */

static const Pb__NodeStep *pid_step(const struct local *l, uint32_t pid)
{
	for (size_t i = 0; i < l->info->n_step; i++) {
		Pb__StatRsp *stat = step_pids(l, l->info->step[i]);
		bool found = false;
		for (size_t k = 0; stat && k < stat->n_pid; k++)
			found = found || stat->pid[k] == pid;
		if (stat)
			pb__stat_rsp__free_unpacked(stat, NULL);
		if (found)
			return l->info->step[i];
	}
	return NULL;
}

/* When the job ends, as slurmctld plans; 0: it does not know the job. */
static uint64_t job_end(struct scontrol *s, uint32_t job_id)
{
	static struct jobview v;
	Pb__JobListReq req = PB__JOB_LIST_REQ__INIT;
	struct error err = { 0 };
	struct show_walk walk;
	const uint8_t *item;
	uint8_t *reply;
	size_t len, item_len;
	uint64_t end = 0;
	req.n_job_id = 1;
	req.job_id = &job_id;
	req.has_show_all = req.show_all = true;
	if (show_call(scontrol_client(s), RPC_JOB_LIST, &req.base, PB_JobListRsp_now, &reply, &len, &err) < 0)
		return 0;
	show_walk_start(&walk, reply, len, PB_JobListRsp_job);
	while (show_walk_next(&walk, &item, &item_len))
		if (jobview_read(&v, item, item_len) && jobview_num(&v, PB_JobRecord_job_id, 0) == job_id)
			end = jobview_num(&v, PB_JobRecord_end_time, 0);
	free(reply);
	return end;
}

void scontrol_pidinfo(struct scontrol *s, int argc, char **argv)
{
	struct local l;
	unsigned long long pid;
	if (argc != 2) {
		scontrol_fail(s, argc < 2 ? "missing argument for keyword:%s" : "too many arguments for keyword:%s", argv[0]);
		return;
	}
	if (str_to_u64(argv[1], 1, UINT32_MAX, &pid) < 0) {
		scontrol_fail(s, "Failed to locate job for requested pid");
		return;
	}
	if (!local_open(s, NULL, &l))
		return;
	const Pb__NodeStep *step = pid_step(&l, (uint32_t)pid);
	if (!step) {
		scontrol_fail(s, "Failed to locate job for requested pid");
	} else {
		uint64_t end = job_end(s, step->job_id), now = (uint64_t)time(NULL);
		char name[48], when[32];
		time_t t = (time_t)end;
		stepid_format(step->job_id, step->step_id, name, sizeof name);
		printf("Slurm JobId=%s ends at %s", name, end ? ctime_r(&t, when) : "Unknown\n");
		printf("Job remaining time is %llu seconds\n", (unsigned long long)(end > now ? end - now : 0));
	}
	local_close(&l);
}

/* --- show slurmd --------------------------------------------------------------------------------------------- */

void scontrol_show_slurmd(struct scontrol *s, const char *id)
{
	struct local l;
	struct str steps = STR_INIT, when = STR_INIT;
	if (!local_open(s, id, &l))
		return;
	const Pb__NodeInfoRsp *i = l.info;
	for (size_t k = 0; k < i->n_step; k++) {
		char name[48];
		stepid_format(i->step[k]->job_id, i->step[k]->step_id, name, sizeof name);
		if (i->step[k]->step_id == STEP_ID_BATCH)
			*strchr(name, '.') = 0;
		str_add_sep(&steps, ", ", name);
	}
	printf("Active Steps             = %s\n", steps.len ? steps.data : "NONE");
	printf("Actual CPUs              = %u\nActual Boards            = %u\nActual sockets           = %u\nActual cores             = %u\n"
	       "Actual threads per core  = %u\n", i->cpus, i->boards, i->sockets, i->cores, i->threads);
	printf("Actual real memory       = %llu MB\nActual temp disk space   = %llu MB\n", (unsigned long long)i->memory_mb, (unsigned long long)i->tmp_disk_mb);
	put_when(&when, i->boot_time, "Unknown");
	printf("Boot time                = %s\nHostname                 = %s\n", when.data, i->node);
	str_reset(&when);
	put_when(&when, i->ctld_time, "NONE");
	printf("Last slurmctld msg time  = %s\nSlurmd PID               = %u\nSlurmd Debug             = %u\n", when.data, i->pid, i->log_level);
	printf("Slurmd Logfile           = %s\nVersion                  = %s\n\n", i->log_file ? i->log_file : "(null)", i->version);
	str_fini(&steps);
	str_fini(&when);
	local_close(&l);
}
