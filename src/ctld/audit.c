/* audit.c - see audit.h */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "core/core.h"
#include "ctld/audit.h"
#include "ctld/replies.h"
#include "model/states.h"
#include "proto/controller.pb-c.h"
#include "proto/job.pb-c.h"

/* --- jobs ------------------------------------------------------------------------------------- */
static Pb__JobRecord *record_of(struct ctld *d, uint32_t job_id)
{
	const struct core_job *j = log_would(LOG_L_INFO) ? core_job_find(d->core, job_id) : NULL;
	return j ? reply_record(d, j) : NULL;
}

static void add_id(struct str *line, const Pb__JobRecord *r)
{
	if (r->has_array_task_id)
		str_addf(line, "JobId=%u_%u(%u)", r->array_job_id, r->array_task_id, r->job_id);
	else
		str_addf(line, "JobId=%u", r->job_id);
}

void audit_allocated(struct ctld *d, uint32_t job_id)
{
	Pb__JobRecord *r = record_of(d, job_id);
	struct str line = STR_INIT;
	if (!r)
		return;
	str_add(&line, "sched: Allocate ");
	add_id(&line, r);
	if (r->alloc)
		str_addf(&line, " NodeList=%s #CPUs=%u", r->alloc->nodes, r->alloc->num_cpus);
	str_addf(&line, " Partition=%s", r->partition ? r->partition : "");
	log_info("%s", line.data);
	str_fini(&line);
	pb__job_record__free_unpacked(r, NULL);
}

static void add_end(struct str *line, const Pb__JobRecord *r)
{
	str_addf(line, " State=%s ExitCode=%u:%u", job_state_name(r->state, 0), r->exit_status >> 8 & 255, r->exit_status & 127);
	if (r->alloc)
		str_addf(line, " NodeList=%s", r->alloc->nodes);
	if (r->start_time && r->end_time >= r->start_time)
		str_addf(line, " RunTime=%llus", (unsigned long long)(r->end_time - r->start_time));
	if (r->end_reason)
		str_addf(line, " Reason=%s", reason_name(r->end_reason));
	if (r->has_cancel_uid)
		str_addf(line, " by uid=%u", r->cancel_uid);
}

void audit_ended(struct ctld *d, uint32_t job_id)
{
	Pb__JobRecord *r = record_of(d, job_id);
	struct str line = STR_INIT;
	if (!r)
		return;
	bool again = !job_state_is_final(r->state);
	if (again || r->alloc || !r->has_cancel_uid) {
		str_add(&line, again ? "requeue: " : "job end: ");
		add_id(&line, r);
		if (again)
			str_addf(&line, " Restarts=%u", r->restarts);
		else
			add_end(&line, r);
		if (r->fail_node)
			str_addf(&line, " FailedNode=%s", r->fail_node);
		if (r->why)
			str_addf(&line, ": %s", r->why);
		log_info("%s", line.data);
	}
	str_fini(&line);
	pb__job_record__free_unpacked(r, NULL);
}

/* --- requests --------------------------------------------------------------------------------- */
#define IDS_SHOWN 8                 /* of a request that meets more jobs, so many by id and the rest as a number */

static void add_filter(struct str *line, const char *key, const char *value)
{
	if (value)
		str_addf(line, " %s=%s", key, value);
}

static void add_kill(struct str *line, const ProtobufCMessage *req, const ProtobufCMessage *rsp)
{
	const Pb__KillReq *q = (const Pb__KillReq *)req;
	const Pb__KillRsp *r = (const Pb__KillRsp *)rsp;
	size_t done = 0;
	for (size_t i = 0; i < r->n_result; i++)
		if (!r->result[i]->code && done++ < IDS_SHOWN)
			str_addf(line, "%s%s", done == 1 ? "kill: JobId=" : ",", r->result[i]->id);
	if (!done)
		return;
	if (done > IDS_SHOWN)
		str_addf(line, " and %zu more", done - IDS_SHOWN);
	if (q->has_signal)
		str_addf(line, " Signal=%u", q->signal);
	add_filter(line, "name", q->name);
	add_filter(line, "user", q->user);
	add_filter(line, "partition", q->partition);
	add_filter(line, "state", q->state);
	add_filter(line, "nodelist", q->nodes);
}

static void add_set(struct str *line, Pb__KeyValue *const *set, size_t n)
{
	for (size_t i = 0; i < n; i++)
		str_addf(line, " %s=%s", set[i]->key, set[i]->value ? set[i]->value : "");
}

static bool any_done(const Pb__ResultList *r)
{
	for (size_t i = 0; i < r->n_result; i++)
		if (!r->result[i]->code)
			return true;
	return !r->n_result;
}

static void add_op(struct str *line, const ProtobufCMessage *req, const ProtobufCMessage *rsp)
{
	const Pb__JobOpReq *q = (const Pb__JobOpReq *)req;
	static const char *const word[] = { [PB__JOB_OP_REQ__OP__HOLD] = "hold", [PB__JOB_OP_REQ__OP__UHOLD] = "uhold", [PB__JOB_OP_REQ__OP__RELEASE] = "release",
		[PB__JOB_OP_REQ__OP__REQUEUE] = "requeue", [PB__JOB_OP_REQ__OP__REQUEUE_HOLD] = "requeuehold", [PB__JOB_OP_REQ__OP__SUSPEND] = "suspend",
		[PB__JOB_OP_REQ__OP__RESUME] = "resume", [PB__JOB_OP_REQ__OP__TOP] = "top", [PB__JOB_OP_REQ__OP__NOTIFY] = "notify" };
	if (q->op < sizeof word / sizeof *word && any_done((const Pb__ResultList *)rsp))
		str_addf(line, "scontrol %s: JobId=%s", word[q->op], q->id);
}

static void add_job_update(struct str *line, const ProtobufCMessage *req, const ProtobufCMessage *rsp)
{
	const Pb__JobUpdateReq *q = (const Pb__JobUpdateReq *)req;
	if (!any_done((const Pb__ResultList *)rsp))
		return;
	str_addf(line, "update: JobId=%s", q->n_id ? q->id[0] : q->name ? q->name : "");
	for (size_t i = 1; i < q->n_id; i++)
		str_addf(line, ",%s", q->id[i]);
	add_set(line, q->set, q->n_set);
}

static void add_node_update(struct str *line, const ProtobufCMessage *req, const ProtobufCMessage *rsp)
{
	const Pb__NodeUpdateReq *q = (const Pb__NodeUpdateReq *)req;
	if (((const Pb__Result *)rsp)->code)
		return;
	str_addf(line, "update: NodeName=%s", q->nodes);
	add_set(line, q->set, q->n_set);
}

static void add_part_update(struct str *line, const ProtobufCMessage *req, const ProtobufCMessage *rsp)
{
	const Pb__PartUpdateReq *q = (const Pb__PartUpdateReq *)req;
	if (((const Pb__Result *)rsp)->code)
		return;
	str_addf(line, "%s: PartitionName=%s", q->create ? "create" : q->remove ? "delete" : "update", q->name);
	add_set(line, q->set, q->n_set);
}

static const struct { const ProtobufCMessageDescriptor *req; void (*add)(struct str *, const ProtobufCMessage *, const ProtobufCMessage *); } kinds[] = {
	{ &pb__kill_req__descriptor, add_kill },
	{ &pb__job_op_req__descriptor, add_op },
	{ &pb__job_update_req__descriptor, add_job_update },
	{ &pb__node_update_req__descriptor, add_node_update },
	{ &pb__part_update_req__descriptor, add_part_update },
};

void audit_request(uint32_t uid, const ProtobufCMessage *req, const ProtobufCMessage *rsp)
{
	struct str line = STR_INIT;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds && log_would(LOG_L_INFO); i++)
		if (req->descriptor == kinds[i].req)
			kinds[i].add(&line, req, rsp);
	if (line.len)
		log_info("%s by uid=%u", line.data, uid);
	str_fini(&line);
}
