/* expect_why.h - "expect why NAME ..." of the scenario language: compares an explanation with what a line expects */
#pragma once
#include "core/core.h"

/* word: [only|hint] CODE [KEY=VALUE ...] [says=WORDS] [clears=5m]; CODE "none": there is nothing. NULL: it holds; else what is wrong, the caller frees. */
char *why_mismatch(const struct core *c, const struct core_job *j, char **word, size_t words, uint64_t start_ms);
