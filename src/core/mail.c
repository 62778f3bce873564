/* mail.c - --mail-type: which turns of a job's life are told by mail, and the subject of each
 * The shell runs MailProg. Without ARRAY_TASKS an array is one thing: it began with its first task and has ended with its last. Of the
 * points before a limit each is told once a run; after a restart of the controller those that are past are not told again. */
#include <stdio.h>
#include <stdlib.h>

#include "core/state.h"

enum { M_BEGIN = 1, M_END = 2, M_FAIL = 4, M_REQUEUE = 8, M_INVALID = 16, M_STAGE_OUT = 32, M_LIMIT = 64, M_90 = 128, M_80 = 256, M_50 = 512, M_TASKS = 1024 };
static const struct { const char *word; uint16_t bits; } words[] = {
	{ "BEGIN", M_BEGIN }, { "END", M_END }, { "FAIL", M_FAIL }, { "REQUEUE", M_REQUEUE }, { "ALL", M_BEGIN | M_END | M_FAIL | M_REQUEUE | M_INVALID | M_STAGE_OUT },
	{ "INVALID_DEPEND", M_INVALID }, { "STAGE_OUT", M_STAGE_OUT }, { "TIME_LIMIT", M_LIMIT }, { "TIME_LIMIT_90", M_90 }, { "TIME_LIMIT_80", M_80 },
	{ "TIME_LIMIT_50", M_50 }, { "ARRAY_TASKS", M_TASKS },
};
static const struct { uint16_t bit; uint8_t percent; const char *type; } points[] = {
	{ M_50, 50, "Reached 50% of time limit" }, { M_80, 80, "Reached 80% of time limit" }, { M_90, 90, "Reached 90% of time limit" },
};

void mail_parse(struct core_job *j, const char *list)
{
	j->mail = 0;
	while (list && *list) {
		size_t n = strcspn(list, ",");
		for (size_t i = 0; i < sizeof words / sizeof *words; i++)
			if (strlen(words[i].word) == n && !strncasecmp(list, words[i].word, n))
				j->mail |= words[i].bits;
		if (n == 4 && !strncasecmp(list, "NONE", 4)) {
			j->mail = 0;
			return;
		}
		list += n + (list[n] == ',');
	}
}

static bool as_array(const struct core_job *j) { return j->array && !(j->mail & M_TASKS); }

/* `type`: what SLURM_JOB_MAIL_TYPE says and the subject begins with; more: what follows it. */
static void mail(struct core *c, const struct core_job *j, const char *type, const char *more)
{
	struct str s = STR_INIT;
	char *name = job_desc_str(j, 1);
	if (as_array(j))
		str_addf(&s, "Slurm Array Summary Job_id=%u_* (%u)", j->array->id, j->array->id);
	else if (j->array && j->task != UINT32_MAX)
		str_addf(&s, "Slurm Array Task Job_id=%u_%u (%u)", j->array->id, j->task, j->id);
	else
		str_addf(&s, "Slurm Job_id=%u", j->id);
	size_t from = s.len;
	str_addf(&s, " Name=%s", name ? name : "");
	str_mask_controls(&s, from);
	str_addf(&s, " %s%s", type, more);
	struct core_effect *e = effects_push(c->fx, FX_MAIL);
	e->job_id = j->id;
	e->mail_type = type;
	e->text = arena_strdup(fx_arena(c), s.data);
	str_fini(&s);
	free(name);
}

static const char *span(char buf[48], const char *what, uint32_t sec)
{
	char text[32];
	timespec_format(sec, text, sizeof text);
	snprintf(buf, 48, ", %s %s", what, text);
	return buf;
}

void mail_began(struct core *c, struct core_job *j)
{
	char buf[48];
	bool first = !as_array(j) || !j->array->mail_began;
	if (as_array(j))
		j->array->mail_began = true;
	if (j->mail & M_BEGIN && first)
		mail(c, j, "Began", as_array(j) ? "" : span(buf, "Queued time", j->eligible && j->start > j->eligible ? j->start - j->eligible : 0));
}

static bool is_failure(uint32_t state) { return state != PB__JOB_STATE__COMPLETED && state != PB__JOB_STATE__CANCELLED; }

static void array_note(struct array *a, const struct core_job *j)
{
	uint8_t code = (uint8_t)(j->exit_status >> 8), sig = j->has_exit ? j->exit_status & 127 : 0;
	bool first = !a->mail_ended++;
	a->exit_lo = first || code < a->exit_lo ? code : a->exit_lo;
	a->exit_hi = first || code > a->exit_hi ? code : a->exit_hi;
	a->sig_hi = sig > a->sig_hi ? sig : a->sig_hi;
	a->end_state = first || a->end_state == j->state ? j->state : UINT8_MAX;
	a->any_failed = a->any_failed || is_failure(j->state);
}

static void array_ended(struct core *c, struct core_job *j)
{
	struct array *a = j->array;
	struct str s = STR_INIT;
	array_note(a, j);
	if (a->head || a->split_pending || a->running)
		return;
	str_addf(&s, ", %s", a->end_state == UINT8_MAX ? "Mixed" : job_state_name(a->end_state, 0));
	if (a->sig_hi)
		str_addf(&s, ", MaxSignal [%u]", a->sig_hi);
	else
		str_addf(&s, ", ExitCode [%u-%u]", a->exit_lo, a->exit_hi);
	if (a->any_failed && j->mail & M_FAIL)
		mail(c, j, "Failed", s.data);
	else if (j->mail & M_END)
		mail(c, j, "Ended", s.data);
	str_fini(&s);
}

void mail_ended(struct core *c, struct core_job *j)
{
	struct str s = STR_INIT;
	char buf[48];
	if (!j->mail)
		return;
	if (as_array(j)) {
		array_ended(c, j);
		return;
	}
	str_addf(&s, "%s, %s", span(buf, "Run time", job_time_used(c, j)), job_state_name(j->state, 0));
	if (!j->has_exit || !(j->exit_status & 127))
		str_addf(&s, ", ExitCode %u", j->has_exit ? j->exit_status >> 8 & 255 : 0);
	if (is_failure(j->state) && j->mail & M_FAIL)
		mail(c, j, "Failed", s.data);
	else if (j->mail & M_END)
		mail(c, j, "Ended", s.data);
	str_fini(&s);
}

void mail_requeued(struct core *c, struct core_job *j)
{
	char buf[48];
	if (j->mail & M_REQUEUE)
		mail(c, j, "Requeued", as_array(j) ? "" : span(buf, "Run time", job_time_used(c, j)));
}

void mail_invalid_dependency(struct core *c, struct core_job *j)
{
	if (j->mail & M_INVALID)
		mail(c, j, "Invalid dependency", "");
}

void mail_limit_reached(struct core *c, struct core_job *j)
{
	char buf[48];
	if (j->mail & M_LIMIT)
		mail(c, j, "Reached time limit", span(buf, "Run time", job_time_used(c, j)));
}

/* When a share of the limit is used up; 0: not of this job. */
static uint64_t point_at(const struct core_job *j, size_t i)
{
	if (!(j->mail & points[i].bit) || j->mail_percent >= points[i].percent || j->state != PB__JOB_STATE__RUNNING || j->time_min == TIME_INFINITE)
		return 0;
	return j->end - (uint64_t)j->time_min * 60 * (100 - points[i].percent) / 100;
}

void mail_set(struct core *c, struct core_job *j)
{
	for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
		uint64_t at = point_at(j, i);
		if (at && at < now_sec(c))
			j->mail_percent = points[i].percent; /* past already: the limit was lowered, or the controller is new */
		else if (at)
			timer_add(c, at * 1000, TIMER_LIMIT, j->id, 0);
	}
}

void mail_timer(struct core *c, struct core_job *j)
{
	char buf[48];
	for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
		uint64_t at = point_at(j, i);
		if (!at || at > now_sec(c))
			continue;
		j->mail_percent = points[i].percent;
		mail(c, j, points[i].type, span(buf, "Run time", job_time_used(c, j)));
	}
}
