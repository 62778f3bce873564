/* trace.c - see trace.h */
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/str.h"
#include "core/core.h"
#include "ctld/replies.h"
#include "ctld/trace.h"
#include "model/resvflag.h"
#include "model/states.h"
#include "model/stepid.h"

#define JOBS_TOLD 200                /* of one pass of the planner */

static const char *when(uint64_t sec, char *buf, size_t size)
{
	time_t t = (time_t)sec;
	struct tm tm;
	localtime_r(&t, &tm);
	strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm);
	return buf;
}

/* --- what a job or step holds ------------------------------------------------------------------ */
static void tell_gres(const char *who, const Pb__Alloc *a)
{
	struct str line = STR_INIT;
	for (size_t i = 0; i < a->n_part; i++)
		for (size_t g = 0; g < a->part[i]->n_gres; g++) {
			const Pb__GresAlloc *x = a->part[i]->gres[g];
			str_addf(&line, " %s:%s%s%s:%llu", a->part[i]->nodes, x->name, x->type ? ":" : "", x->type ? x->type : "", (unsigned long long)x->count);
			if (x->index)
				str_addf(&line, "(IDX:%s)", x->index);
		}
	if (line.len)
		log_flag(GRES, "%s holds%s", who, line.data);
	str_fini(&line);
}

static void tell_cpus(const char *who, const Pb__Alloc *a)
{
	for (size_t i = 0; i < a->n_part; i++)
		log_flag(SELECT_TYPE, "%s Nodes=%s CPUs=%u CPU_IDs=%s Mem=%llu", who, a->part[i]->nodes, a->part[i]->cpus, a->part[i]->cpu_ids ? a->part[i]->cpu_ids : "",
			 (unsigned long long)a->part[i]->mem);
}

static void tell_licenses(const struct ctld *d, const Pb__JobRecord *r)
{
	struct core_license l;
	if (!r->licenses_alloc || !*r->licenses_alloc)
		return;
	log_flag(LICENSE, "JobId=%u holds %s", r->job_id, r->licenses_alloc);
	for (size_t i = 0; core_license(d->core, i, &l); i++)
		log_flag(LICENSE, "LicenseName=%s Total=%u Used=%u Reserved=%u", l.name, l.total, l.used, l.reserved);
}

static void tell_allocated(struct ctld *d, uint32_t job_id)
{
	const struct core_job *j = core_job_find(d->core, job_id);
	Pb__JobRecord *r = j ? reply_record(d, j) : NULL;
	char who[32];
	snprintf(who, sizeof who, "JobId=%u", job_id);
	if (r && r->alloc) {
		tell_gres(who, r->alloc);
		tell_cpus(who, r->alloc);
		tell_licenses(d, r);
		if (core_job_leader(j))
			log_flag(HETJOB, "JobId=%u, a component of JobId=%u, has %s", job_id, core_job_leader(j), r->alloc->nodes);
	}
	if (r)
		pb__job_record__free_unpacked(r, NULL);
}

/* --- records that changed ------------------------------------------------------------------------ */
static void tell_changed(struct ctld *d, uint32_t job_id)
{
	const struct core_job *j = core_job_find(d->core, job_id);
	Pb__JobRecord *r = j ? reply_record(d, j) : NULL;
	Pb__JobVolatile v;
	if (!r)
		return;
	core_job_volatile(d->core, j, &v);
	log_flag(TRACE_JOBS, "JobId=%u State=%s Reason=%s Priority=%u Restarts=%u", job_id, job_state_name(r->state, r->state_flags), reason_name(v.reason), v.priority, r->restarts);
	if (r->state == PB__JOB_STATE__PENDING && r->dependency_left && *r->dependency_left)
		log_flag(DEPENDENCY, "JobId=%u waits for %s", job_id, r->dependency_left);
	pb__job_record__free_unpacked(r, NULL);
}

static void tell_resv(struct ctld *d, uint32_t id, bool gone)
{
	Pb__ReservationRecord *r = gone ? NULL : core_resv_by_id(d->core, id);
	char from[32], to[32];
	if (!r) {
		log_flag(RESERVATION, "reservation number %u is gone", id);
		return;
	}
	log_flag(RESERVATION, "ReservationName=%s Nodes=%s StartTime=%s EndTime=%s Users=%s Accounts=%s", r->name, r->nodes ? r->nodes : "", when(r->start_time, from, sizeof from),
		 when(r->end_time, to, sizeof to), r->users ? r->users : "", r->accounts ? r->accounts : "");
	pb__reservation_record__free_unpacked(r, NULL);
}

/* --- steps ------------------------------------------------------------------------------------------ */
static void tell_step_answer(const struct core_event *ev, const Pb__StepCreateRsp *m)
{
	if (m->code)
		log_flag(STEPS, "a step of JobId=%u is refused: %s", ev->step_create->job_id, m->detail ? m->detail : error_text((int)m->code));
}

static void tell_step(const Pb__StepRecord *s)
{
	char id[40], who[48];
	stepid_format(s->job_id, s->step_id, id, sizeof id);
	snprintf(who, sizeof who, "StepId=%s", id);
	log_flag(STEPS, "%s State=%s Nodes=%s Tasks=%u CPUs=%u ExitCode=%u:%u", who, job_state_name(s->state, 0), s->nodes ? s->nodes : "", s->num_tasks, s->num_cpus,
		 s->exit_status >> 8 & 255, s->exit_status & 127);
	if (s->alloc && s->state == PB__JOB_STATE__RUNNING)
		tell_gres(who, s->alloc);
}

/* --- a pass of the planner -------------------------------------------------------------------------- */
static void tell_plan(struct ctld *d)
{
	uint64_t cursor = 0;
	size_t told = 0, more = 0;
	char at[32];
	for (const struct core_job *j; (j = core_job_next(d->core, &cursor));) {
		Pb__JobVolatile v;
		if (core_job_is_running(j) || core_job_is_finished(j))
			continue;
		if (told == JOBS_TOLD) {
			more++;
			continue;
		}
		told++;
		core_job_volatile(d->core, j, &v);
		if (v.has_est_start)
			log_flag(BACKFILL, "JobId=%u StartTime=%s SchedNodeList=%s Reason=%s", core_job_id(j), when(v.est_start, at, sizeof at), v.sched_nodes ? v.sched_nodes : "", reason_name(v.reason));
		else
			log_flag(BACKFILL, "JobId=%u StartTime=Unknown Reason=%s", core_job_id(j), reason_name(v.reason));
	}
	if (more)
		log_flag(BACKFILL, "and %zu more jobs", more);
	struct core_passes quick, plan;
	core_passes(d->core, &quick, &plan);
	log_flag(BACKFILL, "pass %lld of the planner tried %lld placements", (long long)plan.n, (long long)plan.depth);
}

static void tell_priorities(struct ctld *d)
{
	Pb__PrioListRsp *r = core_priorities(d->core, NULL);
	for (size_t i = 0; i < r->n_job && i < JOBS_TOLD; i++) {
		const Pb__PrioJob *j = r->job[i];
		const Pb__PrioFactors *p = j->points;
		if (p)
			log_flag(PRIORITY, "JobId=%u Partition=%s Priority=%u = age %.0f + assoc %.0f + fairshare %.0f + jobsize %.0f + partition %.0f + qos %.0f + site %lld - nice %lld",
				 j->job_id, j->partition ? j->partition : "", j->priority, p->age, p->assoc, p->fairshare, p->jobsize, p->partition, p->qos, (long long)j->site, (long long)j->nice);
		else
			log_flag(PRIORITY, "JobId=%u Partition=%s Priority=%u", j->job_id, j->partition ? j->partition : "", j->priority);
	}
	pb__prio_list_rsp__free_unpacked(r, NULL);
}

static bool wants_allocated(void) { return log_flagged(LOG_F_GRES) || log_flagged(LOG_F_SELECT_TYPE) || log_flagged(LOG_F_LICENSE) || log_flagged(LOG_F_HETJOB); }
static bool wants_changed(void) { return log_flagged(LOG_F_TRACE_JOBS) || log_flagged(LOG_F_DEPENDENCY); }

void trace_turn(struct ctld *d, const struct core_event *ev, const struct effects *fx, bool planned)
{
	bool allocated = wants_allocated(), changed = wants_changed(), steps = log_flagged(LOG_F_STEPS) || log_flagged(LOG_F_GRES), resv = log_flagged(LOG_F_RESERVATION);
	for (size_t i = 0; (allocated || changed || steps || resv) && i < effects_count(fx); i++) {
		const struct core_effect *e = effects_at(fx, i);
		if (e->type == FX_ALLOCATED && allocated)
			tell_allocated(d, e->job_id);
		else if (e->type == FX_PERSIST_JOB && changed)
			tell_changed(d, e->job_id);
		else if (e->type == FX_ACCOUNT_STEP && steps)
			tell_step((const Pb__StepRecord *)e->msg);
		else if (e->type == FX_REPLY && steps && ev->type == EV_STEP_CREATE && e->msg->descriptor == &pb__step_create_rsp__descriptor)
			tell_step_answer(ev, (const Pb__StepCreateRsp *)e->msg);
		else if ((e->type == FX_PERSIST_RESV || e->type == FX_REMOVE_RESV) && resv)
			tell_resv(d, e->value, e->type == FX_REMOVE_RESV);
	}
	if (planned && log_flagged(LOG_F_BACKFILL))
		tell_plan(d);
	if (planned && log_flagged(LOG_F_PRIORITY))
		tell_priorities(d);
}
