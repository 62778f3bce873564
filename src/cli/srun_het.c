/* srun_het.c - heterogeneous jobs in srun: "srun a : b", --het-group
 *
 * A part is a program with its options on one component. Each gets a step of its own, all of one number; to the rest of srun they are one step: one layout in
 * which ranks and nodes count through in the order of the components. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bitset.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/hetopt.h"
#include "cli/srun.h"
#include "model/hostlist.h"
#include "model/idset.h"
#include "model/jobenv.h"

#define GROUPS_MAX 128

bool het_is(const struct srun *s) { return s->part && s->part[0].job && s->part[0].job->has_het_job_id; }

/* --- what is asked for -------------------------------------------------------------------------------- */

static int groups_of(const struct jobopt *k, uint32_t at, struct bitset **ret)
{
	if (!k->het_group) {
		*ret = bitset_create(GROUPS_MAX);
		bitset_set(*ret, at);
		return 0;
	}
	if (idset_parse(k->het_group, GROUPS_MAX, ret, NULL) == 0 && !bitset_empty(*ret))
		return 0;
	log_error("Invalid --het-group value: %s", k->het_group);
	return srun_exit_code(1);
}

static struct part *part_add(struct srun *s, struct jobopt *k, uint32_t group)
{
	size_t at = s->parts++;
	s->part = xrealloc(s->part, s->parts * sizeof(*s->part));
	for (; at > 0 && s->part[at - 1].group > group; at--)
		s->part[at] = s->part[at - 1];
	s->part[at] = (struct part){ .o = k, .group = group, .argc = k->argc, .argv = k->argv };
	return &s->part[at];
}

/* Each part has options of its own: what the environment says differs from component to component. */
static int part_read(struct srun *s, struct part *p, struct error *err)
{
	struct jobopt *k = p->o;
	unsigned group = p->group;
	bool taken = false;
	for (const struct part *q = s->part; q < p; q++)
		taken = taken || q->o == k;
	if (taken) {
		p->o = xcalloc(1, sizeof(*p->o));
		jobopt_init(p->o, JOBOPT_SRUN);
		p->o->more = k->more;
		p->o->more_n = k->more_n;
		p->o->more_take = k->more_take;
		if (jobopt_parse_args(p->o, k->word_n, k->word, err) < 0)
			return jobopt_report(p->o, err);
		xstr_set(&p->o->submit_line, k->submit_line);
	}
	hetopt_environment(getenv("SLURM_HET_SIZE") ? &group : NULL);
	int rc = jobopt_parse_env(p->o, err) < 0 || jobopt_check(p->o, err) < 0 ? jobopt_report(p->o, err) : 0;
	hetopt_environment(NULL);
	return rc;
}

/* A part without a program runs that of the next one. */
static int programs_fill(struct srun *s)
{
	for (size_t i = s->parts; i-- > 0;)
		if (!s->part[i].argc && i + 1 < s->parts) {
			s->part[i].argc = s->part[i + 1].argc;
			s->part[i].argv = s->part[i + 1].argv;
		}
	for (size_t i = 0; i < s->parts; i++)
		if (s->part[i].argc < 1) {
			log_fatal("No command given to execute.");
			return srun_exit_code(1);
		}
	return 0;
}

uint32_t het_own_group(const struct srun *s)
{
	size_t i = 0;
	while (s->part[i].o != &s->o)
		i++;
	return s->part[i].group;
}

int het_parts(struct srun *s)
{
	struct bitset *seen = bitset_create(GROUPS_MAX);
	uint32_t at = 0;
	int rc = 0;
	for (struct jobopt *k = &s->o; k && !rc; k = k->next, at++) {
		struct bitset *groups = NULL;
		rc = at < GROUPS_MAX ? groups_of(k, at, &groups) : srun_exit_code(1);
		for (uint32_t g = 0; !rc && g < GROUPS_MAX; g++) {
			if (!bitset_has(groups, g))
				continue;
			if (bitset_has(seen, g)) {
				log_error("het-group %u is named by more than one program", g);
				rc = srun_exit_code(1);
			}
			bitset_set(seen, g);
			(void)part_add(s, k, g);
		}
		bitset_destroy(groups);
	}
	bitset_destroy(seen);
	return rc;
}

int het_options(struct srun *s)
{
	struct error err = { 0 };
	int rc = 0;
	for (size_t i = s->parts; i-- > 0 && !rc;)
		if (!(s->part[i].o == &s->o && s->part[i].group == het_own_group(s))) /* the command's own are read already */
			rc = part_read(s, &s->part[i], &err);
	return rc ? rc : programs_fill(s);
}

/* --- the jobs ----------------------------------------------------------------------------------------- */

/* All components of the job named by --jobid or SLURM_JOB_ID; NULL: it cannot be had. */
static Pb__AllocInfo *alloc_ask(struct srun *s)
{
	Pb__AllocInfoReq req = PB__ALLOC_INFO_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	req.job_id = s->o.jobid;
	if (client_call(s->client, RPC_ALLOC_INFO, &req.base, 0, &msg, NULL) < 0)
		return NULL;
	return ((Pb__AllocInfoRsp *)msg)->alloc;
}

int het_job_parts(struct srun *s)
{
	struct part *last = &s->part[s->parts - 1];
	bool one = s->parts == 1 && !last->group;
	if (one && !s->alloc && !getenv("SLURM_HET_SIZE")) {
		s->part[0].job_id = s->job_id;
		return 0;
	}
	if (!s->alloc)
		s->alloc = alloc_ask(s);
	size_t most = s->alloc ? s->alloc->n_het : 0;
	if (last->group > most) {
		if (s->parts == 1)
			log_error("Requested het-group offset exceeds highest hetjob index (%u > %zu)", last->group, most);
		else
			log_error("Attempt to run a job step with het group value of %u, but the job allocation has maximum value of %zu", last->group, most);
		return srun_exit_code(1);
	}
	for (size_t i = 0; i < s->parts; i++) {
		struct part *p = &s->part[i];
		p->job = s->alloc ? p->group ? s->alloc->het[p->group - 1]->job : s->alloc->job : NULL;
		p->job_id = p->job ? p->job->job_id : s->job_id;
	}
	return 0;
}

/* --- one step of all ---------------------------------------------------------------------------------- */

static Pb__StepNode *node_shifted(const Pb__StepNode *n, uint32_t by)
{
	Pb__StepNode *copy = xmalloc(sizeof(*copy));
	*copy = *n;
	copy->task_ids = xcalloc(n->n_task_ids + 1, sizeof(*copy->task_ids));
	for (size_t i = 0; i < n->n_task_ids; i++)
		copy->task_ids[i] = n->task_ids[i] + by;
	return copy;
}

/* Lives as long as the process. */
void het_merge(struct srun *s)
{
	static Pb__StepLayout all;
	struct hostlist hl = HOSTLIST_INIT;
	size_t nodes = 0;
	for (size_t i = 0; i < s->parts; i++)
		nodes += s->part[i].step->layout->n_node;
	pb__step_layout__init(&all);
	all.node = xcalloc(nodes + 1, sizeof(*all.node));
	uint32_t *count = xcalloc(nodes + 1, sizeof(*count));
	for (size_t i = 0; i < s->parts; i++) {
		struct part *p = &s->part[i];
		const Pb__StepLayout *l = p->step->layout;
		p->first_task = all.num_tasks;
		p->first_node = all.n_node;
		for (size_t k = 0; k < l->n_node; k++) {
			hostlist_push(&hl, l->node[k]->name);
			count[all.n_node] = (uint32_t)l->node[k]->n_task_ids;
			all.node[all.n_node++] = node_shifted(l->node[k], p->first_task);
		}
		all.num_tasks += l->num_tasks;
	}
	all.nodes = hostlist_compact(&hl);
	all.tasks_per_node = jobenv_counts(count, nodes);
	hostlist_fini(&hl);
	free(count);
	s->layout = &all;
}

/* What the slurmstepds of this part must know of the others. */
void het_spec(const struct srun *s, struct part *p)
{
	if (!het_is(s))
		return;
	p->spec.het = xmalloc(sizeof(*p->spec.het));
	pb__het_step__init(p->spec.het);
	p->spec.het->job_id = s->job_id;
	p->spec.het->layout = s->layout;
	p->spec.het->first_node = (uint32_t)p->first_node;
	p->spec.het->part = (uint32_t)(p - s->part);
}

/* --- environment -------------------------------------------------------------------------------------- */

static void set_all_nodes(const struct srun *s, struct envlist *e)
{
	struct hostlist hl = HOSTLIST_INIT;
	uint32_t *cpus = NULL;
	size_t nodes = 0, cap = 0;
	for (size_t i = 0; i < s->parts; i++) {
		const Pb__Alloc *a = s->part[i].job->alloc;
		for (size_t k = 0; a && k < a->n_part; k++) {
			long n = hostlist_count(a->part[k]->nodes, NULL);
			for (; n > 0; n--) {
				cpus = xgrow(cpus, &cap, nodes + 1, sizeof *cpus);
				cpus[nodes++] = a->part[k]->cpus;
			}
		}
		(void)hostlist_add(&hl, a ? a->nodes : "", NULL);
	}
	char *list = hostlist_compact(&hl), *counts = jobenv_counts(cpus, nodes);
	envlist_set(e, "SLURM_JOB_NODELIST", list);
	envlist_set(e, "SLURM_NODELIST", list);
	envlist_setf(e, "SLURM_JOB_NUM_NODES", "%zu", nodes);
	envlist_set(e, "SLURM_JOB_CPUS_PER_NODE", counts);
	free(list);
	free(counts);
	free(cpus);
	hostlist_fini(&hl);
}

void het_env(const struct srun *s, const struct part *p, struct envlist *e)
{
	if (!het_is(s))
		return;
	if (s->alloc && !envlist_get(e, "SLURM_HET_SIZE")) {
		Pb__JobRecord *job[GROUPS_MAX] = { s->alloc->job };
		size_t n = 1;
		for (size_t i = 0; i < s->alloc->n_het && n < GROUPS_MAX; i++)
			job[n++] = s->alloc->het[i]->job;
		jobenv_add_het(e, job, n, JOBENV_SALLOC, NULL);
	}
	if (s->parts > 1)
		set_all_nodes(s, e);
	envlist_setf(e, "SLURM_JOB_ID", "%u", s->job_id);
	envlist_setf(e, "SLURM_JOBID", "%u", s->job_id);
	(void)p;
}
