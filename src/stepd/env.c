/* env.c - the environment of a task (see env.h)
 *
 * What is the same for all tasks of the step here is made once, before the first fork; a child adds what is its own. The variables PyTorch and its kin
 * read (MASTER_ADDR, RANK, ...) are set unless the user has set them; BERTH_TORCH names those we set, so that an srun
 * started from within a task does not take them for the user's. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/bind.h"
#include "model/envlist.h"
#include "model/jobenv.h"
#include "stepd/affinity.h"
#include "stepd/endreason.h"
#include "stepd/env.h"
#include "stepd/gpus.h"
#include "stepd/mpi.h"
#include "stepd/step.h"

#define PORT_FIRST 16384     /* below the kernel's range of ephemeral ports */
#define PORT_COUNT 16000

static struct envlist common;

static void env_step_layout(const struct step *s, struct envlist *e)
{
	const Pb__StepLayout *layout = s->cred->layout;
	uint32_t *count = xcalloc(layout->n_node + 1, sizeof *count);
	for (size_t i = 0; i < layout->n_node; i++)
		count[i] = (uint32_t)layout->node[i]->n_task_ids;
	char *per_node = jobenv_counts(count, layout->n_node);
	envlist_set(e, "SLURM_STEP_NODELIST", layout->nodes);
	envlist_setf(e, "SLURM_STEP_NUM_NODES", "%zu", layout->n_node);
	envlist_setf(e, "SLURM_STEP_NUM_TASKS", "%u", layout->num_tasks);
	envlist_set(e, "SLURM_STEP_TASKS_PER_NODE", per_node);
	if (!s->spec->preserve_env || !envlist_get(e, "SLURM_TASKS_PER_NODE"))
		envlist_set(e, "SLURM_TASKS_PER_NODE", per_node);
	if (!s->spec->preserve_env || !envlist_get(e, "SLURM_NTASKS")) {
		envlist_setf(e, "SLURM_NTASKS", "%u", layout->num_tasks);
		envlist_setf(e, "SLURM_NPROCS", "%u", layout->num_tasks);
	}
	if (!envlist_get(e, "SLURM_NNODES") || !s->spec)
		envlist_setf(e, "SLURM_NNODES", "%zu", layout->n_node);
	free(per_node);
	free(count);
}

/* "verbose,map_cpu:0,1" as four variables: the whole, how loud, the kind, and its list. */
static void env_bind(struct envlist *e, const char *name, const char *text, bool memory)
{
	char var[48];
	struct bind b;
	if (!text || !*text || bind_parse(text, memory, &b) < 0)
		return;
	char *list = bind_list(&b);
	if (memory && !b.verbose && !b.prefer && b.kind == BIND_UNSET) {          /* only "quiet": as if nothing was said */
		free(list);
		bind_fini(&b);
		return;
	}
	const char *kind = bind_kind_name(b.kind, memory), *loud = b.verbose ? "verbose" : "quiet", *colon = list ? ":" : "";
	envlist_setf(e, name, "%s%s%s%s%s%s", loud, b.prefer ? ",prefer" : "", *kind ? "," : "", kind, colon, list ? list : "");
	snprintf(var, sizeof var, "%s_VERBOSE", name);
	envlist_set(e, var, loud);
	snprintf(var, sizeof var, "%s_TYPE", name);
	envlist_setf(e, var, "%s%s", kind, colon);
	snprintf(var, sizeof var, "%s_LIST", name);
	envlist_set(e, var, list ? list : "");
	snprintf(var, sizeof var, "%s_PREFER", name);
	if (b.prefer)
		envlist_set(e, var, "prefer");
	free(list);
	bind_fini(&b);
}

static void env_topology(const struct step *s, struct envlist *e)
{
	const char *addr = step_conf(s, "TopologyAddr"), *pattern = step_conf(s, "TopologyPattern");
	envlist_set(e, "SLURM_TOPOLOGY_ADDR", addr ? addr : s->node);
	envlist_set(e, "SLURM_TOPOLOGY_ADDR_PATTERN", pattern ? pattern : "node");
}

static void env_step_here(const struct step *s, struct envlist *e)
{
	struct str gtids = STR_INIT;
	for (uint32_t i = 0; i < s->tasks; i++)
		str_addf(&gtids, "%s%u", i ? "," : "", s->task[i].rank);
	envlist_set(e, "SLURM_GTIDS", gtids.data);
	str_fini(&gtids);
	envlist_setf(e, "SLURM_STEPID", "%d", (int)s->step_id);
	envlist_setf(e, "SLURM_STEP_ID", "%d", (int)s->step_id);
	envlist_setf(e, "SLURM_NODEID", "%u", s->start->node_index);
	envlist_set(e, "SLURMD_NODENAME", s->node);
	envlist_setf(e, "SLURM_CPUS_ON_NODE", "%u", s->here->cpus);
	envlist_set(e, "SLURM_PRIO_PROCESS", "0");
	env_topology(s, e);
	env_bind(e, "SLURM_CPU_BIND", s->spec->cpu_bind, false);
	affinity_env(s, e);
	env_bind(e, "SLURM_MEM_BIND", s->spec->mem_bind, true);
	envlist_setf(e, "SLURMD_DEBUG", "%u", s->spec->has_slurmd_debug ? s->spec->slurmd_debug : 2);
	if (s->cred->job->group)
		envlist_set(e, "SLURM_JOB_GROUP", s->cred->job->group);
	if (s->spec->label)
		envlist_set(e, "SLURM_LABELIO", "1");
	if (s->spec->has_umask)
		envlist_setf(e, "SLURM_UMASK", "%04o", s->spec->umask);
	if (s->spec->io_port) {
		envlist_set_default(e, "SLURM_SRUN_COMM_HOST", s->spec->io_host);
		envlist_setf(e, "SLURM_SRUN_COMM_PORT", "%u", s->spec->io_port);
		envlist_setf(e, "SLURM_STEP_LAUNCHER_PORT", "%u", s->spec->io_port);
		envlist_set(e, "SLURM_LAUNCH_NODE_IPADDR", s->spec->io_host);
	}
}

/* Forget what an outer task of ours was given. */
static void torch_forget(struct envlist *e)
{
	const char *ours = envlist_get(e, "BERTH_TORCH");
	if (!ours)
		return;
	char *list = xstrdup(ours), *at = list;
	for (char *name; (name = str_next(&at, ","));)
		envlist_unset(e, name);
	envlist_unset(e, "BERTH_TORCH");
	free(list);
}

static void torch_set(struct envlist *e, struct str *ours, const char *name, const char *value)
{
	if (envlist_get(e, name))
		return;
	envlist_set(e, name, value);
	str_add_sep(ours, ",", name);
}

static void torch_number(struct envlist *e, struct str *ours, const char *name, uint32_t value)
{
	char text[16];
	snprintf(text, sizeof text, "%u", value);
	torch_set(e, ours, name, text);
}

/* The same on all nodes of a step, another for each step: the credential's nonce says which, so that clusters on one machine do not meet. */
static uint32_t rendezvous_port(const struct step *s)
{
	uint32_t h = 2166136261u;
	/* The parts of a step over several components have nonces of their own, but one key. */
	const ProtobufCBinaryData *seed = s->spec->het && s->spec->io_key.len ? &s->spec->io_key : &s->cred->nonce;
	for (size_t i = 0; i < seed->len; i++)
		h = (h ^ seed->data[i]) * 16777619u;
	return PORT_FIRST + h % PORT_COUNT;
}

/* The name of the first node; its address where NodeAddr is one and the name does not resolve here. */
static const char *rendezvous_host(const Pb__StepNode *node)
{
	static const char *host;   /* one step a process */
	struct in6_addr six;
	struct in_addr four;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	if (host)
		return host;
	host = node->name;
	if (!node->addr || (!inet_pton(AF_INET, node->addr, &four) && !inet_pton(AF_INET6, node->addr, &six)))
		return host;
	if (getaddrinfo(node->name, NULL, &hints, &found))
		host = node->addr;
	else
		freeaddrinfo(found);
	return host;
}

static void env_torch(const struct step *s, const struct task *t, struct envlist *e)
{
	struct str ours = STR_INIT;
	const Pb__StepLayout *layout = s->cred->layout;
	if ((s->spec->has_torch_env && !s->spec->torch_env) || !layout->n_node)
		return;
	torch_set(e, &ours, "MASTER_ADDR", rendezvous_host(layout->node[0]));
	torch_number(e, &ours, "MASTER_PORT", rendezvous_port(s));
	torch_number(e, &ours, "RANK", t->rank);
	torch_number(e, &ours, "WORLD_SIZE", layout->num_tasks);
	torch_number(e, &ours, "LOCAL_RANK", t->local);
	torch_number(e, &ours, "LOCAL_WORLD_SIZE", s->tasks);
	torch_number(e, &ours, "GROUP_RANK", s->start->node_index);
	if (ours.len)
		envlist_set(e, "BERTH_TORCH", ours.data);
	str_fini(&ours);
}

struct envlist *env_common(void) { return &common; }

void env_prepare(const struct step *s)
{
	const Pb__JobRecord *job = s->cred->job;
	const char *path = step_conf(s, "ConfPath");
	if (s->batch) {
		envlist_load(&common, s->batch->env, s->batch->n_env);
		jobenv_add(&common, job, JOBENV_BATCH, s->start->cluster, path);
		if (s->batch->n_het)
			jobenv_add_het(&common, s->batch->het, s->batch->n_het, JOBENV_BATCH, NULL);
		jobenv_add_node(&common, job, s->node);
		env_topology(s, &common);
		gpus_batch(s, &common);
		envlist_set(&common, "HOSTNAME", s->node);
		endreason_env(s, &common);
		jobenv_add_mpi(&common, step_conf(s, "MpiParams"));
		return;
	}
	envlist_load(&common, s->spec->env, s->spec->n_env);
	envlist_set_default(&common, "TMPDIR", "/tmp");
	torch_forget(&common);
	endreason_env(s, &common);
	env_step_layout(s, &common);
	env_step_here(s, &common);
}

char **env_task(const struct step *s, const struct task *t)
{
	struct envlist *e = &common;
	if (s->batch) {
		jobenv_add_batch(e, s->cred->job, getpid());
		return e->var;
	}
	envlist_setf(e, "SLURM_PROCID", "%u", t->rank);
	envlist_setf(e, "SLURM_LOCALID", "%u", t->local);
	envlist_setf(e, "SLURM_TASK_PID", "%d", (int)getpid());
	mpi_child(s, t, e);
	gpus_env(s, t, e);
	env_torch(s, t, e);
	return e->var;
}
