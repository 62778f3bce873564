/* scontrol_values.c - values of `scontrol update` that can be told wrong without asking the controller, in the words scripts know
 * What is said depends on the kind of the key in tables/update_job.def and tables/update_part.def. The controller judges every value again. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/scontrol.h"
#include "model/timespec.h"

enum kind {
	K_TEXT, K_WORD, K_ANY, K_NUM, K_COUNT, K_CPUS, K_MEM, K_MEM_NODE, K_MEM_CPU, K_YES, K_REQUEUE, K_SPEC, K_PRIORITY, K_MAIL, K_TIME_LIMIT, K_TIME_MIN, K_BEGIN, K_END_TIME, K_DEADLINE, K_NODES, K_BOOT, K_DELAY,
	K_TIME, K_STATE, K_EXCLUSIVE, K_EXCLUSIVE_USER, K_EXCLUSIVE_TOPO, K_SHARE, K_PREEMPT, K_NODE_NUM,
	/* judged by the controller alone */
	K_NICE = K_ANY, K_SITE = K_ANY, K_GRES = K_ANY, K_LICENSES = K_ANY, K_MCS = K_ANY, K_SWITCHES = K_ANY, K_SWITCH_WAIT = K_ANY, K_ACCRUE = K_ANY, K_DEPEND = K_ANY, K_THROTTLE = K_ANY, K_TRES_BIND = K_ANY,
	K_ALLOW = K_ANY, K_QOS = K_ANY, K_QOSES = K_ANY, K_PART = K_ANY, K_PER_GPU = K_ANY, K_WEIGHTS = K_ANY, K_TOPOLOGY = K_ANY, K_LATER = K_ANY,
};
struct row { const char *key; enum kind kind; uint32_t max; };
static const struct row job_rows[] = {
#define UPDATE_JOB(key, kind, field, who) { key, K_##kind, UINT32_MAX },
#include "tables/update_job.def"
#undef UPDATE_JOB
};
static const struct row part_rows[] = {
#define UPDATE_PART(key, kind, field, max) { key, K_##kind == K_NODES ? K_ANY : K_##kind, max ? max : UINT32_MAX },
#include "tables/update_part.def"
#undef UPDATE_PART
};

static const struct row *row_find(const struct row *rows, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (!strcasecmp(rows[i].key, key))
			return &rows[i];
	return NULL;
}

static bool word_in(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (!strcasecmp(word, *list))
			return true;
	return false;
}

static bool mail_type_known(const char *list)
{
	static const char *const words[] = { "NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "INVALID_DEPEND", "STAGE_OUT", "TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80",
		"TIME_LIMIT_50", "ARRAY_TASKS", NULL };
	char *copy = xstrdup(list), *rest = copy, *word;
	bool good = *list != 0;
	while (good && (word = str_next(&rest, ",")))
		good = word_in(word, words);
	free(copy);
	return good;
}

static bool digits(const char *v) { return *v && !v[strspn(v, "0123456789")]; }

static bool number_good(const char *v, uint32_t max)
{
	unsigned long long n;
	return str_to_u64(v, 0, max, &n) == 0;
}

/* "no", "exclusive", "yes[:n]", "force[:n]" */
static bool share_good(const char *v)
{
	static const char *const words[] = { "no", "exclusive", "yes", "force", NULL };
	size_t n = strcspn(v, ":");
	char *word = xstrndup(v, n);
	bool good = word_in(word, words) && (!v[n] || (strchr("yYfF", *v) && digits(v + n + 1)));
	free(word);
	return good;
}

static bool limit_good(const char *v)
{
	uint32_t minutes;
	return timespec_parse_mins(v, &minutes, NULL) == 0;
}

static const char *const yes_no[] = { "yes", "no", NULL }, *const flag_words[] = { "yes", "no", "y", "n", "1", "0", NULL };
static const char *const job_yes[] = { "yes", "no", "1", "0", NULL };

static bool when_good(struct scontrol *s, const char *key, const char *v)
{
	struct error err = { 0 };
	time_t when;
	if (timespec_parse_when(v, time(NULL), 0, &when, &err) == 0)
		return true;
	scontrol_fail(s, "%s\nscontrol: error: Invalid %s value", err.line, key);
	return false;
}

bool scontrol_job_value(struct scontrol *s, const char *key, const char *v)
{
	const struct row *r = row_find(job_rows, sizeof job_rows / sizeof *job_rows, key);
	bool shared = r && (!strcasecmp(key, "OverSubscribe") || !strcasecmp(key, "Shared"));
	const char *amount = *v == '+' || *v == '-' ? v + 1 : v;
	bool good = true;
	switch (r ? r->kind : K_ANY) {
	case K_TIME_LIMIT: good = limit_good(strcmp(v, "-1") ? amount : v); break;
	case K_TIME_MIN: good = limit_good(v); break;
	case K_DELAY: good = limit_good(v); break;
	case K_BEGIN:
	case K_END_TIME:
	case K_DEADLINE: return when_good(s, r->key, v);
	case K_PRIORITY:
	case K_NUM:
	case K_MEM:
	case K_MEM_NODE:
	case K_MEM_CPU:
	case K_REQUEUE: good = digits(v); break;
	case K_COUNT: good = digits(v); break;
	case K_CPUS: good = digits(v) && number_good(v, UINT32_MAX) && strspn(v, "0") != strlen(v); break;
	case K_SPEC: good = digits(v) || !strcmp(v, "-1"); break;
	case K_YES: good = word_in(v, shared ? job_yes : flag_words); break;
	case K_BOOT:
		if (!word_in(v, job_yes))
			scontrol_fail(s, "scontrol: error: Invalid reboot value: %s", v);
		return word_in(v, job_yes);
	case K_MAIL:
		if (!mail_type_known(v))
			scontrol_fail(s, "Invalid MailType: %s", v);
		return mail_type_known(v);
	case K_NODES:
		if (!*v || v[strspn(v, "0123456789-")]) {
			scontrol_fail(s, "scontrol: error: \"%s\" is not a valid node count", v);
			return false;
		}
		return true;
	default: return true;
	}
	if (!good && (r->kind == K_TIME_LIMIT || r->kind == K_TIME_MIN || r->kind == K_DELAY))
		scontrol_fail(s, "scontrol: error: Invalid %s value", r->key);
	else if (!good)
		scontrol_fail(s, "scontrol: error: Invalid %s value: %s", shared ? "OverSubscribe" : !strcasecmp(key, "ReqProcs") ? "NumTasks" : r->key, v);
	return good;
}

bool scontrol_part_value(struct scontrol *s, const char *key, const char *v)
{
	static const char *const states[] = { "UP", "DOWN", "DRAIN", "INACTIVE", NULL }, *const modes[] = { "", "OFF", "CANCEL", "REQUEUE", "SUSPEND", "GANG", "PRIORITY", "WITHIN", NULL };
	static const char *const exclusive[] = { "NO", "NONE", "NODE", "USER", "TOPO", "YES", NULL }, *const none[] = { "UNLIMITED", "INFINITE", NULL };
	const struct row *r = row_find(part_rows, sizeof part_rows / sizeof *part_rows, key);
	const char *may = NULL;
	bool good = true;
	switch (r ? r->kind : K_ANY) {
	case K_PRIORITY:
	case K_NUM: good = word_in(v, none) || number_good(v, r->max); break;
	case K_MEM: good = number_good(v, UINT32_MAX); break;
	case K_NODE_NUM:
		if (!word_in(v, none) && !digits(v))
			scontrol_fail(s, "scontrol: error: Invalid numeric value \"%s\" for %s.", v, r->key);
		return word_in(v, none) || digits(v);
	case K_TIME:
		if (!limit_good(v))
			scontrol_fail(s, "scontrol: error: Invalid input %s=%s", key, v);
		return limit_good(v);
	case K_PREEMPT:
		if (!word_in(v, modes))
			scontrol_fail(s, "scontrol: error: Invalid input: %s=%s", key, v);
		return word_in(v, modes);
	case K_EXCLUSIVE_USER:
	case K_EXCLUSIVE_TOPO:
	case K_YES: may = word_in(v, yes_no) ? NULL : "YES and NO"; break;
	case K_STATE: may = word_in(v, states) ? NULL : "UP, DOWN, DRAIN and INACTIVE"; break;
	case K_EXCLUSIVE: may = word_in(v, exclusive) ? NULL : "NO, NODE, USER, TOPO"; break;
	case K_SHARE: may = share_good(v) ? NULL : "NO, EXCLUSIVE, YES:#, and FORCE:#"; break;
	default: return true;
	}
	if (may)
		scontrol_fail(s, "scontrol: error: Invalid input: %s=%s\nscontrol: error: Acceptable %s values are %s", key, v, r->key, may);
	else if (!good)
		scontrol_fail(s, "scontrol: error: Invalid %s value: %s", r->key, v);
	return good && !may;
}
