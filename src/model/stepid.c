/* stepid.c - see stepid.h */
#include <stdio.h>
#include <string.h>

#include "model/stepid.h"

static const struct { uint32_t id; const char *word; } special[] = {
	{ STEP_ID_BATCH, "batch" }, { STEP_ID_EXTERN, "extern" }, { STEP_ID_INTERACTIVE, "interactive" },
};
#define SPECIAL (sizeof special / sizeof *special)

const char *stepid_word(uint32_t id)
{
	for (size_t i = 0; i < SPECIAL; i++)
		if (special[i].id == id)
			return special[i].word;
	return NULL;
}

void stepid_text(uint32_t id, char *buf, size_t size)
{
	const char *word = stepid_word(id);
	if (word)
		snprintf(buf, size, "%s", word);
	else
		snprintf(buf, size, "%u", id);
}

void stepid_add(struct str *out, uint32_t id)
{
	char text[16];
	stepid_text(id, text, sizeof text);
	str_add(out, text);
}

void stepid_format(uint32_t job_id, uint32_t id, char *buf, size_t size)
{
	char text[16];
	stepid_text(id, text, sizeof text);
	snprintf(buf, size, "%u.%s", job_id, text);
}

bool stepid_of_word(const char *word, uint32_t *ret)
{
	for (size_t i = 0; i < SPECIAL; i++)
		if (!strcmp(special[i].word, word)) {
			*ret = special[i].id;
			return true;
		}
	return false;
}
