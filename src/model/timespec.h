/* timespec.h - time limits and points in time, as every command reads and prints them
 * Limits: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, days-hours:minutes:seconds; UNLIMITED, INFINITE, -1. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include "base/error.h"

#define TIME_INFINITE UINT32_MAX
/* Seconds; TIME_INFINITE. Minutes over 59 add up. Empty or trailing text: -EINVAL. */
int timespec_parse_secs(const char *text, uint32_t *ret_sec, struct error *err);
/* Whole minutes, seconds rounded up. */
int timespec_parse_mins(const char *text, uint32_t *ret_min, struct error *err);
/* "[D-]HH:MM:SS"; short form of squeue's TIME leaves out leading zero hours ("1:05", "0:00", "1-02:03:04"). "UNLIMITED". */
void timespec_format(uint32_t secs, char *buf, size_t size);            /* 00:10:00 */
void timespec_format_short(uint32_t secs, char *buf, size_t size);      /* 10:00 */
/* now, now+60, now+2hours, 16:00, 16:00:10, noon, midnight, fika, teatime, today, tomorrow, MMDDYY, MM/DD[/YY], YYYY-MM-DD[THH:MM[:SS]], 1970-01-01-00:00:01, uts<epoch>.
 * `now` is given (purity); past: what a time of day already over today means: 0 tomorrow (submit), 1 today (sacct). err says the position. */
int timespec_parse_when(const char *text, time_t now, int past, time_t *ret, struct error *err);
/* "2026-11-30T03:47:36", honouring SLURM_TIME_FORMAT as given in `fmt` (NULL: standard; "relative"; "rfc3339": with the offset from UTC; strftime). */
void timespec_print_when(time_t t, const char *fmt, time_t now, char *buf, size_t size);
