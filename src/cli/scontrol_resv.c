/* scontrol_resv.c - reservations: create, update, delete, show
 * Keys may be shortened as in the reference. Times, durations and flags are read here, where the person's clock is; all else is judged by the
 * controller. What is plainly missing is said without asking it, in the words scripts know. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/alloc.h"
#include "cli/json.h"
#include "cli/scontrol.h"
#include "model/resvflag.h"
#include "model/timespec.h"
#include "proto/reserve.pb-c.h"

enum kind { K_TEXT, K_TIME, K_DURATION, K_DELAY, K_COUNT, K_CORES, K_FLAGS, K_NAME, K_SKIP };
static const struct resv_key { const char *key, *canonical; size_t min; enum kind kind; } keys[] = {
	{ "accounts", "Accounts", 1, K_TEXT }, { "allowedpartitions", "AllowedPartitions", 2, K_TEXT }, { "burstbuffer", "BurstBuffer", 2, K_TEXT },
	{ "comment", "Comment", 3, K_TEXT }, { "corecnt", "CoreCnt", 2, K_CORES }, { "duration", "Duration", 1, K_DURATION }, { "endtime", "EndTime", 1, K_TIME },
	{ "features", "Features", 2, K_TEXT }, { "flags", "Flags", 2, K_FLAGS }, { "groups", "Groups", 1, K_TEXT }, { "licenses", "Licenses", 1, K_TEXT },
	{ "maxstartdelay", "MaxStartDelay", 1, K_DELAY }, { "nodecnt", "NodeCnt", 5, K_COUNT }, { "nodes", "Nodes", 4, K_TEXT },
	{ "partitionname", "PartitionName", 1, K_TEXT }, { "qos", "QOS", 1, K_TEXT }, { "reservationname", "", 3, K_NAME }, { "skip", "Skip", 2, K_SKIP },
	{ "starttime", "StartTime", 2, K_TIME }, { "trespernode", "TRESPerNode", 5, K_TEXT }, { "tres", "TRES", 1, K_TEXT }, { "users", "Users", 1, K_TEXT },
};

struct ask { Pb__ResvUpdateReq req; Pb__KeyValue *kv; size_t cap; const char *end; bool floats; uint64_t flags; };

static const struct resv_key *key_find(const char *word, size_t n)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (n >= keys[i].min && n <= strlen(keys[i].key) && !strncasecmp(keys[i].key, word, n))
			return &keys[i];
	return NULL;
}

static bool refuse(struct scontrol *s, const struct ask *a, const char *what)
{
	scontrol_fail(s, "scontrol: error: %s  %s", what, a->end);
	return false;
}

static void put(struct ask *a, const char *key, char op, char *value)
{
	a->kv = xgrow(a->kv, &a->cap, a->req.n_set + 1, sizeof(*a->kv));
	pb__key_value__init(&a->kv[a->req.n_set]);
	a->kv[a->req.n_set].key = op == '=' ? xstrdup(key) : xasprintf("%s%c", key, op);
	a->kv[a->req.n_set++].value = value;
}

static const char *value_of(const struct ask *a, const char *key)
{
	for (size_t i = 0; i < a->req.n_set; i++)
		if (!strcmp(a->kv[i].key, key))
			return a->kv[i].value;
	return NULL;
}

static bool put_time(struct scontrol *s, struct ask *a, const struct resv_key *k, const char *v)
{
	struct error err = { 0 };
	time_t t, now = time(NULL);
	if (timespec_parse_when(v, now, 0, &t, &err) < 0) {
		scontrol_fail(s, "%s", err.line);
		return refuse(s, a, k->key[0] == 's' ? "Invalid start time." : "Invalid end time.");
	}
	bool from_now = !strncasecmp(v, "now", 3) && k->key[0] == 's';
	put(a, k->canonical, '=', from_now && a->floats ? xasprintf("+%lld", (long long)(t - now)) : xasprintf("%lld", (long long)t));
	return true;
}

static bool put_minutes(struct scontrol *s, struct ask *a, const struct resv_key *k, char op, const char *v)
{
	uint32_t min = 0;
	char *what = xasprintf("Invalid %s %s.", k->kind == K_DELAY ? "MaxStartDelay" : "duration", v);
	bool ok = (k->kind == K_DELAY && !*v) || timespec_parse_mins(v, &min, NULL) >= 0;
	if (ok)
		put(a, k->canonical, op, xasprintf("%llu", (unsigned long long)min * (k->kind == K_DELAY ? 60 : 1)));
	else
		(void)refuse(s, a, what);
	free(what);
	return ok;
}

static bool put_flags(struct scontrol *s, struct ask *a, char op, const char *v)
{
	char *copy = xstrdup(v), *at = copy, *w;
	bool ok = true, born = a->req.op == PB__RESV_UPDATE_REQ__OP__CREATE;
	while (ok && (w = str_next(&at, ","))) {
		bool away = op == '-' || *w == '-';
		uint32_t purge = 0, bit = *w ? resvflag_parse(w + (*w == '-' || *w == '+'), born, away, &purge, NULL) : 0;
		a->flags |= bit;
		ok = bit || !*w;
	}
	free(copy);
	if (!ok) {
		char *what = xasprintf("Error parsing flags %s%s.", op == '-' ? "-" : op == '+' ? "+" : "", v);
		(void)refuse(s, a, what);
		free(what);
		return false;
	}
	put(a, "Flags", op, xstrdup(v));
	return true;
}

/* "nodes=+a,+b" is "nodes+=a,b", and so with '-'. Returns the list without its signs (to be freed). */
static char *signs_off(const char *v)
{
	char sign = *v, *list = xstrdup(v + 1), *to = list;
	for (const char *from = list; *from; from++)
		if (!(*from == sign && to > list && to[-1] == ','))
			*to++ = *from;
	*to = 0;
	return list;
}

static bool word_take(struct scontrol *s, struct ask *a, char *word)
{
	char *eq = strchr(word, '='), *v = eq ? eq + 1 : NULL, op = '=';
	size_t n = eq ? (size_t)(eq - word) : strlen(word);
	if (eq && n && (word[n - 1] == '+' || word[n - 1] == '-'))
		op = word[--n];
	const struct resv_key *k = key_find(word, n);
	char *what = xasprintf(k || eq ? "Unknown parameter %s." : "Misformatted parameter '%s', most options have a parameter after '='.", word);
	bool ok = true;
	if (!k || (!eq && k->kind != K_SKIP && k->kind != K_DELAY && k->kind != K_NAME))
		ok = refuse(s, a, what);
	else if (k->kind == K_NAME)
		a->req.name = eq ? v : a->req.name;
	else if (k->kind == K_TIME)
		ok = put_time(s, a, k, v);
	else if (k->kind == K_DURATION || k->kind == K_DELAY)
		ok = put_minutes(s, a, k, op, v ? v : "");
	else if (k->kind == K_FLAGS)
		ok = put_flags(s, a, op, v);
	else if (k->kind == K_CORES && strchr(v, ','))
		scontrol_fail(s, "scontrol: error: Using a comma separated array for CoreCnt is no longer valid."), ok = false;
	else if (!strcmp(k->canonical, "Nodes") && op == '=' && (*v == '+' || *v == '-'))
		put(a, k->canonical, *v, signs_off(v));
	else if (!((k->kind == K_COUNT || k->kind == K_CORES) && a->req.op == PB__RESV_UPDATE_REQ__OP__CREATE && !strcmp(v, "0")))
		put(a, k->canonical, op, xstrdup(v ? v : ""));
	free(what);
	return ok;
}

static bool create_check(struct scontrol *s, const struct ask *a)
{
	const char *nodes = value_of(a, "Nodes");
	uint64_t often = a->flags & RESVF_RECURRING;
	bool sized = value_of(a, "CoreCnt") || nodes || value_of(a, "NodeCnt") || value_of(a, "TRES") || value_of(a, "TRESPerNode") ||
		value_of(a, "PartitionName") || value_of(a, "Licenses") || value_of(a, "BurstBuffer");
	bool who = value_of(a, "Users") || value_of(a, "Groups") || value_of(a, "AllowedPartitions") || value_of(a, "QOS") || value_of(a, "Accounts") ||
		value_of(a, "Users-") || value_of(a, "Accounts-") || value_of(a, "QOS-") || value_of(a, "AllowedPartitions-");
	if (a->flags & RESVF_PART_NODES && !(value_of(a, "PartitionName") && nodes && !strcasecmp(nodes, "ALL")))
		return refuse(s, a, "PART_NODES flag requires specifying a Partition and ALL nodes.");
	if (a->flags & RESVF_FORCE_START && !often) {
		scontrol_fail(s, "scontrol: error: FORCE_START flag requires a reoccuring reservation. No reservation created.");
		return false;
	}
	if (!value_of(a, "StartTime"))
		return refuse(s, a, "A start time must be given.");
	if (!value_of(a, "EndTime") && !value_of(a, "Duration"))
		return refuse(s, a, "An end time or duration must be given.");
	if (!sized && !(value_of(a, "Features") && strchr(value_of(a, "Features"), '*')))
		return refuse(s, a, "CoreCnt, Nodes, NodeCnt, TRES or Watts must be specified.");
	return who || refuse(s, a, "Either Users/Groups, AllowedPartitions, QOS and/or Accounts must be specified.");
}

/* The controller's sentence where it says more than the code, then the code's text. */
static void refused(struct scontrol *s, const char *begin, int code, const char *detail)
{
	if (detail && *detail && strcmp(detail, error_text(code)))
		scontrol_fail(s, "scontrol: error: %s", detail);
	scontrol_fail(s, "%s: %s", begin, error_text(code));
}

static void call(struct scontrol *s, struct ask *a, const char *begin)
{
	struct error err = { 0 };
	ProtobufCMessage *msg;
	Pb__KeyValue **list = xcalloc(a->req.n_set + 1, sizeof(*list));
	for (size_t i = 0; i < a->req.n_set; i++)
		list[i] = &a->kv[i];
	a->req.set = list;
	int rc = client_call(scontrol_client(s), RPC_RESV_UPDATE, &a->req.base, 0, &msg, &err);
	free(list);
	if (rc < 0) {
		scontrol_fail(s, "%s: %s", begin, error_text(rc));
		return;
	}
	const Pb__ResvUpdateRsp *r = (const Pb__ResvUpdateRsp *)msg;
	bool create = a->req.op == PB__RESV_UPDATE_REQ__OP__CREATE;
	if (r->code)
		refused(s, begin, (int)r->code, r->detail);
	else if (create)
		printf("Reservation created: %s\n", r->name);
	else if (a->req.op == PB__RESV_UPDATE_REQ__OP__UPDATE)
		printf("Reservation updated.\n");
	if (create && !s->quiet && (r->code == ESLURM_NODES_BUSY || r->code == ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE))
		printf("Note, unless nodes are directly requested a reservation must exist in a single partition.\n"
		       "If no partition is requested the default partition is assumed.\n");
	protobuf_c_message_free_unpacked(msg, NULL);
}

static void ask_fini(struct ask *a)
{
	for (size_t i = 0; i < a->req.n_set; i++) {
		free(a->kv[i].key);
		free(a->kv[i].value);
	}
	free(a->kv);
}

static bool is_entity(const char *word) { return !strncasecmp(word, "res", 3) && !strchr(word, '='); }

static void resv_change(struct scontrol *s, int argc, char **argv, bool create)
{
	struct ask a = { .req = PB__RESV_UPDATE_REQ__INIT, .end = create ? "No reservation created." : "No reservation update." };
	bool ok = true;
	a.req.op = create ? PB__RESV_UPDATE_REQ__OP__CREATE : PB__RESV_UPDATE_REQ__OP__UPDATE;
	for (int i = 1; i < argc; i++)
		a.floats = a.floats || (strchr(argv[i], '=') && strcasestr(argv[i], "time_float"));
	for (int i = 1; i < argc && ok; i++)
		if (!(i == 1 && is_entity(argv[i])))
			ok = word_take(s, &a, argv[i]);
	if (ok && (!create || create_check(s, &a)))
		call(s, &a, create ? "Error creating the reservation" : "slurm_update error");
	ask_fini(&a);
}

void scontrol_resv_create(struct scontrol *s, int argc, char **argv) { resv_change(s, argc, argv, true); }
void scontrol_resv_update(struct scontrol *s, int argc, char **argv) { resv_change(s, argc, argv, false); }

void scontrol_resv_delete(struct scontrol *s, const char *typed, char *name)
{
	struct ask a = { .req = PB__RESV_UPDATE_REQ__INIT };
	char *begin = xasprintf("delete_reservation %s", typed);
	a.req.op = PB__RESV_UPDATE_REQ__OP__DELETE;
	a.req.name = name;
	call(s, &a, begin);
	free(begin);
}

/* --- show ------------------------------------------------------------------------------------- */

static const char *or_null(const char *text) { return text && *text ? text : "(null)"; }

static void resv_when(struct str *out, const char *key, uint64_t when)
{
	char buf[64];
	timespec_print_when((time_t)when, getenv("SLURM_TIME_FORMAT"), time(NULL), buf, sizeof(buf));
	str_addf(out, "%s%s", key, buf);
}

static void resv_text(struct scontrol *s, const Pb__ReservationRecord *r)
{
	struct str out = STR_INIT;
	const char *nl = s->one_line ? " " : "\n   ";
	char buf[64], *flags = resvflag_format(r->flags, r->purge_comp_sec);
	str_addf(&out, "ReservationName=%s", r->name);
	resv_when(&out, " StartTime=", r->start_time);
	resv_when(&out, " EndTime=", r->end_time);
	timespec_format((uint32_t)(r->end_time - r->start_time), buf, sizeof(buf));
	str_addf(&out, " Duration=%s%sNodes=%s NodeCnt=%u CoreCnt=%u Features=%s PartitionName=%s Flags=%s", buf, nl, r->nodes ? r->nodes : "", r->node_cnt,
		 r->core_cnt, or_null(r->features), or_null(r->partition), flags);
	for (size_t i = 0; i < r->n_part; i++)
		str_addf(&out, "%s%sNodeName=%s CoreIDs=%s", nl, s->one_line ? "" : "  ", r->part[i]->nodes, r->part[i]->core_ids);
	str_addf(&out, "%sTRES=%s%sAllowedPartitions=%s QOS=%s", nl, or_null(r->tres), nl, or_null(r->allowed_partitions), or_null(r->qos));
	str_addf(&out, "%sUsers=%s Groups=%s Accounts=%s Licenses=%s State=%s BurstBuffer=(null)", nl, or_null(r->users), or_null(r->groups),
		 or_null(r->accounts), or_null(r->licenses), r->active ? "ACTIVE" : "INACTIVE");
	snprintf(buf, sizeof(buf), "(null)");
	if (r->max_start_delay_sec)
		timespec_format(r->max_start_delay_sec, buf, sizeof(buf));
	str_addf(&out, "%sMaxStartDelay=%s", nl, buf);
	if (r->comment && *r->comment)
		str_addf(&out, "%sComment=%s", nl, r->comment);
	printf(s->one_line ? "%s\n" : "%s\n\n", out.data);
	str_fini(&out);
	free(flags);
}

static void resv_json(struct json *j, const Pb__ReservationRecord *r)
{
	char *flags = resvflag_format(r->flags, 0);
	json_open(j, NULL, '{');
	json_text(j, "accounts", r->accounts);
	json_text(j, "burst_buffer", NULL);
	json_u64(j, "core_count", r->core_cnt);
	json_open(j, "core_specializations", '[');
	for (size_t i = 0; i < r->n_part; i++) {
		json_open(j, NULL, '{');
		json_text(j, "node", r->part[i]->nodes);
		json_text(j, "core", r->part[i]->core_ids);
		json_close(j);
	}
	json_close(j);
	json_num(j, "end_time", true, false, r->end_time);
	json_text(j, "features", r->features);
	json_words(j, "flags", (struct slice){ flags, strlen(flags) });
	json_text(j, "groups", r->groups);
	json_text(j, "licenses", r->licenses);
	json_u64(j, "max_start_delay", r->max_start_delay_sec);
	json_text(j, "name", r->name);
	json_u64(j, "node_count", r->node_cnt);
	json_text(j, "node_list", r->nodes);
	json_text(j, "partition", r->partition);
	json_open(j, "purge_completed", '{');
	json_num(j, "time", true, false, r->flags & RESVF_PURGE_COMP ? r->purge_comp_sec : 300);
	json_close(j);
	json_num(j, "start_time", true, false, r->start_time);
	json_text(j, "tres", r->tres);
	json_text(j, "users", r->users);
	json_close(j);
	free(flags);
}

static void print_json(struct scontrol *s, const Pb__ResvListRsp *r)
{
	struct str out = STR_INIT;
	struct json j;
	json_init(&j, &out, s->yaml != NULL);
	json_open(&j, NULL, '{');
	json_open(&j, "reservations", '[');
	for (size_t i = 0; i < r->n_resv; i++)
		resv_json(&j, r->resv[i]);
	json_close(&j);
	json_num(&j, "last_update", true, false, r->now);
	json_end(&j, s->argv, s->argc);
	fwrite(out.data, 1, out.len, stdout);
	str_fini(&out);
}

void scontrol_resv_show(struct scontrol *s, const char *id)
{
	Pb__ResvListReq req = PB__RESV_LIST_REQ__INIT;
	struct error err = { 0 };
	ProtobufCMessage *msg;
	req.name = (char *)id;
	int rc = client_call(scontrol_client(s), RPC_RESV_LIST, &req.base, 0, &msg, &err);
	if (rc < 0) {
		scontrol_fail(s, "slurm_load_reservations error: %s", error_text(rc));
		return;
	}
	const Pb__ResvListRsp *r = (const Pb__ResvListRsp *)msg;
	if (s->json || s->yaml)
		print_json(s, r);
	else if (!r->n_resv && id)
		scontrol_missing(s, "Reservation %s not found", id);
	else if (!r->n_resv)
		printf("No reservations in the system\n");
	for (size_t i = 0; i < r->n_resv && !s->json && !s->yaml; i++)
		resv_text(s, r->resv[i]);
	protobuf_c_message_free_unpacked(msg, NULL);
}
