/* endreason.h - the file SLURM_JOB_END_REASON: why this step's job is told to end, readable from a signal handler
 *
 * Lines of key=value: cause, by, seconds_left, ends_at (see doc/end-reason.md). It is in the spool, is the user's to read and empty until there is something to tell. */
#pragma once
struct envlist;
struct step;
typedef struct Pb__EndReason Pb__EndReason;
/* Makes it, empty. A step runs without it where the disk is full: its variable then names nothing. */
void endreason_prepare(struct step *s);
void endreason_env(const struct step *s, struct envlist *e);
/* Replaces it whole: whoever reads sees the old or the new. NULL: nothing is known. */
void endreason_write(struct step *s, const Pb__EndReason *end);
void endreason_remove(struct step *s);
