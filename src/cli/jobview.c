/* jobview.c - a job as the list commands read it, and the facts derived from it (see jobview.h) */
#include <ctype.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/alloc.h"
#include "cli/jobview.h"
#include "cli/table.h"
#include "model/states.h"
#include "model/timespec.h"
#include "model/tres.h"

struct show_env show_env;

void show_env_init(void)
{
	const char *max = getenv("SLURM_BITSTR_LEN");
	show_env.time_format = getenv("SLURM_TIME_FORMAT");
	show_env.clusters = getenv("SLURM_CLUSTERS");
	show_env.array_max = max && isdigit((unsigned char)*max) ? (uint32_t)strtoul(max, NULL, 10) : 64;
	show_env.now = (uint64_t)time(NULL);
}

bool jobview_read_record(struct jobview *v, const uint8_t *record, size_t len)
{
	v->done = 0;
	v->task = -1;
	v->partition = (struct slice){ 0 };
	v->vol_field.data = NULL;
	return msgview_read(&v->rec, record, len);
}

bool jobview_read(struct jobview *v, const uint8_t *item, size_t len)
{
	struct wire_skim skim;
	struct wire_field f, vol = { 0 };
	bool good = false;
	wire_skim_start(&skim, item, len);
	while (wire_skim_next(&skim, &f)) {
		if (f.number == PB_JobItem_record)
			good = jobview_read_record(v, f.data, f.len);
		else if (f.number == PB_JobItem_vol)
			vol = f;
	}
	v->vol_field = vol;
	return good && !skim.bad;
}

static const struct msgview *part_read(struct jobview *v, struct msgview *part, unsigned bit, const uint8_t *data, size_t len)
{
	if (!(v->done & bit)) {
		v->done |= bit;
		if (data)
			(void)msgview_read(part, data, len);
		else
			msgview_clear(part);
	}
	return part;
}

static const struct msgview *sub_read(struct jobview *v, struct msgview *part, unsigned bit, unsigned field)
{
	bool has = msgview_has(&v->rec, field);
	return part_read(v, part, bit, has ? v->rec.f[field].data : NULL, has ? v->rec.f[field].len : 0);
}

const struct msgview *jobview_desc(struct jobview *v) { return sub_read(v, &v->desc_, JV_DESC, PB_JobRecord_desc); }
const struct msgview *jobview_alloc(struct jobview *v) { return sub_read(v, &v->alloc_, JV_ALLOC, PB_JobRecord_alloc); }
const struct msgview *jobview_vol(struct jobview *v) { return part_read(v, &v->vol_, JV_VOL, v->vol_field.data, v->vol_field.len); }

bool jobview_is_pending(const struct jobview *v) { return jobview_state(v) == PB__JOB_STATE__PENDING; }

struct slice jobview_reservation(struct jobview *v)
{
	struct slice named = msgview_text(jobview_desc(v), PB_JobDesc_reservation);
	return named.n ? named : msgview_text(&v->rec, PB_JobRecord_resv_name);
}

/* One text of the description: sorting 50,000 jobs asks for this one alone. */
static struct slice desc_text(struct jobview *v, unsigned field)
{
	bool has = msgview_has(&v->rec, PB_JobRecord_desc);
	if (!has || v->done & JV_DESC)
		return has ? msgview_text(&v->desc_, field) : (struct slice){ 0 };
	return msgview_find(v->rec.f[PB_JobRecord_desc].data, v->rec.f[PB_JobRecord_desc].len, field);
}

struct slice jobview_partition(struct jobview *v)
{
	if (v->partition.p)
		return v->partition;
	struct slice s = msgview_text(&v->rec, PB_JobRecord_partition);
	return s.p ? s : desc_text(v, PB_JobDesc_partition);
}

/* pre_suspend_sec of the record sums the seconds spent suspended so far; suspend_time is the last suspend or resume. */
uint64_t jobview_run_sec(const struct jobview *v)
{
	uint32_t state = jobview_state(v);
	uint64_t start = jobview_num(v, PB_JobRecord_start_time, 0), away = jobview_num(v, PB_JobRecord_pre_suspend_sec, 0);
	if (state == PB__JOB_STATE__PENDING || !start)
		return 0;
	uint64_t end = state == PB__JOB_STATE__RUNNING ? show_env.now : jobview_num(v, PB_JobRecord_end_time, 0);
	if (state == PB__JOB_STATE__SUSPENDED)
		end = jobview_num(v, PB_JobRecord_suspend_time, start);
	return end > start + away ? end - start - away : 0;
}

uint64_t jobview_pre_suspend_sec(const struct jobview *v)
{
	uint64_t start = jobview_num(v, PB_JobRecord_start_time, 0), away = jobview_num(v, PB_JobRecord_pre_suspend_sec, 0);
	uint64_t at = jobview_num(v, PB_JobRecord_suspend_time, 0);
	return at > start + away ? at - start - away : 0;
}

uint64_t jobview_start(struct jobview *v)
{
	uint64_t start = jobview_num(v, PB_JobRecord_start_time, 0);
	if (jobview_is_pending(v))
		start = msgview_num(jobview_vol(v), PB_JobVolatile_est_start, 0);
	else if (!start)
		start = jobview_num(v, PB_JobRecord_end_time, 0); /* it ended without having started */
	return start;
}

uint64_t jobview_end(struct jobview *v)
{
	uint64_t end = jobview_num(v, PB_JobRecord_end_time, 0);
	uint64_t limit = jobview_num(v, PB_JobRecord_time_limit_min, TIME_INFINITE);
	if (jobview_is_pending(v)) {
		uint64_t start = jobview_start(v);
		return start && limit != TIME_INFINITE ? start + limit * 60 : 0;
	}
	if (!job_state_is_final(jobview_state(v)) && limit == TIME_INFINITE)
		return 0;
	return end == TIME_INFINITE ? 0 : end;
}

uint32_t jobview_reason(struct jobview *v)
{
	uint64_t kept = jobview_num(v, PB_JobRecord_end_reason, 0);
	return (uint32_t)(job_state_is_final(jobview_state(v)) ? kept : msgview_num(jobview_vol(v), PB_JobVolatile_reason, 0));
}

uint64_t jobview_max_nodes(struct jobview *v)
{
	const struct msgview *d = jobview_desc(v);
	uint64_t min = jobview_num(v, PB_JobRecord_num_nodes, 1), tasks = msgview_num(d, PB_JobDesc_num_tasks, 1);
	if (!jobview_is_pending(v))
		return min;
	if (msgview_has(d, PB_JobDesc_max_nodes))
		return msgview_num(d, PB_JobDesc_max_nodes, 0);
	return msgview_has(d, PB_JobDesc_min_nodes) || tasks < min ? min : tasks;
}

uint64_t jobview_min_cpus_node(struct jobview *v)
{
	const struct msgview *d = jobview_desc(v);
	uint64_t per_task = msgview_num(d, PB_JobDesc_cpus_per_task, 1), tasks = msgview_num(d, PB_JobDesc_ntasks_per_node, 1);
	uint64_t need = per_task * (tasks ? tasks : 1), asked = msgview_num(d, PB_JobDesc_min_cpus_node, 0);
	return asked > need ? asked : need;
}

void put_array_task(struct str *out, struct jobview *v, const char *absent)
{
	struct slice tasks = msgview_text(&v->rec, PB_JobRecord_array_tasks);
	uint64_t limit = jobview_num(v, PB_JobRecord_array_max_running, 0);
	if (v->task >= 0) {
		put_u64(out, (uint64_t)v->task);
	} else if (tasks.n) {
		size_t max = show_env.array_max;
		bool cut = max && tasks.n > max - 1;
		if (cut) {
			while (max > 4 && tasks.p[max - 5] != ',')
				max--;
			str_add_n(out, tasks.p, max > 4 ? max - 4 : 0);
			str_add(out, "...");
		} else {
			put_slice(out, tasks, "");
		}
		if (limit)
			str_addf(out, "%%%u", (unsigned)limit);
	} else if (msgview_has(&v->rec, PB_JobRecord_array_task_id)) {
		put_u64(out, jobview_num(v, PB_JobRecord_array_task_id, 0));
	} else {
		str_add(out, absent);
	}
}

void put_job_id(struct str *out, struct jobview *v)
{
	uint64_t array = jobview_num(v, PB_JobRecord_array_job_id, 0), het = jobview_num(v, PB_JobRecord_het_job_id, 0);
	if (het) {
		str_addf(out, "%u+%u", (unsigned)het, (unsigned)jobview_num(v, PB_JobRecord_het_offset, 0));
		return;
	}
	put_u64(out, array ? array : jobview_num(v, PB_JobRecord_job_id, 0));
	if (!array)
		return;
	bool many = v->task < 0 && msgview_text(&v->rec, PB_JobRecord_array_tasks).n;
	str_add(out, many ? "_[" : "_");
	put_array_task(out, v, "");
	str_add(out, many ? "]" : "");
}

uint32_t jobview_derived_status(const struct jobview *v)
{
	return (uint32_t)jobview_num(v, PB_JobRecord_derived_status, jobview_num(v, PB_JobRecord_derived_exit, 0) << 8);
}

uint64_t jobview_eligible(struct jobview *v)
{
	/* Of a job that never was: --begin, which is its start as well. */
	return jobview_num(v, PB_JobRecord_eligible_time, jobview_is_pending(v) ? msgview_num(jobview_vol(v), PB_JobVolatile_est_start, 0) : 0);
}

void put_tres_per_task(struct str *out, struct jobview *v)
{
	const struct msgview *d = jobview_desc(v);
	struct slice more = msgview_text(d, PB_JobDesc_tres_per_task);
	bool cpus = msgview_has(d, PB_JobDesc_cpus_per_task) && !(more.n > 4 && !memcmp(more.p, "cpu=", 4));
	if (cpus)
		str_addf(out, "cpu=%u%s", (unsigned)msgview_num(d, PB_JobDesc_cpus_per_task, 1), more.n ? "," : "");
	put_slice(out, more, "");
}

/* The longer text is printed where it only says more than the word does, so that scripts still find the word. */
void put_job_reason(struct str *out, struct jobview *v)
{
	const char *name = reason_name(jobview_reason(v));
	size_t n = strlen(name);
	struct slice more = job_state_is_final(jobview_state(v)) ? msgview_text(&v->rec, PB_JobRecord_why)
								 : msgview_text(jobview_vol(v), PB_JobVolatile_reason_desc);
	/* Here the reference prints the text instead: the reservation's name; that nodes are away. */
	bool instead = more.n && (jobview_reason(v) == REASON_RESERVATION_DELETED || (!job_state_is_final(jobview_state(v)) && jobview_reason(v) == REASON_RESOURCES));
	if (instead || (more.n > n && !memcmp(more.p, name, n))) {
		put_slice(out, more, "");
		return;
	}
	str_add_n(out, name, n);
	unsigned sig = (unsigned)jobview_num(v, PB_JobRecord_exit_status, 0) & 127;
	if (jobview_reason(v) == REASON_RAISED_SIGNAL && sig)
		str_addf(out, ":%u(%s)", sig, strsignal((int)sig));
}

void put_mem(struct str *out, uint64_t mb)
{
	char buf[32];
	if (show_env.no_convert)
		snprintf(buf, sizeof(buf), mb ? "%lluM" : "%llu", (unsigned long long)mb);
	else
		mem_format(mb, buf, sizeof(buf));
	str_add(out, buf);
}

void put_job_min_memory(struct str *out, struct jobview *v)
{
	const struct msgview *d = jobview_desc(v);
	put_mem(out, msgview_has(d, PB_JobDesc_mem_per_cpu) ? msgview_num(d, PB_JobDesc_mem_per_cpu, 0)
							     : msgview_num(d, PB_JobDesc_mem_per_node, 0));
}

void put_exit(struct str *out, uint32_t status)
{
	int s = (int)status;
	put_u64(out, WIFSIGNALED(s) ? 0 : (uint64_t)WEXITSTATUS(s));
	str_add_c(out, ':');
	put_u64(out, WIFSIGNALED(s) ? (uint64_t)WTERMSIG(s) : 0);
}

static void put_or_star(struct str *out, const struct msgview *d, unsigned field)
{
	if (msgview_has(d, field))
		put_u64(out, msgview_num(d, field, 0));
	else
		str_add_c(out, '*');
}

void put_sct(struct str *out, struct jobview *v)
{
	const struct msgview *d = jobview_desc(v);
	put_or_star(out, d, PB_JobDesc_sockets_per_node);
	str_add_c(out, ':');
	put_or_star(out, d, PB_JobDesc_cores_per_socket);
	str_add_c(out, ':');
	put_or_star(out, d, PB_JobDesc_threads_per_core);
}

const char *jobview_exclusive(struct jobview *v)
{
	static const char *const word[][2] = { { "node", "NODE" }, { "exclusive", "NODE" }, { "user", "USER" }, { "mcs", "MCS" }, { "topo", "TOPO" } };
	struct slice asked = msgview_text(jobview_desc(v), PB_JobDesc_exclusive);
	for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++)
		if (slice_is(asked, word[i][0]))
			return word[i][1];
	return "NO";
}

void put_user(struct str *out, struct slice name, uint64_t uid)
{
	static uint64_t last_uid = UINT64_MAX;
	static char last[64];
	if (name.n) {
		str_add_n(out, name.p, name.n);
		return;
	}
	if (uid != last_uid) {
		const struct passwd *pw = getpwuid((uid_t)uid);
		if (pw)
			snprintf(last, sizeof(last), "%s", pw->pw_name);
		else
			snprintf(last, sizeof(last), "%u", (unsigned)uid);
		last_uid = uid;
	}
	str_add(out, last);
}

void put_group(struct str *out, struct slice name, uint64_t gid)
{
	static uint64_t last_gid = UINT64_MAX;
	static char last[64];
	if (name.n) {
		str_add_n(out, name.p, name.n);
		return;
	}
	if (gid != last_gid) {
		const struct group *gr = getgrgid((gid_t)gid);
		if (gr)
			snprintf(last, sizeof(last), "%s", gr->gr_name);
		else
			snprintf(last, sizeof(last), "%u", (unsigned)gid);
		last_gid = gid;
	}
	str_add(out, last);
}

void put_when(struct str *out, uint64_t t, const char *absent)
{
	static uint64_t last;   /* lists repeat times: many jobs are submitted in one second */
	static char buf[256];
	if (!t) {
		str_add(out, absent);
		return;
	}
	if (t != last)
		timespec_print_when((time_t)t, show_env.time_format, (time_t)show_env.now, buf, sizeof(buf));
	last = t;
	str_add(out, buf);
}

void put_secs_short(struct str *out, uint64_t secs)
{
	char buf[32];
	timespec_format_short(secs > TIME_INFINITE ? TIME_INFINITE : (uint32_t)secs, buf, sizeof(buf));
	str_add(out, buf);
}

void put_secs(struct str *out, uint64_t secs)
{
	char buf[32];
	timespec_format(secs > TIME_INFINITE ? TIME_INFINITE : (uint32_t)secs, buf, sizeof(buf));
	str_add(out, buf);
}

void put_limit_short(struct str *out, uint64_t minutes) { put_secs_short(out, minutes >= TIME_INFINITE ? TIME_INFINITE : minutes * 60); }
void put_limit(struct str *out, uint64_t minutes) { put_secs(out, minutes >= TIME_INFINITE ? TIME_INFINITE : minutes * 60); }
