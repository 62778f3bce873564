/* usage.h - where the counting of past use stands (private to src/core; usage.c) */
#pragma once
#include "proto/assoc.pb-c.h"

struct core_usage {
	uint32_t at, kept_at, reset_at; /* seconds: all until then is counted; is in the store; use was forgotten last (0: never) */
	uint64_t tick_ms;           /* when TIMER_USAGE comes */
	Pb__AcctUsage *kept;        /* of the store, until the tables are there */
};
