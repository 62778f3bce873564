/* scontrol_update.c - update, create and delete: "key=value" words become one request
 * Keys are matched in any case; "key value" in two words and "key+=value" are accepted. What the reference knows and we do not yet is
 * refused by name before anything is sent; the values themselves are judged by the controller. */
#include <ctype.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/scontrol.h"
#include "cli/scontrol_print.h"
#include "model/stepid.h"
#include "model/timespec.h"
#include "proto/controller.pb-c.h"

static const char *const job_keys[] = {
#define UPDATE_JOB(key, kind, field, who) key,
#include "tables/update_job.def"
#undef UPDATE_JOB
};
static const char *const node_keys[] = { "State", "Reason", "Features", "AvailableFeatures", "ActiveFeatures", "Comment", "Extra", "Weight", "InstanceId", "InstanceType", "ResumeAfter" };
static const char *const part_keys[] = {
#define UPDATE_PART(key, kind, field, max) key,
#include "tables/update_part.def"
#undef UPDATE_PART
};
/* Known to the reference, not to us yet: named in the refusal. */
static const char *const later_keys[] = { "BurstBuffer", "Clusters", "ClusterFeatures", "CpuBind", "Gres", "NodeAddr", "NodeHostName", "Topology", "CertToken", "TresFreq" };

struct words { Pb__KeyValue *kv, **list; size_t n, cap, list_cap; char *entity, *id; };

static bool key_in(const char *key, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcasecmp(key, list[i]))
			return true;
	return false;
}
#define KEY_IN(key, list) key_in(key, list, sizeof(list) / sizeof(list[0]))

static void words_fini(struct words *w)
{
	for (size_t i = 0; i < w->n; i++) {
		free(w->kv[i].key);
		free(w->kv[i].value);
	}
	free(w->kv);
	free(w->list);
	free(w->entity);
	free(w->id);
}

/* Only some words may be given as "key value": an entity's name, and keys known to be followed by one. */
static bool takes_next(const char *word)
{
	static const char *const entity[] = { "job", "jobid", "jobname", "node", "nodename", "partition", "partitionname", "reservation", "reservationname", "step", "stepid" };
	return KEY_IN(word, entity) || KEY_IN(word, job_keys) || KEY_IN(word, node_keys);
}

static void word_add(struct words *w, char *key, char *value)
{
	w->kv = xgrow(w->kv, &w->cap, w->n + 1, sizeof(*w->kv));
	pb__key_value__init(&w->kv[w->n]);
	w->kv[w->n].key = key;
	w->kv[w->n++].value = value;
}

static bool words_parse(struct scontrol *s, int argc, char **argv, struct words *w)
{
	for (int i = 1; i < argc; i++) {
		char *equals = strchr(argv[i], '=');
		if (equals && equals > argv[i]) {
			bool sign = equals[-1] == '+' || equals[-1] == '-';
			char *key = xstrndup(argv[i], (size_t)(equals - argv[i]) - sign);
			word_add(w, key, sign ? xasprintf("%c%s", equals[-1], equals + 1) : xstrdup(equals + 1));
		} else if (!strcasecmp(argv[i], "ResetAccrueTime") || (!strcasecmp(argv[i], "Nice") && i + 1 == argc)) {
			word_add(w, xstrdup(argv[i]), xstrdup(strcasecmp(argv[i], "Nice") ? "" : "100"));
		} else if (takes_next(argv[i]) && i + 1 < argc) {
			word_add(w, xstrdup(argv[i]), xstrdup(argv[i + 1]));
			i++;
		} else {
			scontrol_fail(s, "scontrol: error: Invalid input: %s: a key=value is needed\nRequest aborted", argv[i]);
			return false;
		}
	}
	return true;
}

/* What a command is about; each may be shortened to `min` letters. */
enum entity_kind { ENTITY_JOB, ENTITY_JOB_NAME, ENTITY_STEP, ENTITY_DEBUG, ENTITY_NODE, ENTITY_PART, ENTITY_USER };
static const struct { const char *name; size_t min; } entities[] = {
	[ENTITY_JOB] = { "JobId", 3 }, [ENTITY_JOB_NAME] = { "JobName", 4 }, [ENTITY_STEP] = { "StepId", 4 },
	[ENTITY_DEBUG] = { "SlurmctldDebug", 14 }, [ENTITY_NODE] = { "NodeName", 3 }, [ENTITY_PART] = { "PartitionName", 3 },
	[ENTITY_USER] = { "UserID", 6 },
};

static bool is_entity(const char *word, enum entity_kind kind)
{
	size_t n = strcspn(word, "=");
	return n >= entities[kind].min && n <= strlen(entities[kind].name) && !strncasecmp(word, entities[kind].name, n);
}

/* Takes the word that names the entity out of the list; false when there is none of that kind. */
static bool entity_take(struct words *w, enum entity_kind kind)
{
	for (size_t i = 0; i < w->n; i++)
		if (is_entity(w->kv[i].key, kind)) {
			w->entity = w->kv[i].key;
			w->id = w->kv[i].value;
			memmove(&w->kv[i], &w->kv[i + 1], (w->n - i - 1) * sizeof(*w->kv));
			w->n--;
			return true;
		}
	return false;
}

/* The one key of the list that a shortened word (three letters at least) can mean, or NULL. */
static const char *key_of_short(const char *word, const char *const *keys, size_t n)
{
	const char *found = NULL;
	size_t len = strlen(word);
	for (size_t i = 0; i < n; i++)
		if (len >= 3 && !strncasecmp(word, keys[i], len)) {
			if (found)
				return NULL;
			found = keys[i];
		}
	return found;
}

static bool keys_check(struct scontrol *s, struct words *w, const char *const *keys, size_t n)
{
	bool part = keys == part_keys; /* the words for it are others */
	for (size_t i = 0; i < w->n; i++) {
		if (key_in(w->kv[i].key, keys, n))
			continue;
		const char *whole = key_of_short(w->kv[i].key, keys, n);
		if (whole) {
			xstr_set(&w->kv[i].key, whole);
			continue;
		}
		const char *who = part ? "scontrol: error: " : "";
		scontrol_fail(s, "%sUpdate of this parameter is not supported: %s=%s%s", who, w->kv[i].key, w->kv[i].value, part ? "\n" : "");
		if (KEY_IN(w->kv[i].key, later_keys))
			scontrol_fail(s, "scontrol: %s cannot be changed by this version yet", w->kv[i].key);
		scontrol_fail(s, "%sRequest aborted", who);
		return false;
	}
	for (size_t i = 0; i < w->n; i++) {
		w->list = xgrow(w->list, &w->list_cap, i + 1, sizeof(*w->list));
		w->list[i] = &w->kv[i];
	}
	return true;
}

/* A number, or a name. */
static bool user_number(const char *text, uint32_t *ret)
{
	unsigned long long n;
	const struct passwd *pw = str_to_u64(text, 0, UINT32_MAX, &n) == 0 ? NULL : getpwnam(text);
	*ret = pw ? pw->pw_uid : (uint32_t)n;
	return pw || str_to_u64(text, 0, UINT32_MAX, &n) == 0;
}

static void update_job(struct scontrol *s, struct words *w)
{
	Pb__JobUpdateReq req = PB__JOB_UPDATE_REQ__INIT;
	struct error err = { 0 };
	ProtobufCMessage *msg;
	char *entity = w->entity, *id = w->id, *cursor = id;
	bool by_name = is_entity(entity, ENTITY_JOB_NAME);
	size_t cap = 0;
	if (entity_take(w, ENTITY_USER)) { /* with JobName; beside a job id it says nothing */
		bool known = user_number(w->id, &req.uid);
		req.has_uid = known && by_name;
		if (!known)
			scontrol_fail(s, "Invalid UserID: %s\nRequest aborted", w->id);
		free(w->entity);
		free(w->id);
		w->entity = entity;
		w->id = id;
		if (!known)
			return;
	}
	if (!w->n) {
		scontrol_fail(s, "No changes specified");
		return;
	}
	if (!keys_check(s, w, job_keys, sizeof(job_keys) / sizeof(job_keys[0])))
		return;
	for (size_t i = 0; i < w->n; i++)
		if (!scontrol_job_value(s, w->kv[i].key, w->kv[i].value))
			return;
	if (by_name)
		req.name = id;
	for (char *one; !by_name && (one = str_next(&cursor, ","));) {
		req.id = xgrow(req.id, &cap, req.n_id + 1, sizeof(*req.id));
		req.id[req.n_id++] = one;
	}
	req.set = w->list;
	req.n_set = w->n;
	int rc = client_call(scontrol_client(s), RPC_JOB_UPDATE, &req.base, 0, &msg, &err);
	if (rc < 0) {
		scontrol_fail(s, "%s for job %s", error_text(rc), by_name ? req.name : req.id[0]);
	} else {
		const Pb__ResultList *list = (const Pb__ResultList *)msg;
		bool none = by_name && list->n_result == 1 && !list->result[0]->job_id && list->result[0]->code;
		if (none && req.has_uid)
			scontrol_fail(s, "scontrol: error: No jobs with user ID %u and name '%s'", req.uid, req.name);
		else if (none)
			scontrol_fail(s, "scontrol: error: No jobs with name '%s'", req.name);
		else
			scontrol_results(s, req.n_id == 1 && list->n_result == 1 ? req.id[0] : NULL, list, NULL);
		protobuf_c_message_free_unpacked(msg, NULL);
	}
	free(req.id);
}

/* A request answered by one Result. `what` begins the message of a refusal. */
static void one_result(struct scontrol *s, enum rpc rpc, const ProtobufCMessage *req, const char *what)
{
	struct error err = { 0 };
	ProtobufCMessage *msg;
	int rc = client_call(scontrol_client(s), rpc, req, 0, &msg, &err);
	if (rc < 0) {
		scontrol_fail(s, "%s%s", what, error_text(rc));
		return;
	}
	const Pb__Result *r = (const Pb__Result *)msg;
	if (r->code == ESLURM_REASON_MISSING)
		scontrol_fail(s, "%s", error_text((int)r->code));
	else if (r->code)
		scontrol_fail(s, "%s%s", what, error_text((int)r->code));
	if (r->code && r->detail && *r->detail && strcmp(r->detail, error_text((int)r->code)))
		scontrol_fail(s, "scontrol: error: %s", r->detail);
	protobuf_c_message_free_unpacked(msg, NULL);
}

static bool drains_without_reason(const struct words *w)
{
	bool needs = false, has = false;
	for (size_t i = 0; i < w->n; i++) {
		const char *value = w->kv[i].value;
		if (!strcasecmp(w->kv[i].key, "State"))
			needs = !strncasecmp(value, "drain", 5) || !strcasecmp(value, "down") || !strcasecmp(value, "fail");
		has = has || (!strcasecmp(w->kv[i].key, "Reason") && *value);
	}
	return needs && !has;
}

static bool state_check(struct scontrol *s, const struct words *w)
{
	static const char *const states[] = { "CANCEL_REBOOT", "CLOUD", "DOWN", "DRAIN", "FAIL", "FUTURE", "IDLE", "NORESP", "NO_RESPOND", "POWER_DOWN", "POWER_DOWN_ASAP",
		"POWER_DOWN_FORCE", "POWER_UP", "RESUME", "UNDRAIN" };
	for (size_t i = 0; i < w->n; i++)
		if (!strcasecmp(w->kv[i].key, "State") && !KEY_IN(w->kv[i].value, states)) {
			scontrol_fail(s, "Invalid input: %s=%s\nRequest aborted\nValid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN\n"
				      "Not all states are valid given a node's prior state", w->kv[i].key, w->kv[i].value);
			return false;
		}
	return true;
}

static bool node_numbers_check(struct scontrol *s, const struct words *w)
{
	static const char *const numbers[] = { "Weight", "ResumeAfter" };
	for (size_t i = 0; i < w->n; i++) {
		unsigned long long n;
		const char *v = w->kv[i].value;
		bool forever = !strcasecmp(w->kv[i].key, "ResumeAfter") && (!strcasecmp(v, "infinite") || !strcmp(v, "-1"));
		if (KEY_IN(w->kv[i].key, numbers) && !forever && str_to_u64(v, 0, UINT32_MAX, &n) < 0) {
			scontrol_fail(s, "scontrol: error: Invalid value %s=%s for %s", w->kv[i].key, v, w->kv[i].key);
			return false;
		}
	}
	return true;
}

static void update_node(struct scontrol *s, struct words *w)
{
	Pb__NodeUpdateReq req = PB__NODE_UPDATE_REQ__INIT;
	if (!w->n) {
		scontrol_fail(s, "No changes specified");
		return;
	}
	if (!keys_check(s, w, node_keys, sizeof(node_keys) / sizeof(node_keys[0])))
		return;
	if (!state_check(s, w) || !node_numbers_check(s, w))
		return;
	if (drains_without_reason(w)) {
		scontrol_fail(s, "%s", error_text(ESLURM_REASON_MISSING));
		return;
	}
	req.nodes = w->id;
	req.set = w->list;
	req.n_set = w->n;
	one_result(s, RPC_NODE_UPDATE, &req.base, "slurm_update error: ");
}

/* --- reboot ------------------------------------------------------------------------------------------- */

static void node_words(struct scontrol *s, const char *nodes, const char *state, const char *next, const char *reason, const char *what)
{
	Pb__NodeUpdateReq req = PB__NODE_UPDATE_REQ__INIT;
	Pb__KeyValue kv[3], *list[3];
	const char *pair[3][2] = { { "State", state }, { "NextState", next }, { "Reason", reason } };
	req.nodes = (char *)(uintptr_t)nodes;
	req.set = list;
	for (size_t i = 0; i < 3; i++) {
		if (!pair[i][1])
			continue;
		pb__key_value__init(&kv[req.n_set]);
		kv[req.n_set].key = (char *)(uintptr_t)pair[i][0];
		kv[req.n_set].value = (char *)(uintptr_t)pair[i][1];
		list[req.n_set] = &kv[req.n_set];
		req.n_set++;
	}
	one_result(s, RPC_NODE_UPDATE, &req.base, what);
}

void scontrol_reboot(struct scontrol *s, int argc, char **argv)
{
	const char *next = NULL, *reason = NULL, *nodes = NULL;
	bool asap = false;
	for (int i = 1; i < argc; i++) {
		if (!strcasecmp(argv[i], "ASAP"))
			asap = true;
		else if (!strncasecmp(argv[i], "nextstate=", 10))
			next = argv[i] + 10;
		else if (!strncasecmp(argv[i], "reason=", 7))
			reason = argv[i] + 7;
		else
			nodes = argv[i];
	}
	if (next && strcasecmp(next, "DOWN") && strcasecmp(next, "RESUME")) {
		scontrol_fail(s, "Invalid state: %s\n Valid states: DOWN, RESUME", next);
		return;
	}
	if (!nodes) {
		scontrol_fail(s, "Missing node list. Specify ALL|<NodeList>");
		return;
	}
	const char *program = conf_str(client_conf(scontrol_client(s)), CONF_RebootProgram);
	if (!program || !*program) {
		scontrol_fail(s, "scontrol: error: RebootProgram isn't defined\nscontrol_reboot_nodes error:Unspecified error");
		return;
	}
	node_words(s, nodes, asap ? "REBOOT_ASAP" : "REBOOT", next, reason, "scontrol_reboot_nodes error:");
}

void scontrol_cancel_reboot(struct scontrol *s, int argc, char **argv)
{
	if (argc != 2)
		scontrol_fail(s, argc < 2 ? "missing argument for keyword:%s" : "too many arguments for keyword:%s", argv[0]);
	else
		node_words(s, argv[1], "CANCEL_REBOOT", NULL, NULL, "slurm_update error: ");
}

static void part_call(struct scontrol *s, struct words *w, bool create, bool remove_it)
{
	Pb__PartUpdateReq req = PB__PART_UPDATE_REQ__INIT;
	if (!w->n && !create && !remove_it) {
		scontrol_fail(s, "scontrol: error: No changes specified");
		return;
	}
	if (!keys_check(s, w, part_keys, sizeof(part_keys) / sizeof(part_keys[0])))
		return;
	for (size_t i = 0; i < w->n; i++)
		if (!scontrol_part_value(s, w->kv[i].key, w->kv[i].value))
			return;
	req.name = w->id;
	req.set = w->list;
	req.n_set = w->n;
	req.has_create = req.create = create;
	req.has_remove = req.remove = remove_it;
	char *what = remove_it ? xasprintf("delete_partition %s=%s: ", w->entity, w->id)
			       : xstrdup(create ? "Error creating the partition: " : "slurm_update error: ");
	one_result(s, RPC_PART_UPDATE, &req.base, what);
	free(what);
}

/* The ids of all running steps of a job, for "StepId=5". */
static void step_ids(struct scontrol *s, uint32_t job_id, Pb__JobUpdateReq *req)
{
	Pb__StepListReq list = PB__STEP_LIST_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	list.has_job_id = true;
	list.job_id = job_id;
	if (client_call(scontrol_client(s), RPC_STEP_LIST, &list.base, 0, &msg, NULL) < 0)
		return;
	const Pb__StepListRsp *rsp = (const Pb__StepListRsp *)msg;
	req->id = xcalloc(rsp->n_step + 1, sizeof *req->id);
	for (size_t i = 0; i < rsp->n_step; i++) {
		char name[48];
		stepid_format(rsp->step[i]->job_id, rsp->step[i]->step_id, name, sizeof name);
		if (!rsp->step[i]->has_end_time)
			req->id[req->n_id++] = xstrdup(name);
	}
	protobuf_c_message_free_unpacked(msg, NULL);
}

static void update_step(struct scontrol *s, struct words *w)
{
	static const char *const step_keys[] = { "TimeLimit" };
	Pb__JobUpdateReq req = PB__JOB_UPDATE_REQ__INIT;
	struct error err = { 0 };
	ProtobufCMessage *msg = NULL;
	unsigned long long job;
	int rc = str_to_u64(w->id, 1, UINT32_MAX, &job);
	uint32_t minutes;
	if (!isdigit((unsigned char)*w->id) && *w->id != 's') {
		scontrol_fail(s, "Invalid StepID parameter: %s=%s\nRequest aborted", w->entity, w->id);
		return;
	}
	if (!w->n)
		scontrol_fail(s, "No changes specified");
	if (!w->n || !keys_check(s, w, step_keys, 1))
		return;
	if (timespec_parse_mins(w->kv[0].value, &minutes, NULL) < 0) {
		scontrol_fail(s, "scontrol: error: Invalid TimeLimit value");
		return;
	}
	if (!rc) {
		step_ids(s, (uint32_t)job, &req);
	} else {
		req.id = xcalloc(1, sizeof *req.id);
		req.id[req.n_id++] = xstrdup(w->id);
	}
	req.set = w->list;
	req.n_set = w->n;
	rc = req.n_id ? client_call(scontrol_client(s), RPC_JOB_UPDATE, &req.base, 0, &msg, &err) : -ESLURM_INVALID_JOB_ID;
	const Pb__ResultList *list = (const Pb__ResultList *)msg;
	for (size_t i = 0; rc >= 0 && i < list->n_result; i++)
		rc = -(int)list->result[i]->code;
	if (rc < 0)
		scontrol_fail(s, "slurm_update error: %s", error_text(rc));
	if (msg)
		protobuf_c_message_free_unpacked(msg, NULL);
	for (size_t i = 0; i < req.n_id; i++)
		free(req.id[i]);
	free(req.id);
}

/* "update SlurmctldDebug=debug2", the older way to say "setdebug debug2". */
static void update_debug(struct scontrol *s, struct words *w)
{
	char *argv[] = { w->entity, w->id };
	scontrol_setdebug(s, 2, argv);
}

/* "update res=x ...", but not "update job=5 reservationname=x". */
static bool means_reservation(int argc, char **argv)
{
	bool resv = false;
	for (int i = 1; i < argc; i++) {
		if (!strncasecmp(argv[i], "job", 3))
			return false;
		size_t n = strcspn(argv[i], "=");
		resv = resv || (n >= 3 && n <= strlen("ReservationName") && !strncasecmp(argv[i], "ReservationName", n));
	}
	return resv && strncasecmp(argv[1], "node", 4);
}

void scontrol_update(struct scontrol *s, int argc, char **argv)
{
	struct words w = { 0 };
	if (argc < 2) {
		scontrol_fail(s, "too few arguments for %s keyword", argv[0]);
	} else if (means_reservation(argc, argv)) {
		scontrol_resv_update(s, argc, argv);
	} else if (words_parse(s, argc, argv, &w)) {
		if (entity_take(&w, ENTITY_JOB) || entity_take(&w, ENTITY_JOB_NAME))
			update_job(s, &w);
		else if (entity_take(&w, ENTITY_STEP))
			update_step(s, &w);
		else if (entity_take(&w, ENTITY_DEBUG))
			update_debug(s, &w);
		else if (entity_take(&w, ENTITY_NODE))
			update_node(s, &w);
		else if (entity_take(&w, ENTITY_PART))
			part_call(s, &w, false, false);
		else
			scontrol_fail(s, "No valid entity in update command\nInput line must include \"NodeName\", \"PartitionName\", \"Reservation\", \"JobId\", or \"SlurmctldDebug\"");
	}
	words_fini(&w);
}

void scontrol_create(struct scontrol *s, int argc, char **argv)
{
	struct words w = { 0 };
	size_t n = argc > 1 ? strcspn(argv[1], "=") : 0;
	if (argc < 2) {
		scontrol_fail(s, "too few arguments for %s keyword", argv[0]);
	} else if (!strncasecmp(argv[1], "res", 3)) {
		scontrol_resv_create(s, argc, argv);
	} else if (is_entity(argv[1], ENTITY_NODE)) {
		scontrol_fail(s, "scontrol: error: create %.*s is not supported yet", (int)n, argv[1]);
	} else if (!is_entity(argv[1], ENTITY_PART)) {
		scontrol_fail(s, "scontrol: error: Invalid creation entity: %s", argv[1]);
	} else if (words_parse(s, argc, argv, &w)) {
		if (entity_take(&w, ENTITY_PART))
			part_call(s, &w, true, false);
		else
			scontrol_fail(s, "scontrol: error: PartitionName must be given.  No partition created.");
	}
	words_fini(&w);
}

void scontrol_delete(struct scontrol *s, int argc, char **argv)
{
	struct words w = { 0 };
	if (argc < 2) {
		scontrol_fail(s, "too few arguments for %s keyword", argv[0]);
		return;
	}
	char *equals = strchr(argv[1], '=');
	if ((!equals && argc != 3) || (equals && argc != 2)) {
		scontrol_fail(s, "scontrol: error: Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'");
		return;
	}
	w.entity = xstrndup(argv[1], equals ? (size_t)(equals - argv[1]) : strlen(argv[1]));
	w.id = xstrdup(equals ? equals + 1 : argv[2]);
	if (is_entity(w.entity, ENTITY_PART))
		part_call(s, &w, false, true);
	else if (!strncasecmp(w.entity, "res", 3))
		scontrol_resv_delete(s, argv[1], w.id);
	else if (is_entity(w.entity, ENTITY_NODE))
		scontrol_fail(s, "scontrol: error: delete %s is not supported yet", w.entity);
	else
		scontrol_fail(s, "Invalid deletion entity: %s", argv[1]);
	words_fini(&w);
}
