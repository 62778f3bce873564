/* scontrol_print.h - what several of scontrol's files print: results of changes */
#pragma once
#include "cli/scontrol.h"
#include "proto/controller.pb-c.h"

/* Refusals of a list, one by one. `id`: as the user typed it, NULL: each result's own. `after`: begins a second line, or NULL. */
void scontrol_results(struct scontrol *s, const char *id, const Pb__ResultList *list, const char *after);
