/* cancel.c - why a job or step was ended, on its stderr (see cancel.h) */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "stepd/cancel.h"
#include "stepd/io.h"
#include "stepd/step.h"

void cancel_say(struct step *s, const char *why, int sig)
{
	static bool said;
	char line[1024], what[64], when[32], reason[640];
	time_t now = time(NULL);
	struct tm tm;
	if (said || !s->running || s->start->node_index)
		return;
	said = true;
	strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", localtime_r(&now, &tm));
	if (s->batch)
		snprintf(what, sizeof what, "JOB %u", s->job_id);
	else
		snprintf(what, sizeof what, "STEP %s", s->name);
	if (why && str_starts(why, "***")) {
		io_text(s, why);
		return;
	}
	if (!why || !*why || !strcmp(why, "CANCELLED"))
		snprintf(reason, sizeof reason, "DUE to SIGNAL %s", strsignal(sig));
	else
		snprintf(reason, sizeof reason, "%s%.600s", str_starts(why, "DUE ") ? "" : "DUE TO ", why);
	snprintf(line, sizeof line, "*** %s ON %s CANCELLED AT %s %s ***", what, s->node, when, reason);
	io_text(s, line);
}
