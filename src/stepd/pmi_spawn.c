/* pmi_spawn.c - from a spawn request of PMI to what srun is told (see pmi_spawn.h) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "stepd/pmi_spawn.h"

#define SPAWN_TASKS_MAX 100000u
#define SPAWN_TEXT_MAX (200u * 1024)

static void text_add(struct str *s, const char *text)
{
	if (!s->data)
		*s = STR_INIT;
	str_add_n(s, text, strlen(text) + 1);
}

static void number_add(struct str *s, uint32_t n)
{
	char text[16];
	snprintf(text, sizeof text, "%u", n);
	text_add(s, text);
}

static uint32_t number(const struct pmi_req *r, const char *key)
{
	const char *text = pmi_word(r, key);
	return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static const char *word_at(const struct pmi_req *r, const char *prefix, uint32_t i)
{
	char key[48];
	snprintf(key, sizeof key, "%s%u", prefix, i);
	const char *value = pmi_word(r, key);
	return value ? value : "";
}

static int command_add(struct pmi_spawn *p, uint32_t tasks, const char *dir, const char *program)
{
	if (!tasks || tasks > SPAWN_TASKS_MAX - p->tasks || !program || !*program)
		return -1;
	p->commands++;
	p->tasks += tasks;
	number_add(&p->text, tasks);
	text_add(&p->text, dir ? dir : "");
	text_add(&p->text, program);
	return 0;
}

static void pairs_add(struct pmi_spawn *p, const struct pmi_req *r, const char *count, const char *key, const char *value)
{
	if (p->n_pairs)
		return;                        /* PMI-1 repeats them with each command */
	for (uint32_t i = 0, n = number(r, count); i < n && i < PMI_WORDS; i++, p->n_pairs++) {
		text_add(&p->pairs, word_at(r, key, i));
		text_add(&p->pairs, word_at(r, value, i));
	}
}

/* The value of an info key: info_key_0=wdir, info_val_0=/tmp. */
static const char *info(const struct pmi_req *r, const char *name)
{
	for (uint32_t i = 0, n = number(r, "info_num"); i < n && i < PMI_WORDS; i++)
		if (!strcmp(word_at(r, "info_key_", i), name))
			return word_at(r, "info_val_", i);
	return NULL;
}

static int one_add(struct pmi_spawn *p, const struct pmi_req *r)
{
	uint32_t args = number(r, "argcnt");
	if (args > PMI_WORDS || command_add(p, number(r, "nprocs"), info(r, "wdir"), pmi_word(r, "execname")) < 0)
		return -1;
	number_add(&p->text, args);
	for (uint32_t i = 1; i <= args; i++)
		text_add(&p->text, word_at(r, "arg", i));
	pairs_add(p, r, "preput_num", "preput_key_", "preput_val_");
	return p->commands < number(r, "totspawns");
}

/* All commands in one record; each starts with its "subcmd" and counts its own arguments from 0. */
static int two_add(struct pmi_spawn *p, const struct pmi_req *r)
{
	for (size_t i = 0; i < r->n; i++) {
		if (strcmp(r->word[i].key, "subcmd"))
			continue;
		struct pmi_req one = { .version = 2 };
		for (size_t k = i; k < r->n && (k == i || strcmp(r->word[k].key, "subcmd")); k++)
			one.word[one.n++] = r->word[k];
		uint32_t args = number(&one, "argc");
		if (args > PMI_WORDS || command_add(p, number(&one, "maxprocs"), NULL, one.word[0].value) < 0)
			return -1;
		number_add(&p->text, args);
		for (uint32_t k = 0; k < args; k++)
			text_add(&p->text, word_at(&one, "argv", k));
	}
	pairs_add(p, r, "preputcount", "ppkey", "ppval");
	return p->commands && p->commands == number(r, "ncmds") ? 0 : -1;
}

int pmi_spawn_add(struct pmi_spawn *p, const struct pmi_req *r)
{
	int rc = r->version == 1 ? one_add(p, r) : two_add(p, r);
	return p->text.len + p->pairs.len > SPAWN_TEXT_MAX ? -1 : rc;
}

uint8_t *pmi_spawn_text(struct pmi_spawn *p, size_t *ret_n)
{
	struct str all = STR_INIT;
	number_add(&all, p->commands);
	str_add_n(&all, p->text.data, p->text.len);
	number_add(&all, p->n_pairs);
	if (p->n_pairs)
		str_add_n(&all, p->pairs.data, p->pairs.len);
	*ret_n = all.len;
	uint32_t tasks = p->tasks;
	pmi_spawn_clear(p);
	p->tasks = tasks;
	return (uint8_t *)str_take(&all);
}

void pmi_spawn_clear(struct pmi_spawn *p)
{
	if (p->text.data)
		str_fini(&p->text);
	if (p->pairs.data)
		str_fini(&p->pairs);
	*p = (struct pmi_spawn){ 0 };
}
