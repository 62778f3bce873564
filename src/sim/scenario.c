/* scenario.c - runs scenario files: scheduling behaviour on virtual time, as text that anyone who knows Slurm can read
 *
 * One command a line, '#' starts a comment; test/scenario/README.md describes the language. Names stand for job ids. A line that does not hold ends the
 * program with its file, line and what was found instead. Usage: scenario FILE... */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/hostlist.h"
#include "model/states.h"
#include "model/timespec.h"
#include "sim/expect_why.h"
#include "sim/play.h"

void fail(const struct play *p, const char *fmt, ...)
{
	va_list ap;
	fprintf(stderr, "%s:%u: ", p->file, p->line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	exit(1);
}

const char *word(const struct play *p, size_t i) { return i < p->words ? p->word[i] : ""; }

const char *opt(const struct play *p, const char *key)
{
	size_t n = strlen(key);
	for (size_t i = p->from ? p->from : 1; i < (p->to ? p->to : p->words); i++)
		if (!strncmp(p->word[i], key, n) && p->word[i][n] == '=')
			return p->word[i] + n + 1;
	return NULL;
}

bool has(const struct play *p, const char *flag)
{
	for (size_t i = 1; i < p->words; i++)
		if (!strcmp(p->word[i], flag))
			return true;
	return false;
}

uint32_t num(const struct play *p, const char *text)
{
	unsigned long long n;
	if (str_to_u64(text, 0, UINT32_MAX, &n) < 0)
		fail(p, "\"%s\" is not a number", text);
	return (uint32_t)n;
}

uint64_t duration_ms(const struct play *p, const char *text)
{
	static const struct { const char *unit; uint64_t ms; } unit[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 } };
	char *end;
	uint64_t n = strtoull(text, &end, 10);
	for (size_t i = 0; i < sizeof unit / sizeof unit[0]; i++)
		if (!strcmp(end, unit[i].unit))
			return n * unit[i].ms;
	if (text[0] == '@')
		return wall_ms(p, text + 1) - p->start_ms;
	fail(p, "\"%s\" is not a time such as 10s, 5m, 2h or @2001-10-20T09:00", text);
}

struct name *find(struct play *p, const char *text)
{
	for (size_t i = 0; i < p->names; i++)
		if (!strcmp(p->name[i].text, text))
			return &p->name[i];
	return NULL;
}

struct name *name_add(struct play *p, const char *text)
{
	p->name = xgrow(p->name, &p->names_cap, p->names + 1, sizeof *p->name);
	p->name[p->names] = (struct name){ .text = xstrdup(text) };
	return &p->name[p->names++];
}

/* "a", "a_2", "a+1" -> the selector the core understands. */
static const char *selector(struct play *p, const char *text, char *buf, size_t size)
{
	char base[256];
	const char *under = strpbrk(text, "_+.");
	snprintf(base, sizeof base, "%.*s", (int)(under ? under - text : (long)strlen(text)), text);
	struct name *n = find(p, base);
	if (!n)
		fail(p, "no job is called \"%s\"", base);
	snprintf(buf, size, "%u%s", n->id, under ? under : "");
	return buf;
}

static uint32_t job_id(struct play *p, const char *text)
{
	char buf[300];
	uint32_t *ids = NULL, id;
	size_t n = 0;
	if (core_job_resolve(p->w.core, selector(p, text, buf, sizeof buf), &ids, &n) < 0 || !n)
		return 0;
	id = ids[0];
	free(ids);
	return id;
}

static uint32_t run_sec(struct world *w, uint32_t id)
{
	struct play *p = w->arg;
	Pb__JobRecord *r = world_job(w, id);
	uint32_t base = r->has_array_job_id ? r->array_job_id : id, sec = 0;
	pb__job_record__free_unpacked(r, NULL);
	for (size_t i = 0; i < p->names; i++)
		if (p->name[i].id == base)
			sec = p->name[i].run_sec;
	return sec;
}

/* --- set-up ----------------------------------------------------------------------------------- */

static void do_nodes(struct play *p)
{
	struct hostlist hl = HOSTLIST_INIT;
	if (hostlist_add(&hl, word(p, 1), NULL) < 0)
		fail(p, "\"%s\" is not a list of nodes", word(p, 1));
	for (size_t i = 0; i < hl.count; i++) {
		Pb__NodeRecord r = PB__NODE_RECORD__INIT;
		Pb__NodeGres g[16], *list[16];
		uint32_t shards = opt(p, "shards") ? num(p, opt(p, "shards")) : 0;
		r.name = hl.name[i];
		r.has_cpus = r.has_real_memory = true;
		r.cpus = opt(p, "cpus") ? num(p, opt(p, "cpus")) : 8;
		r.real_memory = opt(p, "mem") ? num(p, opt(p, "mem")) : 16000;
		r.has_threads = r.has_sockets = r.has_cores = true;
		r.threads = opt(p, "threads") ? num(p, opt(p, "threads")) : 1;
		r.sockets = opt(p, "sockets") ? num(p, opt(p, "sockets")) : 1;
		r.cores = r.cpus / r.threads / r.sockets;
		r.has_weight = opt(p, "weight") != NULL;
		r.weight = r.has_weight ? num(p, opt(p, "weight")) : 1;
		r.has_tmp_disk = opt(p, "tmp") != NULL;
		r.tmp_disk = opt(p, "tmp") ? num(p, opt(p, "tmp")) : 0;
		r.has_core_spec_count = opt(p, "spec") != NULL;
		r.core_spec_count = opt(p, "spec") ? num(p, opt(p, "spec")) : 0;
		r.cpu_spec_list = (char *)opt(p, "speclist");
		r.features = (char *)opt(p, "features");
		r.gres_list = list;
		char *gres = xstrdup(opt(p, "gres") ? opt(p, "gres") : ""), *at = gres, *w;
		uint32_t first = 0;
		while ((w = str_next(&at, ",")) && w[0] && r.n_gres_list < 16) { /* gpu:h100:4@0-3~-1/4: near cores 0-3, links -1,4 */
			char *links = strchr(w, '~'), *cores = strchr(w, '@');
			if (links)
				*links++ = 0;
			for (char *s = links; s && (s = strchr(s, '/'));)
				*s = ',';
			if (cores)
				*cores++ = 0;
			char *c1 = strchr(w, ':'), *c2 = c1 ? strchr(c1 + 1, ':') : NULL;
			Pb__NodeGres *e = &g[r.n_gres_list];
			pb__node_gres__init(e);
			*c1 = 0;
			if (c2)
				*c2 = 0;
			e->name = w;
			e->type = c2 ? c1 + 1 : NULL;
			e->count = num(p, c2 ? c2 + 1 : c1 + 1);
			e->files = (char *)"/dev/x";
			e->cores = cores;
			e->links = links;
			e->has_first_index = true;
			e->first_index = first;
			first += (uint32_t)e->count;
			list[r.n_gres_list++] = e;
		}
		for (uint32_t gpu = 0; shards && gpu < first && r.n_gres_list < 16; gpu++) {
			Pb__NodeGres *e = list[r.n_gres_list] = &g[r.n_gres_list];
			r.n_gres_list++;
			pb__node_gres__init(e);
			e->name = (char *)"shard";
			e->type = g[0].type;
			e->count = shards;
			e->has_of_gpu = e->has_count_only = e->count_only = true;
			e->of_gpu = gpu;
		}
		world_add_node(&p->w, &r);
		free(gres);
	}
	hostlist_fini(&hl);
}

static void do_partition(struct play *p)
{
	Pb__PartitionRecord r = PB__PARTITION_RECORD__INIT;
	struct str all = STR_INIT;
	for (size_t i = 0; i < p->w.nodes; i++)
		str_add_sep(&all, ",", p->w.node[i].name);
	r.name = p->word[1];
	r.nodes = r.nodes_full = opt(p, "nodes") ? (char *)opt(p, "nodes") : all.data;
	r.has_is_default = r.is_default = has(p, "default");
	r.state = opt(p, "state") ? (char *)opt(p, "state") : (char *)"UP";
#define NUMBER(key, f) if (opt(p, key)) { r.has_##f = true; r.f = num(p, opt(p, key)); }
	NUMBER("maxtime", max_time_min) NUMBER("defaulttime", default_time_min) NUMBER("minnodes", min_nodes) NUMBER("maxnodes", max_nodes)
	NUMBER("tier", priority_tier) NUMBER("factor", priority_job_factor) NUMBER("overtime", over_time_limit_min) NUMBER("maxmem", max_mem_per_node)
	NUMBER("defmemcpu", def_mem_per_cpu) NUMBER("grace", grace_time_sec) NUMBER("maxmemcpu", max_mem_per_cpu) NUMBER("maxcpus", max_cpus_per_node) NUMBER("maxcpussocket", max_cpus_per_socket)
	r.has_lln = r.lln = has(p, "lln");
	r.oversubscribe = (char *)opt(p, "oversubscribe");
	r.allow_accounts = (char *)opt(p, "allowaccounts");
	r.allow_qos = (char *)opt(p, "allowqos");
	r.tres_billing_weights = (char *)opt(p, "TRESBillingWeights");
	r.qos = (char *)opt(p, "qos");
	r.deny_accounts = (char *)opt(p, "denyaccounts");
	r.allow_groups = (char *)opt(p, "allowgroups");
	r.preempt_mode = (char *)opt(p, "preemptmode");
	r.exclusive = (char *)opt(p, "exclusive");
	r.topology = (char *)opt(p, "topology");
	r.job_defaults = (char *)opt(p, "jobdefaults");
	world_add_part(&p->w, &r);
	str_fini(&all);
}

static void do_set(struct play *p)
{
	struct core_params *q = &p->w.params;
	const struct { const char *key; bool *flag; uint32_t *number; } row[] = {
		{ "backfill", &q->backfill, NULL }, { "select_memory", &q->select_memory, NULL }, { "select_cores", &q->select_cores, NULL }, { "select_sockets", &q->select_sockets, NULL },
		{ "lln", &q->select_lln, NULL }, { "ll_shared", &q->least_loaded_shared, NULL }, { "many_shared", &q->many_shared, NULL }, { "enforce_binding", &q->enforce_binding, NULL }, { "allow_spec", &q->allow_spec, NULL }, { "mcs", NULL, &q->mcs }, { "mcs_select", NULL, &q->mcs_select }, { "mcs_enforced", &q->mcs_enforced, NULL }, { "one_task_per_core", &q->one_task_per_core, NULL }, { "dist_block", &q->select_block, NULL },
		{ "job_requeue", &q->job_requeue, NULL }, { "clean", &p->w.clean, NULL }, { "multifactor", &q->priority_multifactor, NULL },
		{ "kill_invalid_depend", &q->kill_invalid_depend, NULL }, { "favor_small", &q->favor_small, NULL }, { "config_overrides", &q->config_overrides, NULL },
		{ "weight_age", NULL, &q->weight_age }, { "prio_flags", NULL, &q->prio_flags }, { "max_age", NULL, &q->max_age_sec }, { "weight_size", NULL, &q->weight_job_size }, { "weight_partition", NULL, &q->weight_partition },
		{ "enforce", NULL, &q->enforce_part_limits }, { "slurmd_timeout", NULL, &q->slurmd_timeout_sec }, { "return_to_service", NULL, &q->return_to_service },
		{ "requeue_delay", NULL, &q->requeue_delay_sec }, { "max_batch_requeue", NULL, &q->max_batch_requeue }, { "max_jobs", NULL, &q->max_job_count }, { "max_array", NULL, &q->max_array_size },
		{ "overtime", NULL, &q->over_time_limit_min }, { "bf_reserve", NULL, &q->bf_reserve }, { "bf_order", NULL, &q->bf_order }, { "bf_plan_all", &q->bf_plan_all, NULL }, { "place_fragment", &q->place_fragment, NULL },
		{ "bf_max_job_test", NULL, &q->bf_max_job_test }, { "bf_window", NULL, &q->bf_window_min }, { "bf_resolution", NULL, &q->bf_resolution_sec }, { "resv_over_run", NULL, &q->resv_over_run_min }, { "preempt", &q->preempt, NULL }, { "preempt_qos", &q->preempt_qos, NULL }, { "preempt_within", &q->preempt_within, NULL }, { "preempt_priority", &q->preempt_priority, NULL },
		{ "prolog_ctld", &q->prolog_ctld, NULL }, { "epilog_ctld", &q->epilog_ctld, NULL }, { "prolog_alloc", &q->prolog_alloc, NULL }, { "prolog_contain", &q->prolog_contain, NULL }, { "prolog_nohold", &q->prolog_nohold, NULL },
		{ "prolog_force_requeue", &q->prolog_force_requeue, NULL }, { "prolog_fail_nohold", &q->prolog_fail_nohold, NULL },
		{ "preempt_mode", NULL, &q->preempt_mode }, { "preempt_exempt", NULL, &q->preempt_exempt_sec }, { "preempt_exempt_priority", NULL, &q->preempt_exempt_priority }, { "preempt_youngest", &q->preempt_youngest, NULL },
		{ "preempt_user_signal", &q->preempt_user_signal, NULL }, { "preempt_licenses", &q->preempt_licenses, NULL }, { "preempt_requeue", NULL, &q->preempt_requeue_sec }, { "gang", &q->gang, NULL }, { "time_slice", NULL, &q->time_slice_sec },
	 { "min_job_age", NULL, &q->min_job_age_sec }, { "acct_enforce", NULL, &q->enforce }, { "weight_qos", NULL, &q->weight_qos }, { "weight_assoc", NULL, &q->weight_assoc }, { "weight_fair", NULL, &q->weight_fair },
		{ "decay_half", NULL, &q->decay_half_sec }, { "calc_period", NULL, &q->calc_period_sec }, { "usage_reset", NULL, &q->usage_reset },
		{ "max_switch_wait", NULL, &q->max_switch_wait_sec }, { "topo_optional", &q->topo_optional, NULL }, { "dragonfly", &q->dragonfly, NULL },
	};
	for (size_t i = 1; i < p->words; i++) {
		char *eq = strchr(p->word[i], '=');
		bool found = false;
		for (size_t k = 0; eq && k < sizeof row / sizeof row[0]; k++) {
			if (strncmp(row[k].key, p->word[i], (size_t)(eq - p->word[i])) || row[k].key[eq - p->word[i]])
				continue;
			found = true;
			if (row[k].flag)
				*row[k].flag = num(p, eq + 1) != 0;
			else
				*row[k].number = num(p, eq + 1);
		}
		if (!strncmp(p->word[i], "defmemcpu=", 10)) {
			q->def_mem_per_cpu = num(p, p->word[i] + 10);
			found = true;
		}
		if (!strncmp(p->word[i], "licenses=", 9)) {
			xstr_set(&p->w.licenses, p->word[i] + 9);
			q->licenses = p->w.licenses;
			found = true;
		}
		if (!strncmp(p->word[i], "requeue_exit=", 13) || !strncmp(p->word[i], "requeue_exit_hold=", 18)) {
			bool hold = p->word[i][12] == '_';
			xstr_set(&p->w.requeue_exit[hold], eq + 1);
			*(hold ? &q->requeue_exit_hold : &q->requeue_exit) = p->w.requeue_exit[hold];
			found = true;
		}
		if (!strncmp(p->word[i], "weight_tres=", 12)) {
			xstr_set(&p->w.tres, p->word[i] + 12);
			q->weight_tres = p->w.tres;
			found = true;
		}
		if (!found)
			fail(p, "setting \"%s\" is not known", p->word[i]);
	}
}

static void start(struct play *p)
{
	if (p->started)
		return;
	p->started = true;
	if (!p->w.nodes)
		fail(p, "no nodes yet");
	if (!p->w.parts) {
		char *w0 = p->word[0], *w1 = p->word[1], *w2 = p->word[2];
		size_t n = p->words;
		p->word[0] = (char *)"partition";
		p->word[1] = (char *)"main";
		p->word[2] = (char *)"default";
		p->words = 3;
		do_partition(p);
		p->word[0] = w0;
		p->word[1] = w1;
		p->word[2] = w2;
		p->words = n;
	}
	world_start(&p->w);
	p->start_ms = p->w.now_ms;
}

/* Who is not known is bob. */
uint32_t uid_of(struct play *p)
{
	const char *who = opt(p, "user") ? opt(p, "user") : "alice";
	for (uint32_t uid = 1001; uid < 1006; uid++)
		if (!strcmp(who, world_user(uid)))
			return uid;
	return strcmp(who, "root") ? 1002 : 0;
}

void take_result(struct play *p, uint32_t code, const char *detail)
{
	p->last_code = code;
	snprintf(p->last_detail, sizeof p->last_detail, "%s", detail ? detail : "");
}

/* --- things that happen ----------------------------------------------------------------------- */

static void do_end(struct play *p)
{
	uint32_t id = job_id(p, word(p, 1)), status = opt(p, "exit") ? num(p, opt(p, "exit")) << 8 : opt(p, "signal") ? num(p, opt(p, "signal")) : 0;
	Pb__JobRecord *r = world_job(&p->w, id);
	if (!r || r->state != PB__JOB_STATE__RUNNING)
		fail(p, "%s is not running", word(p, 1));
	bool batch = r->desc->batch;
	pb__job_record__free_unpacked(r, NULL);
	if (batch) {
		world_batch_done(&p->w, id, status);
		return;
	}
	struct core_event ev = world_event(&p->w, EV_JOB_DONE, 0);
	ev.job_done.job_id = id;
	ev.job_done.status = status;
	world_step(&p->w, &ev);
}

static size_t node_at(struct play *p, const char *name)
{
	int i = world_node(&p->w, name);
	if (i < 0)
		fail(p, "no node is called \"%s\"", name);
	return (size_t)i;
}

/* A node that was silent for a moment and has lost nothing. */
static void do_answers(struct play *p)
{
	struct core_event ev = world_event(&p->w, EV_NODE_CONTACT, 0);
	ev.contact.node = word(p, 1);
	ev.contact.responding = true;
	world_step(&p->w, &ev);
}
static void do_kill(struct play *p) { world_node_kill(&p->w, node_at(p, word(p, 1))); }
static void do_register(struct play *p)
{
	const char *started = opt(p, "started");
	world_node_register(&p->w, node_at(p, word(p, 1)), has(p, "rebooted"), started ? p->start_ms + duration_ms(p, started) : 0);
}

static void do_restart(struct play *p) { world_restart(&p->w); }
static void do_reconfigure(struct play *p)
{
	struct core_event ev = world_event(&p->w, EV_CONFIG, 0);
	Pb__NodeRecord *n = opt(p, "shards") ? p->w.node_conf[node_at(p, word(p, 1))] : NULL;
	for (size_t g = 0; n && g < n->n_gres_list; g++)
		n->gres_list[g]->count = n->gres_list[g]->has_of_gpu ? num(p, opt(p, "shards")) : n->gres_list[g]->count;
	ev.config.params = &p->w.params;
	ev.config.node = p->w.node_conf;
	ev.config.nodes = p->w.nodes;
	ev.config.part = p->w.part_conf;
	ev.config.parts = p->w.parts;
	ev.config.topo = p->w.topo_conf;
	ev.config.topos = p->w.topos;
	world_step(&p->w, &ev);
	const Pb__Result *r = (const Pb__Result *)world_answer(&p->w, ev.token);
	take_result(p, r->code, r->detail);
}

static void do_epilog(struct play *p)
{
	size_t i = node_at(p, word(p, 1));
	p->w.node[i].no_epilog = !strcmp(word(p, 2), "never");
	p->w.node[i].epilog_ms = p->w.node[i].no_epilog ? 0 : (uint32_t)duration_ms(p, word(p, 2));
}

static void do_scripts(struct play *p)
{
	const char *how = word(p, 1);
	p->w.no_scripts = !strcmp(how, "never");
	p->w.script_status = !strcmp(how, "fail") ? 256 : 0;
	p->w.script_ms = p->w.no_scripts || p->w.script_status ? 0 : (uint32_t)duration_ms(p, how);
}

static void do_report(struct play *p)
{
	static const struct { const char *word; Pb__NodeEvent__Kind kind; } kinds[] = {
		{ "launch_failed", PB__NODE_EVENT__KIND__LAUNCH_FAILED }, { "epilog_done", PB__NODE_EVENT__KIND__EPILOG_DONE },
		{ "kill_failed", PB__NODE_EVENT__KIND__KILL_FAILED }, { "health", PB__NODE_EVENT__KIND__HEALTH }, { "kill_ended", PB__NODE_EVENT__KIND__KILL_ENDED }, { "batch_done", PB__NODE_EVENT__KIND__BATCH_DONE }, { "prolog_done", PB__NODE_EVENT__KIND__PROLOG_DONE },
		{ "step_started", PB__NODE_EVENT__KIND__STEP_STARTED },
	};
	struct core_event ev = world_event(&p->w, EV_NODE_EVENT, 0);
	Pb__NodeEvent m = PB__NODE_EVENT__INIT;
	bool known = false;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (!strcmp(kinds[i].word, word(p, 2))) {
			m.kind = kinds[i].kind;
			known = true;
		}
	if (!known)
		fail(p, "\"%s\" is not something a node reports", word(p, 2));
	m.has_job_id = true;
	m.job_id = job_id(p, word(p, 3));
	m.has_drain = true;
	m.drain = has(p, "drain");
	m.has_again = true;
	m.again = has(p, "again");
	m.has_killed = m.killed = has(p, "killed");
	m.has_prolog = m.prolog = has(p, "prolog");
	m.text = (char *)(opt(p, "text") ? opt(p, "text") : "as told");
	m.detail = (char *)(uintptr_t)opt(p, "detail");
	m.has_oom = true;
	m.oom = has(p, "oom");
	m.has_status = true;
	m.status = m.oom ? 9 : 0;
	m.has_clean = true;
	m.clean = p->w.clean;
	ev.token = 0;
	ev.node_event.node = word(p, 1);
	ev.node_event.event = &m;
	world_step(&p->w, &ev);
}

static void do_cancel(struct play *p)
{
	struct core_event ev = world_event(&p->w, EV_KILL, uid_of(p));
	Pb__KillReq q = PB__KILL_REQ__INIT;
	char buf[300];
	char *id = buf;
	q.name = (char *)opt(p, "name");
	q.state = (char *)opt(p, "state");
	if (opt(p, "signal")) {
		q.has_signal = true;
		q.signal = num(p, opt(p, "signal"));
	}
	if (strcmp(word(p, 1), "all")) {
		selector(p, word(p, 1), buf, sizeof buf);
		if (opt(p, "step"))
			snprintf(buf + strlen(buf), sizeof buf - strlen(buf), ".%s", opt(p, "step"));
		q.id = &id;
		q.n_id = 1;
	}
	ev.kill = &q;
	world_step(&p->w, &ev);
	const Pb__KillRsp *r = (const Pb__KillRsp *)world_answer(&p->w, ev.token);
	take_result(p, r->n_result ? r->result[0]->code : 0, r->n_result ? r->result[0]->detail : NULL);
	if (p->last_code && !has(p, "refused"))
		fail(p, "refused: %s", p->last_detail);
}

static void list_result(struct play *p, uint64_t token)
{
	const Pb__ResultList *r = (const Pb__ResultList *)world_answer(&p->w, token);
	p->last_code = 0;
	p->last_detail[0] = 0;
	for (size_t i = 0; i < r->n_result; i++)
		if (r->result[i]->code && !p->last_code)
			take_result(p, r->result[i]->code, r->result[i]->detail);
	if (p->last_code && !has(p, "refused"))
		fail(p, "refused: %u %s", p->last_code, p->last_detail);
}

static void do_op(struct play *p)
{
	static const struct { const char *word; Pb__JobOpReq__Op op; } ops[] = {
		{ "hold", PB__JOB_OP_REQ__OP__HOLD }, { "uhold", PB__JOB_OP_REQ__OP__UHOLD }, { "release", PB__JOB_OP_REQ__OP__RELEASE },
		{ "requeue", PB__JOB_OP_REQ__OP__REQUEUE }, { "requeuehold", PB__JOB_OP_REQ__OP__REQUEUE_HOLD }, { "suspend", PB__JOB_OP_REQ__OP__SUSPEND },
		{ "resume", PB__JOB_OP_REQ__OP__RESUME }, { "top", PB__JOB_OP_REQ__OP__TOP },
	};
	struct core_event ev = world_event(&p->w, EV_JOB_OP, opt(p, "user") ? uid_of(p) : 0);
	Pb__JobOpReq q = PB__JOB_OP_REQ__INIT;
	char buf[300];
	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
		if (!strcmp(ops[i].word, p->word[0]))
			q.op = ops[i].op;
	q.id = (char *)selector(p, word(p, 1), buf, sizeof buf);
	ev.job_op = &q;
	world_step(&p->w, &ev);
	list_result(p, ev.token);
}

static size_t read_set(struct play *p, size_t from, Pb__KeyValue *kv, Pb__KeyValue **list)
{
	size_t n = 0;
	for (size_t i = from; i < p->words; i++) {
		char *eq = strchr(p->word[i], '=');
		if (!eq || !strncmp(p->word[i], "user=", 5))
			continue;
		*eq = 0;
		pb__key_value__init(&kv[n]);
		kv[n].key = p->word[i];
		kv[n].value = eq + 1;
		list[n] = &kv[n];
		n++;
	}
	return n;
}

static void do_update(struct play *p)
{
	Pb__KeyValue kv[WORDS_MAX], *list[WORDS_MAX];
	const char *what = word(p, 1);
	char buf[300];
	if (!strcmp(what, "node") || !strcmp(what, "partition")) {
		bool node = what[0] == 'n';
		struct core_event ev = world_event(&p->w, node ? EV_NODE_UPDATE : EV_PART_UPDATE, opt(p, "user") ? uid_of(p) : 0);
		Pb__NodeUpdateReq nq = PB__NODE_UPDATE_REQ__INIT;
		Pb__PartUpdateReq pq = PB__PART_UPDATE_REQ__INIT;
		nq.nodes = pq.name = p->word[2];
		nq.set = pq.set = list;
		pq.has_create = pq.has_remove = true;
		pq.create = has(p, "create");
		pq.remove = has(p, "delete");
		nq.n_set = pq.n_set = read_set(p, 3, kv, list);
		if (node)
			ev.node_update = &nq;
		else
			ev.part_update = &pq;
		world_step(&p->w, &ev);
		const Pb__Result *r = (const Pb__Result *)world_answer(&p->w, ev.token);
		take_result(p, r->code, r->detail);
		if (p->last_code && !has(p, "refused"))
			fail(p, "refused: %u %s", p->last_code, p->last_detail);
		return;
	}
	struct core_event ev = world_event(&p->w, EV_JOB_UPDATE, opt(p, "user") ? uid_of(p) : 0);
	Pb__JobUpdateReq q = PB__JOB_UPDATE_REQ__INIT;
	char *id = (char *)selector(p, what, buf, sizeof buf);
	q.id = &id;
	q.n_id = 1;
	q.set = list;
	q.n_set = read_set(p, 2, kv, list);
	char *dep = NULL;
	for (size_t i = 0; i < q.n_set; i++)
		if (!strcasecmp(kv[i].key, "Dependency"))
			kv[i].value = dep = dependency(p, kv[i].value);
	ev.job_update = &q;
	world_step(&p->w, &ev);
	free(dep);
	list_result(p, ev.token);
}

static const Pb__StepCreateRsp *step_answer(struct play *p, struct name *n) { return (const Pb__StepCreateRsp *)world_answer(&p->w, n->run_sec); }

static void do_drain(struct play *p)
{
	struct core_event ev = world_event(&p->w, EV_STEPS_DRAIN, 1001);
	struct name *n = find(p, word(p, 1));
	ev.drain_job = job_id(p, word(p, 2));
	if (!n)
		n = name_add(p, word(p, 1));
	n->run_sec = (uint32_t)ev.token;
	world_step(&p->w, &ev);
}

static void expect_drain(struct play *p)
{
	struct name *n = find(p, word(p, 2));
	const Pb__Result *r = n ? (const Pb__Result *)world_answer(&p->w, n->run_sec) : NULL;
	bool waits = !strcmp(word(p, 3), "WAITS");
	if (waits != !r)
		fail(p, "%s %s", word(p, 2), r ? "was answered" : "waits");
	if (r)
		take_result(p, r->code, r->detail);
}

static void do_step(struct play *p)
{
	struct core_event ev = world_event(&p->w, EV_STEP_CREATE, 1001);
	Pb__StepDesc d = PB__STEP_DESC__INIT;
	struct name *n = find(p, word(p, 1));
	d.job_id = job_id(p, word(p, 2));
#define STEP_NUM(key, f) if (opt(p, key)) { d.has_##f = true; d.f = num(p, opt(p, key)); }
	STEP_NUM("nodes", min_nodes) STEP_NUM("tasks", num_tasks) STEP_NUM("cpus", cpus_per_task) STEP_NUM("pernode", ntasks_per_node)
	STEP_NUM("relative", relative) STEP_NUM("immediate", immediate_sec) STEP_NUM("time", time_limit_min)
	d.tres_per_step = (char *)opt(p, "gpus");
	d.tres_per_node = (char *)opt(p, "gres");
	d.tres_per_task = (char *)opt(p, "gpustask");
	d.req_nodes = (char *)opt(p, "w");
	d.exc_nodes = (char *)opt(p, "x");
	d.distribution = (char *)opt(p, "dist");
	d.arbitrary_hosts = (char *)opt(p, "hosts");
	d.has_exact = d.has_overlap = d.has_overcommit = true;
	d.exact = has(p, "exact");
	d.overlap = has(p, "overlap");
	if (opt(p, "threads")) {
		d.has_threads_per_core = true;
		d.threads_per_core = num(p, opt(p, "threads"));
	}
	d.overcommit = has(p, "overcommit");
	d.has_async = d.async = has(p, "async");
	struct name *of = opt(p, "of") ? find(p, opt(p, "of")) : NULL;
	const Pb__StepCreateRsp *number = of ? step_answer(p, of) : NULL;
	if (number) {
		d.has_step_id = true;
		d.step_id = number->step_id;
	}
	ev.step_create = &d;
	if (!n)
		n = name_add(p, word(p, 1));
	n->id = d.job_id;
	n->run_sec = (uint32_t)ev.token;
	world_step(&p->w, &ev);
}

static void do_stepend(struct play *p)
{
	struct name *n = find(p, word(p, 1));
	const Pb__StepCreateRsp *r = n ? step_answer(p, n) : NULL;
	if (!n || (r && r->code))
		fail(p, "step %s neither runs nor waits", word(p, 1));
	struct core_event ev = world_event(&p->w, r ? EV_STEP_DONE : EV_STEP_GIVE_UP, 1001);
	if (!r) {
		ev.token = n->run_sec;
		world_step(&p->w, &ev);
		return;
	}
	ev.step_done.job_id = n->id;
	ev.step_done.step_id = r->step_id;
	ev.step_done.status = opt(p, "exit") ? num(p, opt(p, "exit")) << 8 : 0;
	world_step(&p->w, &ev);
}

/* --- expectations ----------------------------------------------------------------------------- */

void expect_text(struct play *p, const char *what, const char *want, const char *got)
{
	if (strcmp(want, got ? got : ""))
		fail(p, "%s: %s is \"%s\", expected \"%s\"", word(p, 1), what, got ? got : "", want);
}

static void expect_num(struct play *p, const char *key, uint64_t got)
{
	if (opt(p, key) && num(p, opt(p, key)) != got)
		fail(p, "%s: %s is %llu, expected %s", word(p, 1), key, (unsigned long long)got, opt(p, key));
}

static bool is_state_word(const char *s)
{
	bool flag;
	uint32_t n;
	return job_state_parse(s, &flag, &n) >= 0;
}

static void expect_gpus(struct play *p, const Pb__JobRecord *r)
{
	struct str s = STR_INIT;
	for (size_t i = 0; r->alloc && i < r->alloc->n_part; i++)
		for (size_t g = 0; g < r->alloc->part[i]->n_gres; g++)
			str_add_sep(&s, ";", r->alloc->part[i]->gres[g]->index ? r->alloc->part[i]->gres[g]->index : "");
	expect_text(p, "gpus", opt(p, "gpus"), s.data);
	str_fini(&s);
}

static void expect_values(struct play *p, const Pb__JobRecord *r, const Pb__JobVolatile *v)
{
	struct str cpus = STR_INIT;
	expect_num(p, "restarts", r->restarts);
	expect_num(p, "nodes", r->num_nodes);
	expect_num(p, "cpus", r->num_cpus);
	expect_num(p, "tasks", r->num_tasks);
	expect_num(p, "time", r->time_limit_min);
	expect_num(p, "exit", r->exit_status >> 8);
	expect_num(p, "prio", v->priority);
	expect_num(p, "canceluid", r->has_cancel_uid ? r->cancel_uid : 4294967295u);
	if (opt(p, "tres"))
		expect_text(p, "tres", opt(p, "tres"), r->tres_alloc);
	if (opt(p, "req"))
		expect_text(p, "req", opt(p, "req"), r->tres_req);
	if (opt(p, "partition"))
		expect_text(p, "partition", opt(p, "partition"), r->partition);
	if (opt(p, "array"))
		expect_text(p, "array", opt(p, "array"), r->array_tasks);
	if (opt(p, "left"))
		expect_text(p, "left", opt(p, "left"), r->dependency_left);
	if (opt(p, "fail"))
		expect_text(p, "fail", opt(p, "fail"), r->fail_node);
	if (opt(p, "id"))
		expect_num(p, "id", r->job_id);
	if (opt(p, "mails")) /* so far, of all jobs */
		expect_num(p, "mails", (uint32_t)p->w.mails);
	if (opt(p, "terminates")) /* of jobs and steps, so far */
		expect_num(p, "terminates", (uint32_t)p->w.terminates);
	if (opt(p, "signals")) { /* sent so far; the last of them */
		expect_num(p, "signals", (uint32_t)p->w.signals);
		expect_num(p, "signal", p->w.signal_job == r->job_id ? p->w.signal : 0);
	}
	if (opt(p, "start")) {
		uint64_t want = (p->start_ms + duration_ms(p, opt(p, "start"))) / 1000, got = v->has_est_start ? v->est_start : r->start_time;
		if (want != got)
			fail(p, "%s: starts at %llds, expected %s", word(p, 1), (long long)(got - p->start_ms / 1000), opt(p, "start"));
	}
	for (size_t i = 0; r->alloc && i < r->alloc->n_part; i++)
		str_add_sep(&cpus, ";", r->alloc->part[i]->cpu_ids);
	if (opt(p, "cpuids"))
		expect_text(p, "cpuids", opt(p, "cpuids"), cpus.data);
	str_fini(&cpus);
	if (opt(p, "gpus"))
		expect_gpus(p, r);
}

static void expect_job(struct play *p)
{
	Pb__JobVolatile v;
	uint32_t id = job_id(p, word(p, 1));
	const char *want = word(p, 2);
	if (!strcmp(want, "gone")) {
		if (id)
			fail(p, "%s is still known", word(p, 1));
		return;
	}
	Pb__JobRecord *r = id ? world_job(&p->w, id) : NULL;
	if (!r)
		fail(p, "%s is not known any more", word(p, 1));
	core_job_volatile(p->w.core, core_job_find(p->w.core, id), &v);
	const char *state = job_state_name(r->state, r->state_flags & ~(uint32_t)JOBF_REQUEUED), *base = job_state_name(r->state, 0);
	if (is_state_word(want) && strcmp(want, state) && strcmp(want, base))
		fail(p, "%s is %s (%s), expected %s", word(p, 1), state, reason_name(v.reason), want);
	for (size_t i = 3; i < p->words; i++) {
		char *x = p->word[i];
		if (x[0] == '(') {
			x[strcspn(x, ")")] = 0;
			const char *got = v.reason_desc && strchr(v.reason_desc, ',') ? reason_name(v.reason) : reason_name(v.reason);
			if (strcmp(x + 1, got))
				fail(p, "%s: reason is %s, expected %s", word(p, 1), got, x + 1);
		} else if (!strcmp(x, "on")) {
			struct hostlist hl = HOSTLIST_INIT;
			(void)hostlist_add(&hl, word(p, i + 1), NULL);
			char *nodes = hostlist_compact(&hl);
			expect_text(p, "its nodes", nodes, r->alloc ? r->alloc->nodes : "");
			free(nodes);
			hostlist_fini(&hl);
		}
	}
	expect_values(p, r, &v);
	pb__job_record__free_unpacked(r, NULL);
}

static void expect_node(struct play *p)
{
	size_t i = node_at(p, word(p, 2));
	Pb__NodeRecord *r = core_node_record(p->w.core, (uint32_t)i);
	char state[256];
	node_state_full(r->state, r->state_flags, state, sizeof state);
	if (strcmp(word(p, 3), state))
		fail(p, "node %s is %s (%s), expected %s", word(p, 2), state, r->reason ? r->reason : "", word(p, 3));
	expect_num(p, "cpus", r->alloc_cpus);
	expect_num(p, "mem", r->alloc_mem);
	if (opt(p, "reason"))
		expect_text(p, "reason", opt(p, "reason"), r->reason);
	if (opt(p, "gres"))
		expect_text(p, "gres", opt(p, "gres"), r->gres_used);
	pb__node_record__free_unpacked(r, NULL);
}

static void expect_step(struct play *p)
{
	struct name *n = find(p, word(p, 2));
	const Pb__StepCreateRsp *r = n ? step_answer(p, n) : NULL;
	const char *want = word(p, 3);
	struct str ranks = STR_INIT, gpus = STR_INIT, cpus = STR_INIT;
	if (!strcmp(want, "WAITS")) {
		if (r)
			fail(p, "step %s was answered: %u %s", word(p, 2), r->code, r->detail ? r->detail : "");
		return;
	}
	if (!r)
		fail(p, "step %s waits for an answer", word(p, 2));
	if (!strcmp(want, "refused")) {
		take_result(p, r->code, r->detail);
		if (!r->code)
			fail(p, "step %s runs", word(p, 2));
		return;
	}
	if (r->code)
		fail(p, "step %s was refused: %u %s", word(p, 2), r->code, r->detail ? r->detail : "");
	if (!strcmp(want, "NUMBERED") != !r->layout)
		fail(p, "step %s has %s layout", word(p, 2), r->layout ? "a" : "no");
	for (size_t i = 0; r->layout && i < r->layout->n_node; i++) {
		str_add_sep(&ranks, ";", "");
		for (size_t k = 0; k < r->layout->node[i]->n_task_ids; k++)
			str_addf(&ranks, k ? ",%u" : "%u", r->layout->node[i]->task_ids[k]);
		str_add_sep(&cpus, ";", r->layout->node[i]->cpu_ids);
		for (size_t g = 0; g < r->layout->node[i]->n_gres; g++)
			str_add_sep(&gpus, ";", r->layout->node[i]->gres[g]->index);
	}
	if (opt(p, "ranks"))
		expect_text(p, "ranks", opt(p, "ranks"), ranks.data);
	if (opt(p, "gpus"))
		expect_text(p, "gpus", opt(p, "gpus"), gpus.data);
	if (opt(p, "cpuids"))
		expect_text(p, "cpuids", opt(p, "cpuids"), cpus.data);
	if (opt(p, "id"))
		expect_num(p, "id", r->step_id);
	expect_num(p, "tasks", r->layout ? r->layout->num_tasks : 0);
	for (size_t i = 4; i + 1 < p->words; i++)
		if (!strcmp(p->word[i], "on"))
			expect_text(p, "its nodes", p->word[i + 1], r->layout->nodes);
	str_fini(&ranks);
	str_fini(&gpus);
	str_fini(&cpus);
}

static void expect_refused(struct play *p)
{
	const char *name = error_name((int)p->last_code);
	if (!p->last_code || (p->words > 2 && strcmp(word(p, 2), name ? name : "")))
		fail(p, "the answer was %s \"%s\", expected %s", name ? name : "0", p->last_detail, word(p, 2));
	if (p->words > 3 && !strstr(p->last_detail, word(p, 3)))
		fail(p, "the answer says \"%s\", expected \"%s\" in it", p->last_detail, word(p, 3));
}

static void expect_why(struct play *p)
{
	const struct core_job *j = core_job_find(p->w.core, job_id(p, word(p, 2)));
	char *wrong = j ? why_mismatch(p->w.core, j, p->word + 3, p->words - 3, p->start_ms) : xstrdup("not known any more");
	if (wrong)
		fail(p, "%s: %s", word(p, 2), wrong);
}

static void do_expect(struct play *p)
{
	const char *w = word(p, 1);
	if (!strcmp(w, "node"))
		expect_node(p);
	else if (!strcmp(w, "step"))
		expect_step(p);
	else if (!strcmp(w, "drain"))
		expect_drain(p);
	else if (!strcmp(w, "why"))
		expect_why(p);
	else if (!strcmp(w, "refused"))
		expect_refused(p);
	else if (!strcmp(w, "resv"))
		expect_resv(p);
	else if (!strcmp(w, "used"))
		expect_used(p);
	else if (!strcmp(w, "log")) {
		if (!p->w.log.len || !strstr(p->w.log.data, word(p, 2)))
			fail(p, "the log does not say \"%s\"", word(p, 2));
	}
	else if (!strcmp(w, "estimate")) {
		const Pb__SubmitRsp *r = (const Pb__SubmitRsp *)world_answer(&p->w, p->last_token);
		long long got = r && r->has_est_start ? (long long)(r->est_start - p->start_ms / 1000) : -1, want = (long long)duration_ms(p, word(p, 2)) / 1000;
		if (got != want)
			fail(p, "the estimate is %llds, expected %llds", got, want);
	} else
		expect_job(p);
}

/* --- the language ----------------------------------------------------------------------------- */

static const struct { const char *word; void (*fn)(struct play *p); bool setup; } commands[] = {
	{ "nodes", do_nodes, true }, { "partition", do_partition, true }, { "set", do_set, true }, { "topology", do_topology, true }, { "switch", do_unit, true }, { "block", do_unit, true },
	{ "qos", do_qos, true }, { "account", do_account, true },
	{ "submit", do_submit, false }, { "alloc", do_alloc, false }, { "end", do_end, false }, { "cancel", do_cancel, false },
	{ "kill", do_kill, false }, { "answers", do_answers, false }, { "register", do_register, false }, { "restart", do_restart, false }, { "reconfigure", do_reconfigure, false },
	{ "epilog", do_epilog, false }, { "scripts", do_scripts, false }, { "report", do_report, false },
	{ "hold", do_op, false }, { "uhold", do_op, false }, { "release", do_op, false }, { "requeue", do_op, false }, { "requeuehold", do_op, false },
	{ "suspend", do_op, false }, { "resume", do_op, false }, { "top", do_op, false },
	{ "reserve", do_reserve, false }, { "zone", do_zone, true },
	{ "update", do_update, false }, { "step", do_step, false }, { "stepend", do_stepend, false }, { "drain", do_drain, false }, { "expect", do_expect, false },
};

/* Words are separated by blanks; "double quotes" keep blanks together. */
static void split(struct play *p, char *line)
{
	p->words = 0;
	for (char *s = line; *s && p->words < WORDS_MAX;) {
		while (*s == ' ' || *s == '\t')
			*s++ = 0;
		if (!*s || *s == '#')
			break;
		char *out = s;
		p->word[p->words++] = s;
		for (bool quoted = false; *s && (quoted || (*s != ' ' && *s != '\t')); s++) {
			if (*s == '"')
				quoted = !quoted;
			else
				*out++ = *s;
		}
		if (*s)
			*s++ = 0;
		*out = 0;
	}
}

static void run_words(struct play *p)
{
	if (!strcmp(p->word[0], "at") && p->words >= 2) {
		start(p);
		world_advance(&p->w, p->start_ms + duration_ms(p, p->word[1]));
		p->words -= 2;
		memmove(p->word, p->word + 2, p->words * sizeof p->word[0]);
		if (!p->words)
			return;
	}
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		if (strcmp(commands[i].word, p->word[0]))
			continue;
		if (!commands[i].setup)
			start(p);
		commands[i].fn(p);
		return;
	}
	fail(p, "\"%s\" is not a command", p->word[0]);
}

static void play_file(const char *file)
{
	struct play p = { .file = file };
	char line[4096];
	FILE *f = fopen(file, "r");
	if (!f) {
		fprintf(stderr, "scenario: %s: cannot be opened\n", file);
		exit(1);
	}
	world_init(&p.w);
	p.w.run_sec = run_sec;
	p.w.arg = &p;
	while (fgets(line, sizeof line, f)) {
		p.line++;
		line[strcspn(line, "\n")] = 0;
		split(&p, line);
		if (p.words)
			run_words(&p);
	}
	fclose(f);
	for (size_t i = 0; i < p.names; i++)
		free(p.name[i].text);
	free(p.name);
	zone_forget(&p);
	world_fini(&p.w);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: scenario FILE...\n");
		return 1;
	}
	for (int i = 1; i < argc; i++)
		play_file(argv[i]);
	printf("%d scenarios hold\n", argc - 1);
	return 0;
}
