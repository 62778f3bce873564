/* localzone.h - the system's time zone (TZ, /etc/localtime) as the table that the core takes */
#pragma once
#include "model/zone.h"

/* All changes between two times (seconds since the epoch). *ret is malloc'd; returns how many, at least 1. */
uint32_t localzone_load(int64_t from, int64_t to, struct zone_change **ret);
