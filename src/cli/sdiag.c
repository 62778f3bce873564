/* sdiag.c - the controller's counters, in the reference's layout where a counter of the same meaning exists
 *
 * tables/counters.def names each line: where it stands, its label, and which counter of RPC_DIAG it prints. A line whose counter the controller does
 * not keep prints 0 in the text (programs look for the label) and is listed as not kept at the end. Counters of our own come in a section of their own. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "cli/json.h"
#include "cli/showcmd.h"
#include "proto/controller.pb-c.h"

enum { D_ALL = 1, D_CLUSTER, D_HELP, D_JSON, D_NO_TRUNC, D_RESET, D_BY_ID, D_BY_TIME, D_BY_AVERAGE, D_USAGE, D_VERSION, D_YAML };
static const struct opt_row rows[] = {
	{ "all", 'a', OPT_NONE, NULL, "all counters (the default)", D_ALL, false },
	{ "cluster", 'M', OPT_REQUIRED, "name", "ask this cluster", D_CLUSTER, false },
	{ "clusters", 0, OPT_REQUIRED, "name", NULL, D_CLUSTER, false },
	{ "reset", 'r', OPT_NONE, NULL, "set the counters to zero", D_RESET, true },
	{ "sort-by-id", 'i', OPT_NONE, NULL, "order calls by number", D_BY_ID, false },
	{ "sort-by-time", 't', OPT_NONE, NULL, "order calls by total time", D_BY_TIME, false },
	{ "sort-by-time2", 'T', OPT_NONE, NULL, "order calls by average time", D_BY_AVERAGE, false },
	{ "no-trunc", 0, OPT_NONE, NULL, "do not cut long lines (none is)", D_NO_TRUNC, false },
	{ "json", 0, OPT_OPTIONAL, "data_parser", "print JSON", D_JSON, false },
	{ "yaml", 0, OPT_OPTIONAL, "data_parser", "print YAML", D_YAML, false },
	{ "version", 'V', OPT_NONE, NULL, "print the version", D_VERSION, false },
	{ "help", 'h', OPT_NONE, NULL, "this text", D_HELP, false },
	{ "usage", 0, OPT_NONE, NULL, "options in short", D_USAGE, false },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

enum line_kind { L_NUMBER, L_TIME, L_US, L_TITLE, L_JSON };
static const struct line { enum line_kind kind; const char *label, *counter, *json; } lines[] = {
#define COUNTER(label, counter, json) { L_NUMBER, label, counter, json },
#define COUNTER_TIME(label, counter, json) { L_TIME, label, counter, json },
#define COUNTER_US(label, counter, json) { L_US, label, counter, json },
#define TITLE(text) { L_TITLE, text, NULL, NULL },
#define COUNTER_JSON(counter, json) { L_JSON, "", counter, json },
#include "tables/counters.def"
};
#define LINES (sizeof(lines) / sizeof(lines[0]))

static const Pb__Counter *counter_find(const Pb__DiagRsp *rsp, const char *name)
{
	for (size_t i = 0; name && i < rsp->n_counter; i++)
		if (!strcmp(rsp->counter[i]->name, name))
			return rsp->counter[i];
	return NULL;
}

static bool counter_has_line(const char *name)
{
	for (size_t i = 0; i < LINES; i++)
		if (lines[i].counter && !strcmp(lines[i].counter, name))
			return true;
	return false;
}

static void put_stamp(struct str *out, int64_t t)
{
	char buf[64];
	time_t when = (time_t)t;
	struct tm tm;
	strftime(buf, sizeof(buf), "%a %b %d %T %Y", localtime_r(&when, &tm));
	str_addf(out, "%s (%lld)\n", buf, (long long)t);
}

/* --- calls by kind and by user ------------------------------------------------------------------- */
static int sort_by = D_ALL;
static uint64_t average(const Pb__CallStat *s) { return s->count ? s->total_us / s->count : 0; }

static int call_cmp(const void *a, const void *b)
{
	const Pb__CallStat *x = *(Pb__CallStat *const *)a, *y = *(Pb__CallStat *const *)b;
	uint64_t p = sort_by == D_BY_TIME ? x->total_us : sort_by == D_BY_AVERAGE ? average(x) : x->count;
	uint64_t q = sort_by == D_BY_TIME ? y->total_us : sort_by == D_BY_AVERAGE ? average(y) : y->count;
	if (sort_by == D_BY_ID || p == q)
		return x->id < y->id ? -1 : x->id > y->id;
	return p > q ? -1 : 1;
}

static const char *call_name(const Pb__CallStat *s, bool user)
{
	static char number[16];
	const struct passwd *pw = user ? getpwuid(s->id) : NULL;
	if (pw)
		return pw->pw_name;
	snprintf(number, sizeof(number), "%u", s->id);
	return s->name ? s->name : number;
}

static void put_calls(struct str *out, const char *title, Pb__CallStat **list, size_t n, bool user)
{
	str_addf(out, "\nRemote Procedure Call statistics by %s\n", title);
	for (size_t i = 0; i < n; i++)
		str_addf(out, "\t%-*s(%*u) count:%-6llu ave_time:%-6llu total_time:%llu\n", user ? 16 : 40, call_name(list[i], user), user ? 8 : 5, list[i]->id,
			 (unsigned long long)list[i]->count, (unsigned long long)average(list[i]), (unsigned long long)list[i]->total_us);
}

static void calls_json(struct json *j, const char *key, Pb__CallStat **list, size_t n, bool user)
{
	json_open(j, key, '[');
	for (size_t i = 0; i < n; i++) {
		json_open(j, NULL, '{');
		json_u64(j, user ? "user_id" : "type_id", list[i]->id);
		json_text(j, user ? "user" : "message_type", call_name(list[i], user));
		json_u64(j, "count", list[i]->count);
		json_num(j, "average_time", true, false, average(list[i]));
		json_u64(j, "total_time", list[i]->total_us);
		json_close(j);
	}
	json_close(j);
}

static void text_print(const Pb__DiagRsp *rsp)
{
	static const char stars[] = "*******************************************************\n";
	const Pb__Counter *boot = counter_find(rsp, "boot_time");
	struct str out = STR_INIT, missing = STR_INIT;
	str_add(&out, stars);
	str_add(&out, "sdiag output at ");
	put_stamp(&out, (int64_t)rsp->now);
	str_add(&out, "Data since      ");
	put_stamp(&out, boot ? boot->value : 0);
	str_add(&out, stars);
	for (size_t i = 0; i < LINES; i++) {
		const Pb__Counter *c = counter_find(rsp, lines[i].counter);
		str_add(&out, lines[i].label);
		if (lines[i].kind == L_TITLE || lines[i].kind == L_JSON)
			continue;
		if (lines[i].kind == L_TIME)
			put_stamp(&out, c ? c->value : 0);
		else
			str_addf(&out, "%lld%s\n", c ? (long long)c->value : 0LL, lines[i].kind == L_US ? " microseconds" : "");
		if (!c && lines[i].counter) {
			str_add(&missing, missing.len ? ", " : "");
			str_add(&missing, lines[i].counter);
		}
	}
	put_calls(&out, "message type", rsp->call, rsp->n_call, false);
	put_calls(&out, "user", rsp->user, rsp->n_user, true);
	str_add(&out, "\nCounters of this controller\n");
	for (size_t i = 0; i < rsp->n_counter; i++)
		if (!counter_has_line(rsp->counter[i]->name))
			str_addf(&out, "\t%s: %lld\n", rsp->counter[i]->name, (long long)rsp->counter[i]->value);
	if (missing.len)
		str_addf(&out, "\nNot kept yet (shown as 0): %s\n", missing.data);
	out_flush(&out);
	str_fini(&out);
	str_fini(&missing);
}

/* "a.b" is member b of object a; the lines of one object stand together. */
static void counters_json(struct json *j, const Pb__DiagRsp *rsp)
{
	char object[32] = "";
	for (size_t i = 0; i < LINES; i++) {
		const Pb__Counter *c = counter_find(rsp, lines[i].counter);
		const char *key = lines[i].json, *dot = key ? strchr(key, '.') : NULL;
		if (!key)
			continue;
		size_t n = dot ? (size_t)(dot - key) : 0;
		if (strlen(object) != n || strncmp(object, key, n)) {
			if (*object)
				json_close(j);
			snprintf(object, sizeof object, "%.*s", (int)n, key);
			if (*object)
				json_open(j, object, '{');
		}
		if (lines[i].kind == L_TIME)
			json_num(j, key, true, false, c ? (uint64_t)c->value : 0);
		else
			json_i64(j, dot ? dot + 1 : key, c ? c->value : 0);
	}
	if (*object)
		json_close(j);
}

static void json_print(const Pb__DiagRsp *rsp, bool yaml, const char *const *argv, int argc)
{
	const Pb__Counter *boot = counter_find(rsp, "boot_time");
	struct str out = STR_INIT;
	struct json j;
	json_init(&j, &out, yaml);
	json_open(&j, NULL, '{');
	json_open(&j, "statistics", '{');
	json_num(&j, "req_time", true, false, rsp->now);
	json_num(&j, "req_time_start", true, false, boot ? (uint64_t)boot->value : 0);
	counters_json(&j, rsp);
	calls_json(&j, "rpcs_by_message_type", rsp->call, rsp->n_call, false);
	calls_json(&j, "rpcs_by_user", rsp->user, rsp->n_user, true);
	json_bool(&j, "bf_active", false);       /* a pass is over before the next call is answered */
	json_open(&j, "pending_rpcs", '[');
	json_close(&j);
	json_open(&j, "pending_rpcs_by_hostlist", '[');
	json_close(&j);
	json_close(&j);
	json_end(&j, argv, argc);
	out_flush(&out);
	str_fini(&out);
}

struct asked { const char *json, *yaml; };
static int sdiag_option(const struct opt_row *row, const char *value, void *arg, struct error *err)
{
	struct asked *a = arg;
	switch (row->id) {
	case D_JSON: a->json = value ? value : ""; break;
	case D_YAML: a->yaml = value ? value : ""; break;
	case D_CLUSTER: show_env.clusters = value; break;
	case D_HELP: opt_print_help("sdiag [OPTIONS]", rows, ROWS); exit(0);
	case D_USAGE: opt_print_usage("sdiag", rows, ROWS, ""); exit(0);
	case D_VERSION: printf("slurm %s\n", BERTH_VERSION); exit(0);
	case D_BY_ID: case D_BY_TIME: case D_BY_AVERAGE: sort_by = row->id; break;
	default: break;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct asked asked = { 0 };
	struct error err = { 0 };
	Pb__Empty req = PB__EMPTY__INIT;
	ProtobufCMessage *msg;
	show_start("sdiag");
	const char *const *typed = show_argv_keep(argc, argv);
	int first = opt_parse(rows, ROWS, argc, argv, false, sdiag_option, &asked, &err);
	if (first < 0)
		return show_parse_fail("sdiag", &err);
	int rc = json_parser_check("sdiag", asked.json ? asked.json : asked.yaml);
	if (rc)
		return rc - 1;
	if (first < argc) {
		log_error("unexpected argument \"%s\": sdiag takes only options", argv[first]);
		return 1;
	}
	struct client *c = show_open();
	rc = client_call(c, RPC_DIAG, &req.base, 0, &msg, &err);
	if (rc < 0) {
		fprintf(stderr, "slurm_get_statistics: %s\n", error_text(rc));
		return 1;
	}
	Pb__DiagRsp *rsp = (Pb__DiagRsp *)msg;
	if (rsp->n_call)
		qsort(rsp->call, rsp->n_call, sizeof(*rsp->call), call_cmp);
	if (rsp->n_user)
		qsort(rsp->user, rsp->n_user, sizeof(*rsp->user), call_cmp);
	if (asked.json || asked.yaml)
		json_print((const Pb__DiagRsp *)msg, asked.yaml != NULL, typed, argc);
	else
		text_print((const Pb__DiagRsp *)msg);
	protobuf_c_message_free_unpacked(msg, NULL);
	client_close(c);
	return 0;
}
