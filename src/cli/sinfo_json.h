/* sinfo_json.h - sinfo --json and --yaml */
#pragma once
#include "cli/sinfo.h"

static inline bool sinfo_is_json(const struct sinfo *q) { return q->json || q->yaml; }
void sinfo_json_print(const struct sinfo *q, struct sinfo_line *line, size_t n);
