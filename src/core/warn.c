/* warn.c - --signal: a signal some seconds before a job's time limit, so that it can save its work
 * "[B:][R:]USR1@60" (sbatch(1)): to the steps, with B: to the batch shell alone. It is sent once a run; a run shorter than the warning gets it at
 * its start. That it was sent is in the record: a controller that starts anew does not send it twice. */
#include <stdio.h>
#include <stdlib.h>

#include "base/signame.h"
#include "core/state.h"

void warn_parse(struct core_job *j, const char *text)
{
	char name[16];
	unsigned long long sec = 60;
	const char *at = strrchr(text ? text : "", ':');
	j->warn_signal = 0;
	if (!text || !text[0])
		return;
	j->warn_batch = at && memchr(text, 'B', (size_t)(at - text));
	at = at ? at + 1 : text;
	size_t n = strcspn(at, "@");
	if (n >= sizeof name || (at[n] && str_to_u64(at + n + 1, 0, UINT16_MAX, &sec) < 0))
		return;
	snprintf(name, sizeof name, "%.*s", (int)n, at);
	int number = signame_parse(name);
	j->warn_signal = number > 0 ? (uint8_t)number : 0;
	j->warn_sec = (uint16_t)sec;
}

static uint64_t warn_at_ms(const struct core_job *j)
{
	if (!j->warn_signal || j->warned || j->state != PB__JOB_STATE__RUNNING || j->time_min == TIME_INFINITE)
		return 0;
	uint32_t at = j->end > j->warn_sec ? j->end - j->warn_sec : 0;
	return (at > j->start ? at : j->start + 1ull) * 1000ull;
}

void warn_set(struct core *c, struct core_job *j)
{
	uint64_t at = warn_at_ms(j);
	if (at)
		timer_add(c, at, TIMER_LIMIT, j->id, 0);
}

bool warn_now(struct core *c, struct core_job *j)
{
	if (!j->warn_signal || j->warned)
		return false;
	j->warned = true;
	job_signal(c, j, j->warn_signal, j->warn_batch, false, ending_warned(c, j));
	fx_persist(c, j);
	return true;
}

void warn_timer(struct core *c, struct core_job *j)
{
	uint64_t at = warn_at_ms(j);
	if (!at || at > c->now_ms)
		return;
	j->warned = true;
	job_signal(c, j, j->warn_signal, j->warn_batch, false, ending_warned(c, j));
	fx_persist(c, j);
}
