/* stepid.h - the steps that have a word instead of a number: 5.batch, 5.extern, 5.interactive */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

#define STEP_ID_BATCH 0xfffffffbu
#define STEP_ID_EXTERN 0xfffffffcu
#define STEP_ID_INTERACTIVE 0xfffffffau

/* Its word; NULL: it is a number. */
const char *stepid_word(uint32_t id);
/* Its word or its number. */
void stepid_add(struct str *out, uint32_t id);
void stepid_text(uint32_t id, char *buf, size_t size);
/* "5.batch", "5.0": the name of a step in logs and process titles; cut where size ends. */
void stepid_format(uint32_t job_id, uint32_t id, char *buf, size_t size);
/* false: no step is called so. */
bool stepid_of_word(const char *word, uint32_t *ret);
