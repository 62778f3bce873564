/* expect_why.c - see expect_why.h */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "sim/expect_why.h"

static const char *value_of(char **word, size_t words, const char *key)
{
	size_t n = strlen(key);
	for (size_t i = 0; i < words; i++)
		if (!strncmp(word[i], key, n) && word[i][n] == '=')
			return word[i] + n + 1;
	return NULL;
}

/* Facts that the line names: all must be there and equal. */
static char *facts_wrong(const Pb__WhyItem *it, char **word, size_t words)
{
	size_t named = 0, seen = 0;
	for (size_t i = 0; i < words; i++)
		named += strchr(word[i], '=') && strncmp(word[i], "says=", 5) && strncmp(word[i], "clears=", 7);
	for (size_t i = 0; i < it->n_fact; i++) {
		const Pb__WhyFact *f = it->fact[i];
		const char *want = value_of(word, words, f->key);
		char *got = f->has_number ? xasprintf("%lld", (long long)f->number) : xstrdup(f->text);
		char *wrong = want && strcmp(want, got) ? xasprintf("%s of \"%s\" is %s, expected %s", f->key, it->code, got, want) : NULL;
		free(got);
		if (wrong)
			return wrong;
		seen += want != NULL;
	}
	return seen < named ? xasprintf("\"%s\" has not all the facts that are named", it->code) : NULL;
}

static char *clears_wrong(const Pb__WhyItem *it, const char *want, uint64_t start_ms)
{
	char *unit;
	unsigned long long n = strtoull(want, &unit, 10), sec = start_ms / 1000 + n * (*unit == 'h' ? 3600 : *unit == 'm' ? 60 : 1);
	if (it->has_clears_at && it->clears_at == sec)
		return NULL;
	return xasprintf("\"%s\" clears %lld s after the start, expected %s", it->code, it->has_clears_at ? (long long)it->clears_at - (long long)start_ms / 1000 : -1ll, want);
}

static char *compare(const Pb__WhyJob *r, bool hint, bool only, char **word, size_t words, uint64_t start_ms)
{
	const char *code = words ? word[0] : "", *says = value_of(word, words, "says");
	const Pb__WhyItem *found = NULL;
	struct str all = STR_INIT;
	size_t n = hint ? r->n_hint : r->n_condition;
	for (size_t i = 0; i < n; i++) {
		const Pb__WhyItem *it = hint ? r->hint[i] : r->condition[i];
		str_addf(&all, "\n   %s: %s", it->code, it->text);
		if (!found && !strcmp(it->code, code) && (!says || strstr(it->text, says)))
			found = it;
	}
	char *wrong = NULL;
	if (!strcmp(code, "none") ? n > 0 : !found || (only && n != 1))
		wrong = xasprintf("\"%s\" was expected, there is%s", code, all.len ? all.data : " nothing");
	else if (found && !(wrong = facts_wrong(found, word, words)) && value_of(word, words, "clears"))
		wrong = clears_wrong(found, value_of(word, words, "clears"), start_ms);
	str_fini(&all);
	return wrong;
}

char *why_mismatch(const struct core *c, const struct core_job *j, char **word, size_t words, uint64_t start_ms)
{
	static const struct core_why_ask root = { .uid = 0, .oper = true };
	bool hint = words && !strcmp(word[0], "hint"), only = words && !strcmp(word[0], "only");
	Pb__WhyJob *r = core_why(c, j, &root);
	char *wrong = compare(r, hint, only, word + (hint || only), words - (hint || only), start_ms);
	pb__why_job__free_unpacked(r, NULL);
	return wrong;
}
