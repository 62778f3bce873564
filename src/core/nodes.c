/* nodes.c - what happens to nodes: they register, report, fall silent, return, are drained and resumed
 *
 *   UNKNOWN --register--> IDLE            (its jobs went on meanwhile)
 *   IDLE --silent--> IDLE+NOT_RESPONDING --SlurmdTimeout--> DOWN   its jobs are requeued or fail
 *   DOWN --register--> IDLE               if ReturnToService allows it
 *   any --scontrol--> DRAIN, DOWN, FAIL, RESUME
 *
 * A node that registers says which steps are alive there: what should not be is ended, what should be and is not is lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/change.h"

#define KILL_FAILED "Kill task failed"

#define LOST_BATCH_MS 30000u
#define ANSWERS_MS 300u
#define CROSS_SEC 7             /* a registration may have been under way for as long (faultsim: 6 s) */
#define RELAUNCH_MS 3000u       /* a node tells at once what ended while the controller was away */

static const char not_responding[] = "Not responding";

static void reason_set(struct core *c, struct core_node *n, const char *reason, uint32_t uid, const char *user)
{
	xstr_set(&n->rec->reason, reason);
	xstr_set(&n->rec->reason_user, reason ? user : NULL);
	n->rec->has_reason_time = n->rec->has_reason_uid = reason != NULL;
	n->rec->reason_time = now_sec(c);
	n->rec->reason_uid = uid;
}

/* Every job that holds something there loses it. The list shrinks while we go. */
/* `answers`: the node was restarted. A script that was on its way to it may still come: its job ends, and the node is told so, and is free when it has said yes. */
static void jobs_lost(struct core *c, struct core_node *n, bool answers)
{
	size_t kept = 0;
	while (n->held_n > kept) {
		size_t before = n->held_n;
		struct core_job *j = n->held[kept].job;
		if (answers && j->launching && j->alloc->on[0].node == n->index) {
			job_launch_lost(c, j);
			kept++;
		} else {
			job_node_lost(c, j, n->index);
			assert(n->held_n < before);
		}
	}
}

static void plans_lost(struct core *c, struct core_node *n)
{
	while (n->plan_n) {
		struct core_job *j = n->plan[0].p->job;
		promise_drop(c, j);
		sched_shape(c, j->shape);
	}
}

void node_set_down(struct core *c, struct core_node *n, const char *reason)
{
	n->base = NODE_DOWN;
	reason_set(c, n, reason, 0, "root");
	fx_log(c, LOG_L_ERROR, "node %s is down: %s", n->name, reason);
	plans_lost(c, n);
	jobs_lost(c, n, false);
	node_refresh(c, n);
	fx_node(c, n);
}

void node_drain(struct core *c, struct core_node *n, const char *reason)
{
	if (n->flags & NODEF_DRAIN && n->rec->reason)
		return;
	n->flags |= NODEF_DRAIN;
	reason_set(c, n, reason, 0, "root");
	fx_log(c, LOG_L_ERROR, "node %s is drained: %s", n->name, reason);
	plans_lost(c, n);
	node_refresh(c, n);
	fx_node(c, n);
}

/* --- registration ----------------------------------------------------------------------------- */

static void facts_take(struct core_node *n, const Pb__NodeRecord *r)
{
	Pb__NodeRecord *m = n->rec;
	if (r->arch)
		xstr_set(&m->arch, r->arch);
	if (r->os)
		xstr_set(&m->os, r->os);
	if (r->version)
		xstr_set(&m->version, r->version);
#define TAKE(f) if (r->has_##f) { m->has_##f = true; m->f = r->f; }
	TAKE(boot_time) TAKE(slurmd_start_time) TAKE(cpu_load) TAKE(free_mem) TAKE(current_watts) TAKE(ave_watts) TAKE(energy_joules)
#undef TAKE
}

static uint64_t gres_total(const struct core *c, const struct core_node *n, uint32_t name)
{
	uint64_t sum = 0;
	for (uint32_t g = 0; g < n->gres_n; g++)
		sum += n->gres[g].name == name ? n->gres[g].count : 0;
	(void)c;
	return sum;
}

/* Less than configured? The sentence is the reason the node is drained with. */
static char *hardware_problem(struct core *c, const struct core_node *n, const Pb__NodeRegisterReq *q)
{
	const Pb__NodeRecord *r = q->node;
	if (q->gres_problem && q->gres_problem[0])
		return xstrdup(q->gres_problem);
	if (c->params.config_overrides)
		return NULL;
	if (r->has_cpus && r->cpus < n->cpus)
		return xasprintf("Low CPUs (reported:%u < configured:%u)", r->cpus, n->cpus);
	if (r->has_real_memory && r->real_memory < n->rec->real_memory)
		return xasprintf("Low RealMemory (reported:%llu < 100.00%% of configured:%llu)", (unsigned long long)r->real_memory, (unsigned long long)n->rec->real_memory);
	if (r->has_tmp_disk && r->tmp_disk < n->rec->tmp_disk)
		return xasprintf("Low TmpDisk (reported:%llu < configured:%llu)", (unsigned long long)r->tmp_disk, (unsigned long long)n->rec->tmp_disk);
	for (uint32_t g = 0; r->n_gres_list && g < n->gres_n; g++) {
		uint64_t found = 0, want = gres_total(c, n, n->gres[g].name);
		for (size_t i = 0; i < r->n_gres_list; i++)
			found += !strcmp(r->gres_list[i]->name, atom_text(c, n->gres[g].name)) ? r->gres_list[i]->count : 0;
		if (found < want)
			return xasprintf("gres/%s count reported lower than configured (%llu < %llu)", atom_text(c, n->gres[g].name), (unsigned long long)found, (unsigned long long)want);
	}
	return NULL;
}

static bool may_return(const struct core *c, const struct core_node *n)
{
	if (n->down_by_admin)
		return false;
	return c->params.return_to_service == 2 || (c->params.return_to_service == 1 && str_eq(n->rec->reason, not_responding));
}

/* slurmd -b says so until it is answered; said again by the same slurmd it means the same restart, and jobs may run there since. */
static bool rebooted(const struct core_node *n, const Pb__NodeRegisterReq *q)
{
	bool again = q->node->has_slurmd_start_time && n->rec->has_slurmd_start_time && q->node->slurmd_start_time == n->rec->slurmd_start_time;
	return (q->rebooted && !again) || (q->node->has_boot_time && n->rec->has_boot_time && q->node->boot_time > n->rec->boot_time + 60);
}

/* Was the slurmd started after its node was known to have the script? Then the script is surely lost: an end that slurmctld has not heard of counts
 * as alive. Otherwise the launch and the registration may have crossed, if it is known since a short time only (the start may be long ago: a slow disk). */
static bool started_since(const struct core *c, const struct core_job *j, const Pb__NodeRegisterReq *q)
{
	/* In the same second: it is told when slurmd registers again, at an age at which nothing crosses. */
	uint64_t young = j->launched + CROSS_SEC > now_sec(c);
	return q->node->has_slurmd_start_time && q->node->slurmd_start_time >= j->launched + young;
}

/* A batch script that should run there and does not: its end may still be on its way, so wait a moment. */
static void batch_missing(struct core *c, const struct core_node *n, const Pb__NodeRegisterReq *q)
{
	for (size_t i = 0; i < n->held_n; i++) {
		struct core_job *j = n->held[i].job;
		bool alive = !job_has_script(j) || n->held[i].at != 0 || j->state != PB__JOB_STATE__RUNNING || j->launching || (j->flags & JOBF_CONFIGURING);
		for (size_t k = 0; !alive && k < q->n_step; k++)
			alive = q->step[k]->job_id == j->id;
		bool sure = j->unconfirmed || started_since(c, j, q);
		if (alive || (!sure && j->launched + 30 > now_sec(c))) {
			if (j->unconfirmed)
				job_launched(c, j);
			j->lost_ms = 0;
			continue;
		}
		if (!j->lost_ms) {
			j->lost_ms = c->now_ms + (sure ? RELAUNCH_MS : LOST_BATCH_MS);
			timer_add(c, j->lost_ms, TIMER_LIMIT, j->id, 0);
		}
	}
}

/* Jobs that end or begin there: said again, since the order or the answer may have been lost with a daemon. */
static void terminate_again(struct core *c, struct core_node *n)
{
	struct bitset *only = bitset_create(c->node_n);
	bitset_set(only, n->index);
	for (size_t i = 0; i < n->held_n; i++)
		if (n->held[i].job->alloc->on[n->held[i].at].state == ON_CLEANING)
			job_terminate(c, n->held[i].job, only, NULL, false);
		else
			configure_node_back(c, n->held[i].job, n->index);
	bitset_destroy(only);
}

static void register_known(struct core *c, struct core_node *n, const Pb__NodeRegisterReq *q)
{
	uint32_t base = n->base, flags = n->flags;
	bool first = !n->registered;
	uint64_t boot = n->rec->boot_time, started = n->rec->slurmd_start_time;
	if (rebooted(n, q) && n->held_n) {
		fx_log(c, LOG_L_INFO, "node %s was restarted: its jobs are lost", n->name);
		jobs_lost(c, n, true);
	}
	if (reboot_is_back(n, q))
		reboot_done(c, n);
	facts_take(n, q->node);
	node_gres_detected(c, n, q->node);
	n->registered = true;
	n->last_busy_ms = n->last_busy_ms ? n->last_busy_ms : c->now_ms;
	n->flags &= ~(uint32_t)(NODEF_NOT_RESPONDING | NODEF_INVALID_REG);
	char *problem = hardware_problem(c, n, q);
	if (n->base == NODE_UNKNOWN || (n->base == NODE_DOWN && !problem && may_return(c, n))) {
		n->base = NODE_IDLE;
		if (base == NODE_DOWN && !(n->flags & NODEF_DRAIN))
			reason_set(c, n, NULL, 0, NULL);
	}
	if (problem) {
		if (!(q->gres_problem && q->gres_problem[0]))
			n->flags |= NODEF_INVALID_REG;
		if (!str_eq(n->rec->reason, problem)) {
			n->flags &= ~(uint32_t)NODEF_DRAIN;
			node_drain(c, n, problem);
		}
	}
	free(problem);
	for (size_t i = 0; i < q->n_step; i++)
		node_step_alive(c, n, q->step[i]);
	batch_missing(c, n, q);
	terminate_again(c, n);
	node_refresh(c, n);
	if (first && bitset_has(c->up, n->index))
		sched_gained(c, n->index);
	/* When it was booted decides at its next registration whether its jobs are lost: that must not be older than they are. */
	if (n->base != base || n->flags != flags || n->rec->boot_time != boot || n->rec->slurmd_start_time != started)
		fx_node(c, n);
}

void node_register(struct core *c, const struct core_event *ev)
{
	const Pb__NodeRegisterReq *q = ev->node_register;
	struct arena *a = fx_arena(c);
	Pb__NodeRegisterRsp *r = arena_alloc(a, sizeof *r);
	int at = core_node_find(c, q->node->name);
	pb__node_register_rsp__init(r);
	if (at < 0) {
		r->code = ESLURM_INVALID_NODE_NAME;
		r->detail = arena_printf(a, "node \"%s\" is not in the configuration of the controller", q->node->name);
	} else {
		register_known(c, c->node[at], q);
		r->node_name = c->node[at]->name;
	}
	fx_reply(c, ev->token, r);
}

/* --- silence ---------------------------------------------------------------------------------- */

void node_contact(struct core *c, const struct core_event *ev)
{
	int at = core_node_find(c, ev->contact.node);
	if (at < 0)
		return;
	struct core_node *n = c->node[at];
	if (ev->contact.responding) {
		if ((n->flags & NODEF_NOT_RESPONDING) && !c->answering.count)
			timer_add(c, c->now_ms + ANSWERS_MS, TIMER_ANSWERS, 0, 0);
		if (n->flags & NODEF_NOT_RESPONDING)
			hostlist_push(&c->answering, n->name);
		n->flags &= ~(uint32_t)NODEF_NOT_RESPONDING;
	} else if (!(n->flags & NODEF_NOT_RESPONDING) && n->base != NODE_FUTURE) {
		n->flags |= NODEF_NOT_RESPONDING;
		n->lost_ms = c->now_ms;
		plans_lost(c, n); /* planned anew before others pass, on nodes that answer */
		if (c->params.slurmd_timeout_sec)
			timer_add(c, c->now_ms + c->params.slurmd_timeout_sec * 1000ull, TIMER_NODE, n->index, 0);
	}
	node_refresh(c, n);
}

/* After a restart or a broken switch they are many: one line for all that come within a moment. */
void nodes_tell_answering(struct core *c)
{
	hostlist_uniq(&c->answering);
	char *names = hostlist_compact(&c->answering);
	bool one = c->answering.count == 1;
	if (c->answering.count)
		fx_log(c, LOG_L_INFO, "node%s %s answer%s again", one ? "" : "s", names, one ? "s" : "");
	free(names);
	hostlist_fini(&c->answering);
}

void node_timer(struct core *c, uint32_t index)
{
	struct core_node *n = index < c->node_n ? c->node[index] : NULL;
	if (n) {
		reboot_timer(c, n);
		node_resume_due(c, n);
	}
	if (!n || !(n->flags & NODEF_NOT_RESPONDING) || n->base == NODE_DOWN || (n->flags & NODEF_REBOOT_ISSUED))
		return;
	if (n->lost_ms + c->params.slurmd_timeout_sec * 1000ull <= c->now_ms)
		node_set_down(c, n, not_responding);
}

/* --- reports ---------------------------------------------------------------------------------- */

static void report_step_done(struct core *c, struct core_job *j, uint32_t node, const Pb__NodeEvent *e)
{
	struct step *s = step_find(j, e->step_id);
	if (!s)
		return;
	step_node_done(c, j, s, node, e);
}

static void report_of_job(struct core *c, struct core_node *n, struct core_job *j, const Pb__NodeEvent *e)
{
	switch (e->kind) {
	case PB__NODE_EVENT__KIND__BATCH_DONE: job_batch_done(c, j, n->index, e); break;
	case PB__NODE_EVENT__KIND__STEP_DONE: report_step_done(c, j, n->index, e); break;
	case PB__NODE_EVENT__KIND__EPILOG_DONE: job_node_clean(c, j, n->index); break;
	case PB__NODE_EVENT__KIND__LAUNCH_FAILED:
		if (j->state == PB__JOB_STATE__RUNNING && e->prolog)
			configure_prolog_failed(c, j, n->index, e->text);
		else if (j->state == PB__JOB_STATE__RUNNING)
			job_launch_failed(c, j, n->index, e->text ? e->text : error_text((int)e->error), e->drain, e->again);
		break;
	case PB__NODE_EVENT__KIND__KILL_FAILED:
		if (e->detail && e->detail[0]) {
			fx_log(c, LOG_L_ERROR, "node %s: job %u: processes do not end although they were killed: %s", n->name, j->id, e->detail);
			free(job_x(j)->why);
			j->x->why = xasprintf("%s on %s: %.1000s", e->text && e->text[0] ? e->text : KILL_FAILED, n->name, e->detail);
		}
		node_drain(c, n, e->text && e->text[0] ? e->text : KILL_FAILED);
		break;
	case PB__NODE_EVENT__KIND__STEP_STARTED:
		if (j->launching)
			job_launched(c, j);
		break;
	case PB__NODE_EVENT__KIND__PROLOG_DONE:
		if (j->state == PB__JOB_STATE__RUNNING)
			configure_node_ready(c, j, n->index);
		break;
	default: break;
	}
}

/* The processes for whose sake the node was drained are gone, and its check is content. Drained for another reason (or by somebody) it stays so. */
static void kill_ended(struct core *c, struct core_node *n)
{
	if (!(n->flags & NODEF_DRAIN) || !n->rec->reason || strcmp(n->rec->reason, KILL_FAILED) || n->rec->reason_uid)
		return;
	n->flags &= ~(uint32_t)NODEF_DRAIN;
	reason_set(c, n, NULL, 0, NULL);
	fx_log(c, LOG_L_INFO, "node %s is used again: the processes that could not be killed are gone", n->name);
	node_refresh(c, n);
	fx_node(c, n);
}

static const char health_check[] = "healthcheck";    /* as who set a reason */

/* The node has looked at itself. It lifts its own drain, never one that a person or another fault brought. */
static void node_health(struct core *c, struct core_node *n, const Pb__NodeEvent *e)
{
	bool own = (n->flags & NODEF_DRAIN) && n->rec->reason && str_eq(n->rec->reason_user, health_check);
	if (e->drain && (own || !(n->flags & NODEF_DRAIN))) {
		const char *why = e->text && e->text[0] ? e->text : "health check failed";
		if (own && str_eq(n->rec->reason, why))
			return;
		n->flags &= ~(uint32_t)NODEF_DRAIN;
		node_drain(c, n, why);
		xstr_set(&n->rec->reason_user, health_check);
	} else if (!e->drain && own) {
		n->flags &= ~(uint32_t)NODEF_DRAIN;
		reason_set(c, n, NULL, 0, NULL);
		fx_log(c, LOG_L_INFO, "node %s passes its health check again and is resumed", n->name);
		node_refresh(c, n);
		if (bitset_has(c->up, n->index))
			sched_gained(c, n->index);
		fx_node(c, n);
	}
}

void node_event(struct core *c, const struct core_event *ev)
{
	const Pb__NodeEvent *e = ev->node_event.event;
	int at = core_node_find(c, ev->node_event.node);
	struct core_job *j = e->has_job_id ? job_find(c, e->job_id) : NULL;
	if (at < 0)
		return;
	if (e->kind == PB__NODE_EVENT__KIND__EPILOG_DONE && (e->drain || (e->has_error && e->error)))
		node_drain(c, c->node[at], e->text && e->text[0] ? e->text : "Epilog error");
	if ((e->kind == PB__NODE_EVENT__KIND__STEP_DONE || (e->kind == PB__NODE_EVENT__KIND__LAUNCH_FAILED && !e->has_job_id)) && e->drain)
		node_drain(c, c->node[at], e->text && e->text[0] ? e->text : "launch failure");
	if (e->kind == PB__NODE_EVENT__KIND__KILL_ENDED)
		kill_ended(c, c->node[at]);
	if (e->kind == PB__NODE_EVENT__KIND__HEALTH)
		node_health(c, c->node[at], e);
	if (!j || (e->has_restarts && e->restarts != run_of(j)))
		return; /* of a run that is over: nothing here waits for it */
	report_of_job(c, c->node[at], j, e);
}

/* A node runs a job of a number that was never given out, as far as we know: the state is older than that. The number is not given again. */
static void job_id_seen(struct core *c, const struct core_node *n, uint32_t job_id)
{
	uint32_t max = c->params.max_job_id ? c->params.max_job_id : 67043328;
	if (job_id < c->next_id || job_id >= max || job_find(c, job_id))
		return;
	fx_log(c, LOG_L_ERROR, "node %s runs job %u, which is not known here: the state that was read is older than that. Ids go on behind it", n->name, job_id);
	c->next_id = job_id + 1;
}

/* What lives on a node and must not: ended there. What the core had forgotten of a running job's steps: known again. */
void node_step_alive(struct core *c, struct core_node *n, const Pb__StepAlive *alive)
{
	struct core_job *j = job_find(c, alive->job_id);
	bool wanted = false;
	for (uint32_t i = 0; j && j->alloc && i < j->alloc->n; i++)
		wanted = wanted || (j->alloc->on[i].node == n->index && j->alloc->on[i].state == ON_HELD);
	wanted = wanted && (j->state == PB__JOB_STATE__RUNNING || j->state == PB__JOB_STATE__SUSPENDED);
	if (alive->has_restarts && j && alive->restarts != j->restarts)
		wanted = false;
	if (wanted) {
		step_alive(c, j, n->index, alive->step_id);
		return;
	}
	struct arena *a = fx_arena(c);
	Pb__TerminateReq *m = arena_alloc(a, sizeof *m);
	pb__terminate_req__init(m);
	m->job_id = alive->job_id;
	m->uid = j ? j->uid : 0;
	m->has_restarts = alive->has_restarts;
	m->restarts = alive->restarts;
	m->has_kill_wait_sec = true;
	m->kill_wait_sec = c->params.kill_wait_sec;
	job_id_seen(c, n, alive->job_id);
	fx_log(c, LOG_L_INFO, "node %s still runs step %u of job %u, which has no business there; it is ended", n->name, alive->step_id, alive->job_id);
	fx_to_nodes(c, FX_TERMINATE, alive->job_id, n->name, m);
}

void node_restore(struct core *c, const struct core_event *ev)
{
	Pb__NodeRecord *m = pb__node_record__unpack(NULL, ev->restore.len, ev->restore.data);
	int at = m ? core_node_find(c, m->name) : -1;
	c->unread += !m;
	if (at >= 0) {
		struct core_node *n = c->node[at];
		uint32_t keep = NODEF_DRAIN | NODEF_FAIL | NODEF_NOT_RESPONDING | NODEF_REBOOT_REQUESTED | NODEF_REBOOT_ISSUED;
		if (m->state == NODE_DOWN)
			n->base = NODE_DOWN;
		else if (m->state == NODE_IDLE || m->state == NODE_ALLOCATED || m->state == NODE_MIXED)
			n->base = NODE_IDLE; /* not given work before it registers */
		n->flags |= m->state_flags & keep;
		n->down_by_admin = n->base == NODE_DOWN && m->reason && strcmp(m->reason, not_responding);
		xstr_set(&n->rec->reason, m->reason);
		xstr_set(&n->rec->reason_user, m->reason_user);
		n->rec->has_reason_time = m->has_reason_time;
		n->rec->reason_time = m->reason_time;
		n->rec->has_reason_uid = m->has_reason_uid;
		n->rec->reason_uid = m->reason_uid;
		n->rec->has_resume_after = m->has_resume_after;
		n->rec->resume_after = m->resume_after;
		if (m->has_resume_after)
			timer_add(c, m->resume_after * 1000, TIMER_NODE, n->index, 0);
		facts_take(n, m);
		reboot_restore(c, n, m);
		node_released_restore(n, m);
		if (n->flags & NODEF_NOT_RESPONDING) {
			n->lost_ms = c->now_ms;
			timer_add(c, c->now_ms + c->params.slurmd_timeout_sec * 1000ull, TIMER_NODE, n->index, 0);
		}
		node_refresh(c, n);
	}
	if (m)
		pb__node_record__free_unpacked(m, NULL);
}
