/* scenario_submit.c - scenario files: submit and alloc, with what they say of the job */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/states.h"
#include "sim/play.h"

struct field { const char *key; enum { F_TEXT, F_U32, F_U64, F_FLAG } kind; size_t at, has; };
#define TEXT(key, f) { key, F_TEXT, offsetof(Pb__JobDesc, f), 0 }
#define U32(key, f) { key, F_U32, offsetof(Pb__JobDesc, f), offsetof(Pb__JobDesc, has_##f) }
#define U64(key, f) { key, F_U64, offsetof(Pb__JobDesc, f), offsetof(Pb__JobDesc, has_##f) }
#define FLAG(key, f) { key, F_FLAG, offsetof(Pb__JobDesc, f), offsetof(Pb__JobDesc, has_##f) }
static const struct field fields[] = {
	U32("nodes", min_nodes), U32("maxnodes", max_nodes), U32("tasks", num_tasks), U32("cpus", cpus_per_task), U32("pernode", ntasks_per_node),
	U32("mincpus", min_cpus_node), U64("mem", mem_per_node), U64("memcpu", mem_per_cpu), U32("time", time_limit_min), TEXT("gres", tres_per_node),
	TEXT("gpus", tres_per_job), TEXT("gpustask", tres_per_task), TEXT("cpusgpu", cpus_per_tres), TEXT("memgpu", mem_per_tres), TEXT("features", features), TEXT("prefer", prefer),
	TEXT("w", req_nodes), TEXT("x", exc_nodes), TEXT("dep", dependency), TEXT("array", array), U32("prio", priority), FLAG("hold", hold),
	FLAG("requeue", requeue), FLAG("contiguous", contiguous), FLAG("overcommit", overcommit), TEXT("exclusive", exclusive), TEXT("account", account),
	TEXT("qos", qos), TEXT("host", alloc_node), TEXT("partition", partition), TEXT("name", name), FLAG("killdep", kill_on_invalid_dep), U32("immediate", immediate_sec),
	TEXT("licenses", licenses), TEXT("reservation", reservation), U32("sockets", sockets_per_node), TEXT("comment", comment), TEXT("warn", signal), TEXT("mail", mail_type), TEXT("acctgfreq", acctg_freq),
	U32("cores", cores_per_socket), U32("threads", threads_per_core), U32("persocket", ntasks_per_socket), U32("percore", ntasks_per_core), TEXT("gpussocket", tres_per_socket),
	U64("tmp", tmp_disk), U32("timemin", time_min_min), FLAG("oversubscribe", oversubscribe), FLAG("usemin", use_min_nodes), FLAG("spread", spread_job), TEXT("dist", distribution), TEXT("hosts", arbitrary_hosts),
	TEXT("gresflags", gres_flags), FLAG("nokill", no_kill), TEXT("prefer", prefer), U32("switches", switches), U32("corespec", core_spec), TEXT("mcslabel", mcs_label), U32("threadspec", thread_spec), U32("switchwait", switches_wait_sec), U32("segment", segment), FLAG("consolidate", consolidate_segments), FLAG("spreadsegments", spread_segments),
};

static void desc_fill(struct play *p, Pb__JobDesc *d)
{
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		const char *v = opt(p, fields[i].key);
		char *at = (char *)d + fields[i].at;
		if (!v)
			continue;
		switch (fields[i].kind) {
		case F_TEXT: *(const char **)at = v; continue;
		case F_U32: *(uint32_t *)at = num(p, v); break;
		case F_U64: *(uint64_t *)at = num(p, v); break;
		case F_FLAG: *(protobuf_c_boolean *)at = num(p, v) != 0; break;
		}
		*(protobuf_c_boolean *)((char *)d + fields[i].has) = true;
	}
	if (opt(p, "begin")) {
		d->has_begin_time = true;
		d->begin_time = (p->start_ms + duration_ms(p, opt(p, "begin"))) / 1000;
	}
	if (opt(p, "deadline")) {
		d->has_deadline = true;
		d->deadline = (p->start_ms + duration_ms(p, opt(p, "deadline"))) / 1000;
	}
	if (opt(p, "nice")) {
		long long n;
		if (str_to_i64(opt(p, "nice"), -1000000, 1000000, &n) < 0)
			fail(p, "nice=%s", opt(p, "nice"));
		d->has_nice = true;
		d->nice = (int32_t)n;
	}
}

/* dep=afterok:a,after:b_2 -> with ids. */
char *dependency(struct play *p, const char *text)
{
	struct str s = STR_INIT;
	while (text && *text) {
		size_t n = strcspn(text, ":,?+");
		char one[128];
		snprintf(one, sizeof one, "%.*s", (int)n, text);
		char *task = strchr(one, '_');
		if (task)
			*task = 0;
		struct name *j = find(p, one);
		if (j)
			str_addf(&s, "%u%s%s", j->id, task ? "_" : "", task ? task + 1 : "");
		else {
			if (task)
				*task = '_';
			str_add(&s, one);
		}
		text += n;
		if (*text)
			str_add_c(&s, *text++);
	}
	return s.len ? str_take(&s) : NULL;
}

/* ended=a:COMPLETED,b_2:FAILED: what accounting says of jobs that are forgotten. */
static size_t ended_fill(struct play *p, const char *text, struct core_ended *list)
{
	size_t n = 0;
	char *ids = dependency(p, text), *save = NULL;
	for (char *one = ids ? strtok_r(ids, ",", &save) : NULL; one && n < WORDS_MAX; one = strtok_r(NULL, ",", &save)) {
		struct core_ended *e = &list[n++];
		bool is_flag;
		char *colon = strchr(one, ':'), *task = strchr(one, '_');
		if (!colon || job_state_parse(colon + 1, &is_flag, &e->state))
			fail(p, "ended=%s: a name, a colon and a state are expected", text);
		e->job_id = num(p, (*colon = 0, task ? (*task = 0, one) : one));
		e->has_task = task != NULL;
		e->task = task ? num(p, task + 1) : 0;
		e->start_sec = (uint32_t)(p->start_ms / 1000);
	}
	free(ids);
	return n;
}

/* ":" begins the next component of a heterogeneous job. */
static size_t more_fill(struct play *p, Pb__JobDesc *d, Pb__JobDesc **list)
{
	size_t n = 0;
	for (size_t i = 2; i < p->words; i++) {
		if (strcmp(p->word[i], ":"))
			continue;
		p->from = i + 1;
		for (p->to = i + 1; p->to < p->words && strcmp(p->word[p->to], ":"); p->to++)
			;
		pb__job_desc__init(&d[n]);
		desc_fill(p, &d[n]);
		list[n] = &d[n];
		n++;
	}
	p->from = p->to = 0;
	return n;
}

static void submit(struct play *p, bool batch)
{
	Pb__JobDesc d = PB__JOB_DESC__INIT, more[WORDS_MAX], *list[WORDS_MAX];
	uint8_t key[16] = { 0 }, hash[32] = { 0 };
	struct core_event ev = world_event(&p->w, EV_SUBMIT, uid_of(p));
	const char *name = word(p, 1);
	for (p->to = 0; p->to < p->words && strcmp(p->word[p->to], ":"); p->to++)
		;
	desc_fill(p, &d);
	ev.submit.more = list;
	ev.submit.more_n = more_fill(p, more, list);
	for (size_t i = 0; i < ev.submit.more_n; i++) {
		more[i].name = (char *)name;
		more[i].has_batch = true;
		more[i].batch = batch;
	}
	if (!d.name)
		d.name = (char *)name;
	struct core_ended ended[WORDS_MAX] = { 0 };
	char *dep = dependency(p, d.dependency);
	ev.ended = ended;
	ev.ended_n = ended_fill(p, opt(p, "ended"), ended);
	d.dependency = dep;
	d.has_batch = true;
	d.batch = batch;
	if (opt(p, "key")) {
		memset(key, opt(p, "key")[0], sizeof key);
		memset(hash, num(p, opt(p, "hash") ? opt(p, "hash") : "0") & 255, sizeof hash);
		ev.submit.idem_key = key;
		ev.submit.idem_hash = hash;
	}
	ev.submit.desc = &d;
	ev.submit.test_only = has(p, "test");
	ev.submit.has_script = batch;
	struct name *n = find(p, name);
	if (!n)
		n = name_add(p, name);
	n->run_sec = opt(p, "run") ? (uint32_t)(duration_ms(p, opt(p, "run")) / 1000) : 0;
	n->id = 0;
	for (const struct core_job *last = NULL;;) { /* the id it will get is needed by run_sec already */
		uint64_t cur = 0;
		const struct core_job *j;
		while ((j = core_job_next(p->w.core, &cur)))
			last = j;
		n->id = last ? core_job_id(last) + 1 : 1;
		break;
	}
	world_step(&p->w, &ev);
	const Pb__SubmitRsp *r = (const Pb__SubmitRsp *)world_answer(&p->w, ev.token);
	if (!r)
		fail(p, "no answer to the submission");
	take_result(p, r->code, r->detail);
	n->id = r->has_job_id ? r->job_id : 0;
	p->last_token = ev.token;
	free(dep);
	if (r->code && !has(p, "refused"))
		fail(p, "refused: %u %s", r->code, r->detail ? r->detail : error_text((int)r->code));
}

void do_submit(struct play *p) { submit(p, true); }
void do_alloc(struct play *p) { submit(p, false); }
