/* show.c - the rows of `scontrol show config`, as the reference prints them
 *
 * The order is the order of tables/config.def; the column `show` of a row says how its value is written. What depends on more than its own key has a
 * writer here (SHOW_OWN), which may write no row, one, or several (Prolog[0], Prolog[1]). Checked against recordings in conf_show_test.c. */
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "conf/internal.h"
#include "model/timespec.h"

struct show {
	const struct conf *c;
	const struct conf_show_live *live;
	struct conf_show_row *row;
	size_t n, cap;
};

static void row_take(struct show *s, enum conf_key k, char *key, char *value)
{
	s->row = xgrow(s->row, &s->cap, s->n + 1, sizeof *s->row);
	s->row[s->n++] = (struct conf_show_row){ key, value ? value : xstrdup("(null)"), conf_row(k)->section == SEC_CGROUP };
}

/* value NULL: "(null)". */
static void row_add(struct show *s, enum conf_key k, const char *value) { row_take(s, k, xstrdup(conf_row(k)->name), xstrdup_null(value)); }

static void row_addf(struct show *s, enum conf_key k, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void row_addf(struct show *s, enum conf_key k, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	row_take(s, k, xstrdup(conf_row(k)->name), text);
}

/* --- rows that depend on more than their key ------------------------------------------------------------ */
static bool by_dbd(const struct show *s) { return str_eq_nocase(conf_str(s->c, CONF_AccountingStorageType), "accounting_storage/slurmdbd"); }

static void show_when(struct show *s, enum conf_key k, time_t t)
{
	char buf[64];
	timespec_print_when(t, NULL, t, buf, sizeof buf);
	row_add(s, k, buf);
}

static void show_live(struct show *s, enum conf_key k)
{
	switch (k) {
	case CONF_BOOT_TIME: show_when(s, k, (time_t)(s->live ? s->live->boot_time : 0)); break;
	case CONF_NEXT_JOB_ID: row_addf(s, k, "%u", s->live ? s->live->next_job_id : 1); break;
	case CONF_HASH_VAL: row_add(s, k, "Match"); break;
	case CONF_MULTIPLE_SLURMD: row_add(s, k, "yes"); break;
	case CONF_SLURM_CONF: row_add(s, k, conf_path(s->c)); break;
	default: row_add(s, k, BERTH_VERSION); break;
	}
}

static void show_storage_port(struct show *s, enum conf_key k) { row_addf(s, k, "%llu", by_dbd(s) ? (unsigned long long)conf_num(s->c, k) : 0); }

static void show_storage_tres(struct show *s, enum conf_key k)
{
	const char *more = conf_str(s->c, k);
	struct str out = STR_INIT;
	str_add(&out, "cpu,mem,energy,node,billing,fs/disk,vmem,pages");
	for (const char *p = more; p && *p;) {
		size_t n = strcspn(p, ",");
		str_addf(&out, ",%.*s", (int)n, p);
		if (n == 8 && !strncasecmp(p, "gres/gpu", n))
			str_add(&out, ",gres/gpumem,gres/gpuutil");
		p += n + (p[n] == ',');
	}
	row_take(s, k, xstrdup(conf_row(k)->name), str_take(&out));
}

static void show_cpu_freq(struct show *s, enum conf_key k)
{
	const char *v = conf_str(s->c, k);
	row_add(s, k, v ? v : "Unknown");
}

static void show_cred_type(struct show *s, enum conf_key k)
{
	const char *v = conf_str(s->c, k), *auth = conf_str(s->c, CONF_AuthType);
	row_add(s, k, v ? v : auth && strstr(auth, "munge") ? "cred/munge" : "cred/slurm");
}

/* "DefMemPerCPU" when it is set, else "DefMemPerNode"; so with Max. */
static void show_mem(struct show *s, enum conf_key k)
{
	bool is_def = k == CONF_DefMemPerCPU || k == CONF_DefMemPerNode, is_cpu = k == CONF_DefMemPerCPU || k == CONF_MaxMemPerCPU;
	enum conf_key cpu = is_def ? CONF_DefMemPerCPU : CONF_MaxMemPerCPU;
	if (conf_is_set(s->c, cpu) != is_cpu)
		return;
	uint64_t v = conf_num(s->c, k);
	if (v == UINT64_MAX || (!v && !is_cpu))
		row_add(s, k, "UNLIMITED");
	else
		row_addf(s, k, "%llu", (unsigned long long)v);
}

static void show_part_limits(struct show *s, enum conf_key k)
{
	const char *v = conf_str(s->c, k);
	row_add(s, k, !strcasecmp(v, "YES") || !strcasecmp(v, "ANY") ? "ANY" : !strcasecmp(v, "ALL") ? "ALL" : "NO");
}

static void show_list(struct show *s, enum conf_key k)
{
	const char *const *list;
	size_t n = conf_list(s->c, k, &list);
	for (size_t i = 0; i < n; i++)
		row_take(s, k, xasprintf("%s[%zu]", conf_row(k)->name, i), xstrdup(list[i]));
}

static void show_prolog_timeout(struct show *s, enum conf_key k)
{
	bool own = conf_is_set(s->c, CONF_PrologTimeout) || conf_is_set(s->c, CONF_EpilogTimeout);
	if (k == CONF_PrologEpilogTimeout ? !own : conf_is_set(s->c, k))
		row_addf(s, k, "%llu", (unsigned long long)conf_num(s->c, k));
}

static void show_job_defaults(struct show *s, enum conf_key k)
{
	struct str out = STR_INIT;
	if (conf_is_set(s->c, CONF_DefCpuPerGPU))
		str_addf(&out, "DefCpuPerGPU=%llu", (unsigned long long)conf_num(s->c, CONF_DefCpuPerGPU));
	if (conf_is_set(s->c, CONF_DefMemPerGPU))
		str_addf(&out, "%sDefMemPerGPU=%llu", out.len ? "," : "", (unsigned long long)conf_num(s->c, CONF_DefMemPerGPU));
	row_add(s, k, out.len ? out.data : NULL);
	str_fini(&out);
}

static void show_null(struct show *s, enum conf_key k) { row_add(s, k, NULL); }

static void show_time_format(struct show *s, enum conf_key k)
{
	const char *v = conf_str(s->c, k);
	char word[32] = "iso8601_ms";
	for (const char *p = v; p && *p;) {
		size_t n = strcspn(p, ",");
		if (n < sizeof word && strncasecmp(p, "thread_id", n) && strncasecmp(p, "format_stderr", n))
			snprintf(word, sizeof word, "%.*s", (int)n, p);
		p += n + (p[n] == ',');
	}
	row_add(s, k, word);
}

static void show_max_dbd(struct show *s, enum conf_key k)
{
	uint64_t v = conf_num(s->c, CONF_MaxJobCount) * 2 + s->c->node_n * 4;
	if (conf_is_set(s->c, k))
		v = conf_num(s->c, k);
	row_addf(s, k, "%llu", (unsigned long long)(by_dbd(s) ? v < 10000 ? 10000 : v : 0));
}

static void show_max_nodes(struct show *s, enum conf_key k)
{
	uint64_t v = conf_is_set(s->c, k) ? conf_num(s->c, k) : 0;
	row_addf(s, k, "%llu", (unsigned long long)(v > s->c->node_n ? v : s->c->node_n));
}

static void show_priority_flags(struct show *s, enum conf_key k)
{
	const char *v = conf_str(s->c, k);
	char *words = v ? conf_words_canon(k, v) : NULL;
	row_take(s, k, xstrdup(conf_row(k)->name), words ? words : xstrdup(""));
}

static void show_private(struct show *s, enum conf_key k)
{
	char *words = conf_words_canon(k, conf_has(s->c, k, "all") ? "accounts,events,jobs,nodes,partitions,reservations,usage,users" : conf_str(s->c, k));
	row_take(s, k, xstrdup(conf_row(k)->name), words);
}

/* Contain, X11 and Serial mean Alloc too. */
static void show_prolog_flags(struct show *s, enum conf_key k)
{
	const char *v = conf_str(s->c, k);
	char *more = v ? xasprintf("Alloc,%s%s", conf_has(s->c, k, "X11") ? "Contain," : "", v) : NULL;
	row_take(s, k, xstrdup(conf_row(k)->name), more ? conf_words_canon(k, more) : NULL);
	free(more);
}

static void show_rlimits(struct show *s, enum conf_key k)
{
	const char *v = conf_str(s->c, k), *except = conf_str(s->c, CONF_PropagateResourceLimitsExcept);
	const char *set = s->c->value[k].set ? s->c->value[k].text : NULL;
	row_add(s, k, set ? set : v ? v : except ? NULL : "ALL");
}

static void show_user(struct show *s, enum conf_key k)
{
	const char *v = conf_str(s->c, k);
	char *end;
	unsigned long uid = strtoul(v, &end, 10);
	struct passwd *pw = *end ? getpwnam(v) : getpwuid((uid_t)uid);
	if (pw)
		row_addf(s, k, "%s(%u)", pw->pw_name, pw->pw_uid);
	else
		row_add(s, k, v);
}

static void show_ctld_level(struct show *s, enum conf_key k)
{
	row_add(s, k, s->live && s->live->level ? s->live->level : conf_str(s->c, k) ? log_level_name((enum log_level)conf_num(s->c, k)) : NULL);
}

static void show_level(struct show *s, enum conf_key k) { row_add(s, k, conf_str(s->c, k) ? log_level_name((enum log_level)conf_num(s->c, k)) : NULL); }

static void show_hosts(struct show *s, enum conf_key k)
{
	for (size_t i = 0; i < s->c->controller_n; i++) {
		const struct conf_controller *h = &s->c->controller[i];
		char *key = xasprintf("%s[%zu]", conf_row(k)->name, i);
		row_take(s, k, key, strcmp(h->host, h->addr) ? xasprintf("%s(%s)", h->host, h->addr) : xstrdup(h->host));
	}
}

static void show_suspend_time(struct show *s, enum conf_key k)
{
	uint64_t v = conf_num(s->c, k);
	if (v == UINT64_MAX)
		row_add(s, k, "INFINITE");
	else
		row_addf(s, k, "%llu sec", (unsigned long long)v);
}

static void show_task_plugin(struct show *s, enum conf_key k)
{
	const char *v = conf_str(s->c, k);
	bool cgroup = v && strcasestr(v, "cgroup"), affinity = v && strcasestr(v, "affinity");
	row_add(s, k, cgroup && affinity ? "task/cgroup,task/affinity" : cgroup ? "task/cgroup" : affinity ? "task/affinity" : NULL);
}

static void show_task_param(struct show *s, enum conf_key k)
{
	const char *v = s->c->value[k].set ? s->c->value[k].text : NULL;
	struct str out = STR_INIT;
	static const char *const words[] = { "verbose", "none", "sockets", "cores", "threads" };
	for (size_t i = 0; v && i < sizeof words / sizeof *words; i++)
		if (strcasestr(v, words[i]))
			str_add_sep(&out, ",", words[i]);
	row_add(s, k, out.len ? out.data : "(null type)");
	str_fini(&out);
}

static const struct { enum conf_key key; void (*fn)(struct show *s, enum conf_key k); } own[] = {
	{ CONF_BOOT_TIME, show_live }, { CONF_HASH_VAL, show_live }, { CONF_MULTIPLE_SLURMD, show_live }, { CONF_NEXT_JOB_ID, show_live },
	{ CONF_SLURM_CONF, show_live }, { CONF_SLURM_VERSION, show_live }, { CONF_AccountingStoragePort, show_storage_port },
	{ CONF_AccountingStorageTRES, show_storage_tres }, { CONF_CpuFreqDef, show_cpu_freq }, { CONF_CredType, show_cred_type },
	{ CONF_DefMemPerCPU, show_mem }, { CONF_DefMemPerNode, show_mem }, { CONF_MaxMemPerCPU, show_mem }, { CONF_MaxMemPerNode, show_mem },
	{ CONF_EnforcePartLimits, show_part_limits }, { CONF_Epilog, show_list }, { CONF_EpilogSlurmctld, show_list }, { CONF_Prolog, show_list },
	{ CONF_PrologSlurmctld, show_list }, { CONF_EpilogTimeout, show_prolog_timeout }, { CONF_PrologTimeout, show_prolog_timeout },
	{ CONF_PrologEpilogTimeout, show_prolog_timeout }, { CONF_JobCompPass, show_null }, { CONF_JobDefaults, show_job_defaults },
	{ CONF_LogTimeFormat, show_time_format }, { CONF_MaxDBDMsgs, show_max_dbd }, { CONF_MaxNodeCount, show_max_nodes },
	{ CONF_PriorityFlags, show_priority_flags }, { CONF_PrivateData, show_private }, { CONF_PrologFlags, show_prolog_flags },
	{ CONF_PropagateResourceLimits, show_rlimits }, { CONF_SlurmUser, show_user }, { CONF_SlurmdUser, show_user }, { CONF_SlurmctldDebug, show_ctld_level },
	{ CONF_SlurmdDebug, show_level }, { CONF_SlurmctldSyslogDebug, show_level }, { CONF_SlurmdSyslogDebug, show_level }, { CONF_SlurmctldHost, show_hosts },
	{ CONF_SuspendTime, show_suspend_time }, { CONF_TaskPlugin, show_task_plugin }, { CONF_TaskPluginParam, show_task_param },
};

/* --- rows by their kind ------------------------------------------------------------------------------------- */
static void show_own(struct show *s, enum conf_key k)
{
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (own[i].key == k) {
			own[i].fn(s, k);
			return;
		}
	abort();
}

static void show_number(struct show *s, enum conf_key k, const char *unit)
{
	uint64_t v = conf_num(s->c, k);
	if (v == UINT64_MAX && !conf_str(s->c, k))
		row_add(s, k, NULL);
	else if (v == UINT64_MAX)
		row_add(s, k, "UNLIMITED");
	else
		row_addf(s, k, "%llu%s", (unsigned long long)v, unit);
}

static void show_span(struct show *s, enum conf_key k)
{
	uint64_t v = conf_num(s->c, k) * (conf_row(k)->type == CT_MINS ? 60 : 1);
	char buf[64];
	timespec_format(v > UINT32_MAX ? TIME_INFINITE : (uint32_t)v, buf, sizeof buf);
	row_add(s, k, buf);
}

static void show_words(struct show *s, enum conf_key k, bool upper)
{
	const char *v = k == CONF_DebugFlags && s->live && s->live->debug_flags ? s->live->debug_flags : conf_str(s->c, k);
	char *words = v ? conf_words_canon(k, v) : NULL;
	for (char *p = words; upper && p && *p; p++)
		*p = *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p;
	row_take(s, k, xstrdup(conf_row(k)->name), words);
}

static void show_key(struct show *s, enum conf_key k)
{
	switch ((enum conf_show)conf_row(k)->show) {
	case SHOW_NONE: break;
	case SHOW_STR: row_add(s, k, conf_str(s->c, k)); break;
	case SHOW_NUM: show_number(s, k, ""); break;
	case SHOW_SEC: show_number(s, k, " sec"); break;
	case SHOW_MIN: show_number(s, k, " min"); break;
	case SHOW_USEC: show_number(s, k, " usec"); break;
	case SHOW_PCT: show_number(s, k, " percent"); break;
	case SHOW_NPM: show_number(s, k, " nodes/min"); break;
	case SHOW_MB: show_number(s, k, "MB"); break;
	case SHOW_MSEC: show_number(s, k, " ms"); break;
	case SHOW_YN: row_add(s, k, conf_bool(s->c, k) ? "yes" : "no"); break;
	case SHOW_HMS: show_span(s, k); break;
	case SHOW_CANON: show_words(s, k, false); break;
	case SHOW_UPPER: show_words(s, k, true); break;
	case SHOW_PC1: row_addf(s, k, "%.1f%%", strtod(conf_str(s->c, k), NULL)); break;
	case SHOW_OWN: show_own(s, k); break;
	}
}

static bool uses_cgroups(const struct conf *c)
{
	static const enum conf_key keys[] = { CONF_ProctrackType, CONF_TaskPlugin, CONF_JobAcctGatherType };
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const char *v = conf_str(c, keys[i]);
		if (v && strcasestr(v, "cgroup"))
			return true;
	}
	return false;
}

/* Rows of the multifactor plugin are shown only when it is used. */
static bool is_hidden(const struct conf *c, enum conf_key k)
{
	bool multi = k == CONF_PriorityDecayHalfLife || k == CONF_PriorityCalcPeriod || k == CONF_PriorityFavorSmall || k == CONF_PriorityFlags || k == CONF_PriorityMaxAge || k == CONF_FairShareDampeningFactor ||
		     (k >= CONF_PriorityUsageResetPeriod && k <= CONF_PriorityWeightTRES);
	return multi && str_eq_nocase(conf_str(c, CONF_PriorityType), "priority/basic");
}

size_t conf_show_rows(const struct conf *c, const struct conf_show_live *live, struct conf_show_row **ret)
{
	struct show s = { .c = c, .live = live };
	bool cgroups = uses_cgroups(c);
	for (int k = 0; k < CONF_KEYS; k++) {
		enum conf_section sec = conf_row((enum conf_key)k)->section;
		if ((sec == SEC_SLURM || sec == SEC_SHOW || (sec == SEC_CGROUP && cgroups)) && !is_hidden(c, (enum conf_key)k))
			show_key(&s, (enum conf_key)k);
	}
	*ret = s.row;
	return s.n;
}

void conf_show_free(struct conf_show_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(rows[i].key);
		free(rows[i].value);
	}
	free(rows);
}
