/* resvflag.h - flags of a reservation as words, from tables/resv_flags.def */
#pragma once
#include <stdint.h>
#include <stdbool.h>
#include "base/error.h"

enum { /* bits of ReservationRecord.flags */
#define RESV_FLAG(sym, bit, shown, typed, kind) RESVF_##sym = 1u << bit,
#include "tables/resv_flags.def"
#undef RESV_FLAG
};
#define RESVF_RECURRING (RESVF_HOURLY | RESVF_DAILY | RESVF_WEEKLY | RESVF_WEEKDAY | RESVF_WEEKEND)

/* "MAINT,PURGE_COMP=00:10:00": malloc'd, "" for none. */
char *resvflag_format(uint64_t flags, uint32_t purge_sec);
/* One word, any case. `born`: the reservation is being made; `away`: it is to be taken off. *ret_purge_sec: of PURGE_COMP=time, else unchanged. Bit, or 0 with *err. */
uint32_t resvflag_parse(const char *word, bool born, bool away, uint32_t *ret_purge_sec, struct error *err);
