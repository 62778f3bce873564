/* update.c - scontrol update job, driven by tables/update_job.def
 * Values are read into a copy of the request first; if any is wrong nothing changes. Then the job's shape is made anew and it takes its
 * place in the queue again. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/change.h"
#include "core/reserve.h"

enum who { WHO_PEND, WHO_ANY, WHO_OPER };
struct change { struct core *c; struct core_job *j; const struct core_event *ev; Pb__JobDesc *d; bool reshape, depend, licenses, has_site, accrue; int32_t site; struct error *err; uint32_t throttle; bool has_throttle, now, time_min; uint64_t mem_less; };
typedef int (*set_fn)(struct change *ch, const char *key, const char *v, size_t at, size_t has);

static int bad(struct change *ch, const char *key, const char *v, const char *want)
{
	return error_set(ch->err, ESLURM_INVALID_UPDATE, "%s=%s: %s is expected", key, v, want);
}

static char **text_at(struct change *ch, size_t at) { return (char **)((char *)ch->d + at); }
static void flag_set(struct change *ch, size_t has) { *(protobuf_c_boolean *)((char *)ch->d + has) = true; }

static int set_TEXT(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	(void)key;
	(void)has;
	xstr_set(text_at(ch, at), v[0] ? v : NULL);
	return 0;
}

static int set_WORD(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	ch->reshape = true;
	return set_TEXT(ch, key, v, at, has);
}

/* GRES as placement and show job name them: "gpu:1" is "gres/gpu:1". */
static int set_GRES(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	struct str s = STR_INIT;
	char *copy = xstrdup(v), *rest = copy, *one;
	while ((one = str_next(&rest, ","))) {
		if (*one) {
			str_add_sep(&s, ",", str_starts(one, "gres/") ? "" : "gres/");
			str_add(&s, one);
		}
	}
	int r = set_WORD(ch, key, s.len ? s.data : "", at, has);
	free(copy);
	str_fini(&s);
	return r;
}

static int set_NUM(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	unsigned long long n;
	if (str_to_u64(v, 1, 1000000, &n) < 0)
		return bad(ch, key, v, "a positive number");
	*(uint32_t *)((char *)ch->d + at) = (uint32_t)n;
	flag_set(ch, has);
	ch->reshape = true;
	return 0;
}

static int set_CPUS(struct change *ch, const char *key, const char *v, size_t at, size_t has) { return set_NUM(ch, key, v, at, has); }
static int set_MAIL(struct change *ch, const char *key, const char *v, size_t at, size_t has) { return set_TEXT(ch, key, v, at, has); }

static int set_COUNT(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	if (!strcmp(v, "0"))
		return error_set(ch->err, ESLURM_INVALID_CPU_COUNT, "%s=0: one at least", key);
	return set_NUM(ch, key, v, at, has);
}

/* Minutes, as every limit; of a job for which nodes are booted. */
static int set_DELAY(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	uint32_t minutes;
	if (timespec_parse_mins(v, &minutes, NULL) < 0 || minutes > UINT32_MAX / 60)
		return bad(ch, key, v, "a time");
	*(uint32_t *)((char *)ch->d + at) = minutes * 60;
	flag_set(ch, has);
	return 0;
}

static int set_NODES(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	unsigned long long lo, hi;
	char *copy = xstrdup(v), *dash = strchr(copy, '-');
	if (dash)
		*dash++ = 0;
	bool ok = str_to_u64(copy, 1, 1000000, &lo) == 0 && (!dash || str_to_u64(dash, 1, 1000000, &hi) == 0);
	free(copy);
	if (!dash && !strcmp(v, "0"))
		return error_set(ch->err, ESLURM_INVALID_NODE_COUNT, "a job of 0 nodes is not possible");
	if (ok && dash && hi < lo)
		return error_set(ch->err, ESLURM_INVALID_NODE_COUNT, "Maximum node count %llu is less than minimum node count %llu", hi, lo);
	if (!ok)
		return bad(ch, key, v, "a number of nodes, or MIN-MAX");
	ch->d->has_min_nodes = ch->d->has_max_nodes = true;
	ch->d->min_nodes = (uint32_t)lo;
	ch->d->max_nodes = (uint32_t)(dash ? hi : lo);
	ch->reshape = true;
	(void)at;
	(void)has;
	return 0;
}

static int set_MEM(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	uint64_t mb;
	if (mem_parse(v, &mb, NULL) < 0)
		return bad(ch, key, v, "an amount of memory");
	*(uint64_t *)((char *)ch->d + at) = mb;
	flag_set(ch, has);
	ch->reshape = true;
	return 0;
}

/* Of a job that has started: no more than it has where it has most. */
static int set_MEM_NODE(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	const struct alloc *a = ch->j->alloc;
	uint64_t most = 0;
	ch->d->has_mem_per_cpu = false;
	int r = set_MEM(ch, key, v, at, has);
	if (r < 0 || ch->j->state == PB__JOB_STATE__PENDING)
		return r;
	for (uint32_t i = 0; a && i < a->n; i++)
		most = a->on[i].mem > most ? a->on[i].mem : most;
	ch->mem_less = ch->d->mem_per_node;
	if (!ch->mem_less || ch->mem_less > most)
		return error_set(ch->err, ESLURM_INVALID_TASK_MEMORY, "job %u has started: it may be given less memory than the %llu MB it has on a node, not more", ch->j->id, (unsigned long long)most);
	return 0;
}

static int set_MEM_CPU(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	if (ch->j->state != PB__JOB_STATE__PENDING)
		return error_set(ch->err, ESLURM_INVALID_TASK_MEMORY, "job %u has started: MinMemoryNode gives it less memory", ch->j->id);
	ch->d->has_mem_per_node = false;
	return set_MEM(ch, key, v, at, has);
}

/* Told to the nodes too, whose cgroups hold it to that. Steps that run keep what their records say. */
static void mem_apply(struct core *c, struct core_job *j, uint64_t mem)
{
	struct arena *a = fx_arena(c);
	Pb__JobMemReq *m = arena_alloc(a, sizeof *m);
	if (!mem || !j->alloc)
		return;
	acct_uncount(c, j);
	for (uint32_t i = 0; i < j->alloc->n; i++)
		node_mem_less(c, j, i, mem);
	acct_count(c, j);
	pb__job_mem_req__init(m);
	m->job_id = j->id;
	m->restarts = j->restarts;
	m->mem = mem;
	char *nodes = job_nodes_text(c, j);
	fx_to_nodes(c, FX_MEMORY, j->id, nodes, m);
	free(nodes);
}

static int set_YES(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	bool yes = !strcasecmp(v, "yes") || !strcasecmp(v, "y") || !strcmp(v, "1"), no = !strcasecmp(v, "no") || !strcasecmp(v, "n") || !strcmp(v, "0");
	if (!yes && !no)
		return bad(ch, key, v, "yes or no");
	*(protobuf_c_boolean *)((char *)ch->d + at) = yes;
	flag_set(ch, has);
	ch->reshape = true;
	return 0;
}

static int set_REQUEUE(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	bool old = ch->reshape;
	int r = set_YES(ch, key, v, at, has);
	ch->reshape = old;
	return r;
}

/* "2" or "2@10:00": leaf switches, and how long the job waits for so few. 0: as many as there are. */
static int set_SWITCHES(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	unsigned long long n;
	uint32_t sec = 0;
	char *copy = xstrdup(v), *wait = strchr(copy, '@');
	if (wait)
		*wait++ = 0;
	bool ok = str_to_u64(copy, 0, INT32_MAX, &n) == 0 && (!wait || timespec_parse_secs(wait, &sec, NULL) == 0);
	free(copy);
	if (!ok)
		return bad(ch, key, v, "a number of switches, or NUMBER@TIME");
	(void)at;
	(void)has;
	ch->d->has_switches = n > 0;
	ch->d->switches = (uint32_t)n;
	ch->d->has_switches_wait_sec = n && wait;
	ch->d->switches_wait_sec = sec;
	ch->reshape = true;
	return 0;
}

static int set_SWITCH_WAIT(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	(void)at;
	if (timespec_parse_secs(v, &ch->d->switches_wait_sec, NULL) < 0)
		return bad(ch, key, v, "a time");
	flag_set(ch, has);
	ch->reshape = true;
	return 0;
}

/* Of another user's job an operator cannot know the groups: his own are looked at. */
static int set_MCS(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	Pb__JobDesc d = *ch->d;
	struct core_caller by = ch->ev->by;
	by.user = atom_text(ch->c, ch->j->user);
	d.mcs_label = (char *)(uintptr_t)v;
	int r = company_label(ch->c, &by, &d, ch->err);
	return r < 0 ? r : set_WORD(ch, key, d.mcs_label ? d.mcs_label : "", at, has);
}

/* One of the two: cores, or threads. -1 takes it back; the job keeps its nodes alone. */
static int set_SPEC(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	unsigned long long n = 0;
	bool none = !strcmp(v, "-1");
	if (!ch->c->params.allow_spec)
		return error_set(ch->err, ESLURM_ACCESS_DENIED, "AllowSpecResourcesUsage is not set");
	if (!none && str_to_u64(v, 0, 65533, &n) < 0)
		return bad(ch, key, v, "a number");
	ch->d->has_core_spec = ch->d->has_thread_spec = false;
	ch->d->core_spec = ch->d->thread_spec = 0;
	*(uint32_t *)((char *)ch->d + at) = (uint32_t)n;
	*(protobuf_c_boolean *)((char *)ch->d + has) = !none;
	xstr_set(&ch->d->exclusive, "node");
	ch->d->has_oversubscribe = ch->d->oversubscribe = false;
	ch->reshape = true;
	return 0;
}

/* As sbatch --tres-bind: "gres/gpu:closest"; of steps, placement does not look at it. */
static int set_TRES_BIND(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	static const char *const kind[] = { "closest", "map:", "mask:", "none", "per_task:", "single:", "verbose,", "v," };
	bool ok = !v[0];
	for (size_t i = 0; str_starts(v, "gres/gpu:") && i < sizeof kind / sizeof *kind; i++)
		ok = ok || str_starts(v + strlen("gres/gpu:"), kind[i]);
	if (!ok)
		return error_set(ch->err, ESLURM_INVALID_TRES, "%s=%s: it looks like gres/gpu:single:2", key, v);
	return set_TEXT(ch, key, v, at, has);
}

/* The time it has waited does not count any more. */
static int set_ACCRUE(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	(void)key;
	(void)v;
	(void)at;
	(void)has;
	ch->accrue = true;
	return 0;
}

static int set_TIME_LIMIT(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	uint32_t min, old = ch->j->time_min;
	char sign = v[0] == '+' || v[0] == '-' ? *v++ : 0;
	(void)at;
	(void)has;
	if (timespec_parse_mins(v, &min, NULL) < 0)
		return bad(ch, key, v, "a time limit");
	if (sign && (old == TIME_INFINITE || min == TIME_INFINITE))
		return error_set(ch->err, ESLURM_TIME_LIMIT_CHANGE, "Cannot increment/decrement TimeLimit when set to UNLIMITED.");
	if (sign == '-' && min >= old)
		return error_set(ch->err, ESLURM_TIME_LIMIT_CHANGE, "TimeLimit decrement larger than current time limit (%u > %u)", min, old);
	if (sign)
		min = sign == '+' ? old + min : old - min;
	if (!min)
		return error_set(ch->err, ESLURM_INVALID_TIME_LIMIT, "a time limit of 0 is not possible");
	if (ch->j->state != PB__JOB_STATE__PENDING && min > old && !ch->ev->by.oper)
		return error_set(ch->err, ESLURM_ACCESS_DENIED, "only operators may raise the limit of a job that has started");
	ch->d->has_time_limit_min = true;
	ch->d->time_limit_min = min;
	ch->reshape = true;
	return 0;
}

static int set_TIME_MIN(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	(void)at;
	(void)has;
	if (timespec_parse_mins(v, &ch->d->time_min_min, NULL) < 0)
		return bad(ch, key, v, "a time");
	if (ch->j->het && ch->d->time_min_min)
		return error_set(ch->err, ESLURM_NOT_SUPPORTED, "TimeMin is not supported yet for heterogeneous jobs");
	ch->d->has_time_min_min = true;
	ch->reshape = true;
	ch->time_min = true;
	return 0;
}

static int parse_when(struct change *ch, const char *key, const char *v, time_t *ret)
{
	if (timespec_parse_when(v, (time_t)now_sec(ch->c), 0, ret, NULL) < 0)
		return bad(ch, key, v, "a point in time");
	return 0;
}

static int set_END_TIME(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	time_t t;
	(void)at;
	(void)has;
	if (parse_when(ch, key, v, &t) < 0)
		return ch->err->code;
	if (ch->j->state != PB__JOB_STATE__RUNNING)
		return error_set(ch->err, ESLURM_NOT_RUNNING, "Job is not running");
	if (t <= (time_t)ch->j->start)
		return error_set(ch->err, ESLURM_INVALID_TIME_LIMIT, "EndTime must be after the start of the job");
	ch->d->has_time_limit_min = true;
	ch->d->time_limit_min = (uint32_t)((t - (time_t)ch->j->start + 59) / 60);
	ch->reshape = true;
	return 0;
}

static int set_BEGIN(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	time_t t;
	(void)at;
	(void)has;
	if (parse_when(ch, key, v, &t) < 0)
		return ch->err->code;
	ch->d->has_begin_time = true;
	ch->d->begin_time = (uint64_t)t;
	ch->reshape = true;
	return 0;
}

static int set_DEADLINE(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	time_t t;
	(void)at;
	(void)has;
	if (parse_when(ch, key, v, &t) < 0)
		return ch->err->code;
	if ((uint64_t)t * 1000 <= ch->c->now_ms)
		return error_set(ch->err, ESLURM_INVALID_TIME, "Deadline=%s is past", v);
	ch->d->has_deadline = true;
	ch->d->deadline = (uint64_t)t;
	return 0;
}

static int set_PRIORITY(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	unsigned long long n;
	(void)at;
	(void)has;
	if (!strcasecmp(v, "INFINITE"))
		v = "4294967294";
	if (str_to_u64(v, 0, UINT32_MAX - 1, &n) < 0)
		return bad(ch, key, v, "a number");
	if (n && ch->j->hold)
		return error_set(ch->err, ESLURM_JOB_HELD, "%s", error_text(ESLURM_JOB_HELD));
	ch->d->has_priority = true;
	ch->d->priority = (uint32_t)n;
	ch->now = true;
	return 0;
}

static int set_NICE(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	long long n;
	(void)at;
	(void)has;
	if (str_to_i64(v, -2147483645, 2147483645, &n) < 0)
		return bad(ch, key, v, "a number");
	if (n < 0 && !ch->ev->by.oper)
		return error_set(ch->err, ESLURM_ACCESS_DENIED, "only operators may set a negative nice");
	ch->d->has_nice = true;
	ch->d->nice = (int32_t)n;
	ch->reshape = true;
	return 0;
}

static int set_LICENSES(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	struct lic_wants l;
	int r = license_parse(ch->c, v, &l, ch->err);
	if (r >= 0)
		r = license_check(ch->c, &l, ch->err);
	if (r >= 0 && ch->j->state != PB__JOB_STATE__PENDING && !ch->ev->by.oper)
		r = error_set(ch->err, ESLURM_ACCESS_DENIED, "only operators may change the licenses of a job that has started");
	license_wants_fini(&l);
	ch->licenses = true;
	return r < 0 ? r : set_WORD(ch, key, v, at, has);
}

/* Of a job that has started: others instead of those it holds. */
static int licenses_apply(struct change *ch)
{
	struct lic_wants l;
	if (!ch->licenses || ch->j->state == PB__JOB_STATE__PENDING)
		return 0;
	int r = license_parse(ch->c, ch->d->licenses, &l, ch->err);
	if (r >= 0)
		r = license_retake(ch->c, ch->j, &l, ch->err);
	license_wants_fini(&l);
	return r;
}

static int set_SITE(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	long long n;
	(void)at;
	(void)has;
	if (str_to_i64(v, -2147483645, 2147483645, &n) < 0)
		return bad(ch, key, v, "a number");
	ch->site = (int32_t)n;
	ch->has_site = true;
	return 0;
}

static int set_DEPEND(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	ch->depend = true;
	return set_TEXT(ch, key, v, at, has);
}

static int set_THROTTLE(struct change *ch, const char *key, const char *v, size_t at, size_t has)
{
	unsigned long long n;
	(void)at;
	(void)has;
	if (!ch->j->array)
		return error_set(ch->err, ESLURM_RESERVATION_NOT_SUPPORTED, "Update of ArrayTaskThrottle is only allowed on ArrayJobId");
	if (str_to_u64(v, 0, 1000000, &n) < 0)
		return bad(ch, key, v, "a number of tasks");
	ch->has_throttle = true;
	ch->throttle = (uint32_t)n;
	return 0;
}

static const struct { const char *key; set_fn fn; size_t at, has; enum who who; } update_table[] = {
#define HAS_TEXT(f) 0
#define UPDATE_JOB(key, kind, field, who) { key, set_##kind, offsetof(Pb__JobDesc, field), HAS_##kind(field), WHO_##who },
#define HAS_NUMBER(f) offsetof(Pb__JobDesc, has_##f)
#define HAS_WORD HAS_TEXT
#define HAS_GRES HAS_TEXT
#define HAS_DEPEND HAS_TEXT
#define HAS_SITE HAS_TEXT
#define HAS_LICENSES HAS_TEXT
#define HAS_THROTTLE HAS_TEXT
#define HAS_TRES_BIND HAS_TEXT
#define HAS_MCS HAS_TEXT
#define HAS_ACCRUE HAS_TEXT
#define HAS_MAIL HAS_TEXT
#define HAS_CPUS HAS_NUMBER
#define HAS_COUNT HAS_NUMBER
#define HAS_DELAY HAS_NUMBER
#define HAS_SPEC HAS_NUMBER
#define HAS_SWITCHES HAS_NUMBER
#define HAS_SWITCH_WAIT HAS_NUMBER
#define HAS_NUM HAS_NUMBER
#define HAS_NODES HAS_NUMBER
#define HAS_MEM HAS_NUMBER
#define HAS_MEM_NODE HAS_NUMBER
#define HAS_MEM_CPU HAS_NUMBER
#define HAS_YES HAS_NUMBER
#define HAS_REQUEUE HAS_NUMBER
#define HAS_TIME_LIMIT HAS_NUMBER
#define HAS_TIME_MIN HAS_NUMBER
#define HAS_END_TIME HAS_NUMBER
#define HAS_BEGIN HAS_NUMBER
#define HAS_DEADLINE HAS_NUMBER
#define HAS_PRIORITY HAS_NUMBER
#define HAS_NICE HAS_NUMBER
#include "tables/update_job.def"
#undef UPDATE_JOB
};

static int key_apply(struct change *ch, const char *key, const char *v)
{
	const struct core_job *j = ch->j;
	v = v ? v : "";
	for (size_t i = 0; i < sizeof update_table / sizeof update_table[0]; i++) {
		if (strcasecmp(update_table[i].key, key))
			continue;
		if (update_table[i].who == WHO_OPER && !ch->ev->by.oper && !(!strcasecmp(key, "Priority") && !strcmp(v, "0")))
			return error_set(ch->err, ESLURM_ACCESS_DENIED, "only operators may change %s", update_table[i].key);
		if (update_table[i].who == WHO_PEND && j->state != PB__JOB_STATE__PENDING)
			return error_set(ch->err, ESLURM_JOB_NOT_PENDING, "%s of job %u cannot change any more: it has started", update_table[i].key, j->id);
		return update_table[i].fn(ch, update_table[i].key, v, update_table[i].at, update_table[i].has);
	}
	return error_set(ch->err, ESLURM_INVALID_UPDATE, "job key \"%s\" is not known or cannot be changed yet", key);
}

static int possible_now(struct core *c, struct core_job *j, struct error *err)
{
	struct shape *s = j->shape;
	int r = shape_check_possible(c, s, err);
	s->possible = r < 0 ? (int)err->code : r;
	s->possible_gen = c->config_gen;
	return r < 0 ? r : 0;
}

/* Another account or QOS: may the job's user? */
static int acct_changed(struct change *ch)
{
	struct core_caller by = { .user = atom_text(ch->c, ch->j->user) };
	Pb__JobDesc k = *ch->d;
	int r = acct_submit(ch->c, &by, &k, fx_arena(ch->c), ch->err);
	if (r < 0)
		return r;
	if (k.account != ch->d->account)
		xstr_set(&ch->d->account, k.account);
	if (k.qos != ch->d->qos)
		xstr_set(&ch->d->qos, k.qos);
	ch->reshape = true;
	return 0;
}

/* The job as the new request says; on failure as the old one did. */
static int change_apply(struct change *ch)
{
	struct core *c = ch->c;
	struct core_job *j = ch->j;
	Pb__JobDesc *old = job_desc(j);
	int r = ch->time_min && ch->d->time_min_min > j->time_min && !ch->d->has_time_limit_min ? error_set(ch->err, ESLURM_INVALID_TIME_MIN, "TimeMin is above the time limit of the job") : 0;
	if (ch->time_min && ch->d->has_time_limit_min && ch->d->time_min_min > ch->d->time_limit_min)
		r = error_set(ch->err, ESLURM_INVALID_TIME_MIN, "TimeMin of %u minutes is above the time limit of %u", ch->d->time_min_min, ch->d->time_limit_min);
	if (r >= 0)
		r = licenses_apply(ch);
	if (r >= 0 && ch->reshape && ch->d->partition) {
		struct arena *a = fx_arena(c);
		Pb__JobDesc k = *ch->d;
		if ((r = submit_defaults(c, &k, a, ch->err)) >= 0)
			xstr_set(&ch->d->partition, k.partition);
	}
	if (r >= 0 && (!str_eq(old->account, ch->d->account) || !str_eq(old->qos, ch->d->qos)))
		r = acct_changed(ch);
	if (r >= 0 && ch->reshape && j->state == PB__JOB_STATE__PENDING)
		r = resv_submit_check(c, j, ch->d, ch->err);
	if (r >= 0 && ch->reshape)
		r = job_reshape(c, j, ch->d, ch->err);
	if (r >= 0 && ch->reshape && j->state == PB__JOB_STATE__PENDING && (r = possible_now(c, j, ch->err)) < 0)
		(void)job_reshape(c, j, old, NULL);
	if (r >= 0 && ch->depend)
		r = depend_set(c, j, ch->d->dependency ? ch->d->dependency : "", ch->err);
	if (r >= 0) {
		job_set_desc(j, ch->d);
		j->nice = ch->d->nice;
		j->begin = sec_last(ch->d->begin_time);
		j->deadline = sec_deadline(ch->d->deadline);
		mail_parse(j, ch->d->mail_type);
		if (ch->d->has_requeue)
			j->requeue = ch->d->requeue;
	}
	pb__job_desc__free_unpacked(old, NULL);
	return r;
}

static void priority_apply(struct core *c, struct change *ch)
{
	struct core_job *j = ch->j;
	if (!ch->d->priority) {
		j->hold = held_by_admin(j, &ch->ev->by) ? REASON_HELD_ADMIN : REASON_HELD_USER;
		return;
	}
	j->hold = REASON_NONE;
	j->prio_set = true;
	j->prio = ch->d->priority;
	j->prio_at = now_sec(c);
}

static int update_one(struct core *c, struct core_job *j, const struct core_event *ev, struct error *err)
{
	const Pb__JobUpdateReq *q = ev->job_update;
	struct change ch = { .c = c, .j = j, .ev = ev, .err = err };
	int r = 0;
	if (!acct_may(c, &ev->by, j))
		return error_set(err, ESLURM_INVALID_USER_ID, "job %u belongs to another user", j->id);
	if (job_state_is_final(j->state))
		return error_set(err, ESLURM_JOB_FINISHED, "job %u has ended", j->id);
	ch.d = job_desc(j);
	for (size_t i = 0; r >= 0 && i < q->n_set; i++)
		r = key_apply(&ch, q->set[i]->key, q->set[i]->value);
	if (r >= 0)
		r = change_apply(&ch);
	if (r >= 0) {
		if (ch.has_site)
			j->site = ch.site;
		mem_apply(c, j, ch.mem_less);
		if (ch.now)
			priority_apply(c, &ch);
		if (ch.accrue)
			j->accrue = j->accrue ? now_sec(c) : 0;
		if (j->state != PB__JOB_STATE__PENDING)
			job_set_limit_timer(c, j);
		if (ch.has_throttle) {
			j->array->max_running = ch.throttle;
			array_throttled(c, j->array);
		}
		fx_persist(c, j);
	}
	queue_update(c, j);
	pb__job_desc__free_unpacked(ch.d, NULL);
	return r;
}

/* JobName= with UserID=: everything of that name that has not ended. */
static void by_name(struct core *c, const Pb__JobUpdateReq *q, uint32_t **id, size_t *n)
{
	size_t cap = 0;
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(c, &cur);
		if (!j)
			break;
		if (job_state_is_final(j->state) || (q->has_uid && j->uid != q->uid) || !job_desc_str_eq(j, 1, q->name))
			continue;
		*id = xgrow(*id, &cap, *n + 1, sizeof **id);
		(*id)[(*n)++] = j->id;
	}
}

static void result_add(struct core *c, Pb__ResultList *list, size_t cap, uint32_t id, const struct error *err)
{
	struct arena *a = fx_arena(c);
	Pb__Result *r = arena_alloc(a, sizeof *r);
	assert(list->n_result < cap);
	pb__result__init(r);
	r->code = (uint32_t)-err->code;
	r->detail = err->line[0] ? arena_strdup(a, err->line) : NULL;
	r->has_job_id = true;
	r->job_id = id;
	list->result[list->n_result++] = r;
}

static void update_ids(struct core *c, const struct core_event *ev, uint32_t *id, size_t n, uint32_t named, struct error *err, Pb__ResultList *list)
{
	struct arena *a = fx_arena(c);
	size_t cap = list->n_result + n + 1;
	Pb__Result **more = arena_alloc(a, cap * sizeof *more);
	if (list->n_result)
		memcpy(more, list->result, list->n_result * sizeof *more);
	list->result = more;
	if (!n)
		result_add(c, list, cap, named, err);
	for (size_t i = 0; i < n; i++) {
		struct core_job *j = job_find(c, id[i]);
		struct error e = { 0 };
		if (!j || (n > 1 && job_state_is_final(j->state)))
			continue;
		(void)update_one(c, j, ev, &e);
		result_add(c, list, cap, j->id, &e);
	}
}

/* "5.0": only the time limit of a step can be changed, by its owner too; it counts from the step's start. */
static int update_step(struct core *c, const struct core_event *ev, const struct selector *s, struct core_job *j, struct error *err)
{
	const Pb__JobUpdateReq *q = ev->job_update;
	struct step *st = j ? step_find(j, s->step) : NULL;
	uint32_t min = 0;
	if (!st || st->done)
		return error_set(err, ESLURM_INVALID_JOB_ID, "no such step runs");
	if (!acct_may(c, &ev->by, j))
		return error_set(err, ESLURM_INVALID_USER_ID, "job %u belongs to another user", j->id);
	for (size_t i = 0; i < q->n_set; i++) {
		if (strcasecmp(q->set[i]->key, "TimeLimit"))
			return error_set(err, ESLURM_INVALID_UPDATE, "%s of a step cannot be changed: only TimeLimit can", q->set[i]->key);
		if (timespec_parse_mins(q->set[i]->value, &min, NULL) < 0 || !min)
			return error_set(err, ESLURM_INVALID_TIME_LIMIT, "TimeLimit=%s: a time limit is expected", q->set[i]->value);
		st->time_min = min;
		st->kill_ms = min == TIME_INFINITE ? 0 : st->start_ms + min * 60000ull;
		if (st->kill_ms)
			timer_add(c, st->kill_ms, TIMER_STEP, j->id, st->id);
	}
	return 0;
}

void job_update(struct core *c, const struct core_event *ev)
{
	const Pb__JobUpdateReq *q = ev->job_update;
	Pb__ResultList *list = arena_alloc(fx_arena(c), sizeof *list);
	pb__result_list__init(list);
	for (size_t i = 0; i < q->n_id; i++) {
		struct selector s = { 0 };
		struct error err = { 0 };
		uint32_t *id = NULL;
		size_t n = 0;
		bool throttle_only = q->n_set == 1 && !strcasecmp(q->set[0]->key, "ArrayTaskThrottle");
		if (selector_parse(c, q->id[i], &s, &err) >= 0 && selector_jobs(c, &s, true, &id, &n, &err) >= 0 && throttle_only)
			n = n > 1 ? 1 : n; /* it belongs to the array, whichever record is named */
		if (s.has_step && !err.code)
			(void)update_step(c, ev, &s, n == 1 ? job_find(c, id[0]) : NULL, &err);
		update_ids(c, ev, id, s.has_step ? 0 : n, s.id, &err, list);
		selector_fini(&s);
		free(id);
	}
	if (!q->n_id && q->name && q->name[0]) {
		struct error err = { 0 };
		uint32_t *id = NULL;
		size_t n = 0;
		by_name(c, q, &id, &n);
		if (!n)
			error_set(&err, ESLURM_INVALID_JOB_ID, "no jobs with user id %u and name %s", q->uid, q->name);
		update_ids(c, ev, id, n, 0, &err, list);
		free(id);
	}
	fx_reply(c, ev->token, list);
}
