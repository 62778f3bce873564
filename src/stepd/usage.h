/* usage.h - what the tasks of a step have used, from wait4(2) */
#pragma once
#include "proto/step.pb-c.h"
struct step;
void usage_fill(const struct step *s, Pb__StepUsage *ret);
