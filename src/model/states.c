/* states.c - words for states and reasons
 * Everything but the compound node words comes from tables/. A node's word is: the first row of `word_rule` whose
 * condition holds; its suffix the first row of `suffix_rule`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "model/states.h"

struct state_word { const char *name, *compact; uint32_t bit; };
static const struct state_word job_states[] = {
#define JOB_STATE(sym, c) { #sym, c, 0 },
#include "tables/job_states.def"
#undef JOB_STATE
};
static const struct state_word job_flags[] = {
#define JOB_FLAG(sym, b, c) { #sym, c, 1u << b },
#include "tables/job_states.def"
#undef JOB_FLAG
};
static const struct { const char *name, *brief, *full; } node_states[] = {
#define NODE_STATE(sym, s, l) { #sym, s, l },
#include "tables/node_states.def"
#undef NODE_STATE
};
static const struct state_word node_flags[] = {
#define NODE_FLAG(sym, b, word) { word, NULL, 1u << b },
#include "tables/node_states.def"
#undef NODE_FLAG
};
static const char *const reasons[] = {
#define REASON(sym, name) name,
#include "tables/reasons.def"
#undef REASON
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct state_word *job_word(uint32_t state, uint32_t flags)
{
	static const struct state_word unknown = { "INVALID", "?", 0 };
	for (size_t i = 0; i < COUNT(job_flags); i++)
		if (flags & job_flags[i].bit)
			return &job_flags[i];
	return state < COUNT(job_states) ? &job_states[state] : &unknown;
}

const char *job_state_name(uint32_t state, uint32_t flags) { return job_word(state, flags)->name; }
const char *job_state_compact(uint32_t state, uint32_t flags) { return job_word(state, flags)->compact; }

int job_state_parse(const char *text, bool *ret_is_flag, uint32_t *ret)
{
	for (size_t i = 0; i < COUNT(job_states); i++) {
		if (strcasecmp(text, job_states[i].name) == 0 || strcasecmp(text, job_states[i].compact) == 0) {
			*ret_is_flag = false;
			*ret = (uint32_t)i;
			return 0;
		}
	}
	for (size_t i = 0; i < COUNT(job_flags); i++) {
		if (strcasecmp(text, job_flags[i].name) == 0 || strcasecmp(text, job_flags[i].compact) == 0) {
			*ret_is_flag = true;
			*ret = job_flags[i].bit;
			return 0;
		}
	}
	return -EINVAL;
}

const char *reason_name(uint32_t reason)
{
	return reason < COUNT(reasons) ? reasons[reason] : "None";
}

/* --- nodes --------------------------------------------------------------------------------------- */

#define BASE(s) (1u << NODE_##s)
enum { BASES_BUSY = BASE(ALLOCATED) | BASE(MIXED), BASES_ANY = ~0 };

/* Base is one of `bases`, all of `flags` are set: these words. */
static const struct { uint32_t bases, flags; const char *brief, *full; } word_rule[] = {
	{ BASES_ANY, NODEF_INVALID_REG, "inval", "inval" },
	{ BASE(IDLE), NODEF_MAINTENANCE, "maint", "maint" },
	{ BASE(IDLE) | BASE(DOWN), NODEF_REBOOT_ISSUED, "boot", "reboot" },
	{ BASES_BUSY, NODEF_DRAIN, "drng", "draining" },
	{ BASES_ANY, NODEF_DRAIN | NODEF_COMPLETING, "drng", "draining" },
	{ BASES_ANY, NODEF_DRAIN, "drain", "drained" },
	{ BASES_BUSY, NODEF_FAIL, "failg", "failing" },
	{ BASES_ANY, NODEF_FAIL | NODEF_COMPLETING, "failg", "failing" },
	{ BASES_ANY, NODEF_FAIL, "fail", "fail" },
	{ BASE(ALLOCATED), NODEF_COMPLETING, "alloc+", "allocated+" },
	{ BASE(IDLE), NODEF_COMPLETING, "comp", "completing" },
	{ BASE(IDLE), NODEF_RESERVED, "resv", "reserved" },
	{ BASE(IDLE), NODEF_PLANNED, "plnd", "planned" },
};
static const struct { uint32_t flag; char suffix; } suffix_rule[] = {
	{ NODEF_MAINTENANCE, '$' }, { NODEF_REBOOT_ISSUED, '^' }, { NODEF_REBOOT_REQUESTED, '@' },
	{ NODEF_POWERING_UP, '#' }, { NODEF_POWERING_DOWN, '%' }, { NODEF_POWERED_DOWN, '~' },
	{ NODEF_POWER_DOWN, '!' }, { NODEF_NOT_RESPONDING, '*' }, { NODEF_PLANNED, '-' },
};

static void node_word(uint32_t state, uint32_t flags, bool full, char *buf, size_t size)
{
	const char *word = NULL;
	char suffix[2] = "";

	if (state >= COUNT(node_states))
		state = NODE_UNKNOWN;
	for (size_t i = 0; i < COUNT(word_rule) && !word; i++)
		if ((word_rule[i].bases & (1u << state)) && (flags & word_rule[i].flags) == word_rule[i].flags)
			word = full ? word_rule[i].full : word_rule[i].brief;
	if (!word)
		word = full ? node_states[state].full : node_states[state].brief;
	/* Words that already say it take no suffix for it. */
	if (str_eq(word, "maint"))
		flags &= ~(uint32_t)NODEF_MAINTENANCE;
	if (str_eq(word, "plnd") || str_eq(word, "planned"))
		flags &= ~(uint32_t)NODEF_PLANNED;
	for (size_t i = 0; i < COUNT(suffix_rule) && !suffix[0]; i++)
		if (flags & suffix_rule[i].flag)
			suffix[0] = suffix_rule[i].suffix;
	snprintf(buf, size, "%s%s", word, suffix);
}

void node_state_short(uint32_t state, uint32_t flags, char *buf, size_t size) { node_word(state, flags, false, buf, size); }
void node_state_long(uint32_t state, uint32_t flags, char *buf, size_t size) { node_word(state, flags, true, buf, size); }

void node_state_full(uint32_t state, uint32_t flags, char *buf, size_t size)
{
	size_t len;

	if (state >= COUNT(node_states))
		state = NODE_UNKNOWN;
	snprintf(buf, size, "%s", node_states[state].name);
	for (size_t i = 0; i < COUNT(node_flags); i++) {
		len = strlen(buf);
		if ((flags & node_flags[i].bit) && len + 1 < size)
			snprintf(buf + len, size - len, "+%s", node_flags[i].name);
	}
}
