/* clock.h - time for measuring how long something takes */
#pragma once
#include <stdint.h>

/* Milliseconds of CLOCK_MONOTONIC: never goes back, and means nothing on its own. */
uint64_t clock_mono_ms(void);
