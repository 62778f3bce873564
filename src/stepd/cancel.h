/* cancel.h - the line a user finds when his job was ended: "*** JOB 5 ON node-1 CANCELLED AT 2026-11-30T04:47:15 DUE TO TIME LIMIT ***" */
#pragma once
struct step;
/* `why` as slurmctld gives it: "DUE TO ...", "CANCELLED" or NULL (then the signal is named), or a sentence. Said once a step, by its first node. */
void cancel_say(struct step *s, const char *why, int sig);
