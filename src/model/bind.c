/* bind.c - what --cpu-bind and --mem-bind ask for (see bind.h) */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/bind.h"

#define ITEMS_MAX 65536

/* In the order of the names that stay; other spellings after them. */
static const struct word { const char *name; enum bind_kind kind; bool list, hex; } cpu_words[] = {
	{ "none", BIND_NONE, 0, 0 }, { "map_cpu", BIND_MAP, 1, 0 }, { "mask_cpu", BIND_MASK, 1, 1 }, { "rank_ldom", BIND_RANK_LDOM, 0, 0 },
	{ "map_ldom", BIND_MAP_LDOM, 1, 0 }, { "mask_ldom", BIND_MASK_LDOM, 1, 1 }, { "sockets", BIND_SOCKETS, 0, 0 }, { "cores", BIND_CORES, 0, 0 },
	{ "threads", BIND_THREADS, 0, 0 }, { "ldoms", BIND_LDOMS, 0, 0 }, { "no", BIND_NONE, 0, 0 }, { "mapcpu", BIND_MAP, 1, 0 },
	{ "maskcpu", BIND_MASK, 1, 1 }, { "socket", BIND_SOCKETS, 0, 0 }, { "core", BIND_CORES, 0, 0 }, { "thread", BIND_THREADS, 0, 0 },
	{ "ldom", BIND_LDOMS, 0, 0 }, { "rank", BIND_UNSET, 0, 0 }, { NULL, 0, 0, 0 } };
static const struct word mem_words[] = { { "none", BIND_NONE, 0, 0 }, { "rank", BIND_RANK, 0, 0 }, { "local", BIND_LOCAL, 0, 0 },
	{ "map_mem", BIND_MAP, 1, 0 }, { "mask_mem", BIND_MASK, 1, 1 }, { "no", BIND_NONE, 0, 0 }, { "mapmem", BIND_MAP, 1, 0 }, { "maskmem", BIND_MASK, 1, 1 },
	{ NULL, 0, 0, 0 } };

static bool is(const char *text, size_t len, const char *word) { return strlen(word) == len && !strncasecmp(text, word, len); }

/* Loudness and manner. false: another word. */
static bool flag_take(struct bind *b, const char *at, size_t len, bool memory)
{
	if (is(at, len, "verbose") || is(at, len, "v"))
		b->verbose = true;
	else if (is(at, len, "quiet") || is(at, len, "q"))
		b->verbose = false;
	else if (memory && (is(at, len, "prefer") || is(at, len, "p")))
		b->prefer = true;
	else if (!memory && is(at, len, "one_thread"))
		b->one_thread = true;
	else
		return false;
	return true;
}

/* "0xf0*4": four times "f0". */
static int item_add(struct bind *b, size_t *cap, const char *text, size_t len, bool hex)
{
	const char *star = memchr(text, '*', len);
	size_t digits = star ? (size_t)(star - text) : len;
	unsigned long times = star ? 0 : 1;
	for (const char *at = star ? star + 1 : text + len; at < text + len && times <= ITEMS_MAX; at++) {
		if (!isdigit((unsigned char)*at))
			return -EINVAL;
		times = times * 10 + (unsigned long)(*at - '0');
	}
	if (hex && digits > 2 && text[0] == '0' && tolower((unsigned char)text[1]) == 'x')
		text += 2, digits -= 2;
	for (size_t i = 0; i < digits; i++)
		if (hex ? !isxdigit((unsigned char)text[i]) : !isdigit((unsigned char)text[i]))
			return -EINVAL;
	if (!digits || !times || times > ITEMS_MAX - b->n)
		return -EINVAL;
	for (; times; times--) {
		b->item = xgrow(b->item, cap, b->n + 1, sizeof *b->item);
		b->item[b->n++] = xasprintf("%.*s", (int)digits, text);
	}
	return 0;
}

static int list_take(struct bind *b, const char *list, bool hex)
{
	size_t cap = 0;
	for (;;) {
		size_t len = strcspn(list, ",");
		int rc = item_add(b, &cap, list, len, hex);
		if (rc < 0)
			return rc;
		if (!list[len])
			return 0;
		list += len + 1;
	}
}

int bind_parse(const char *text, bool memory, struct bind *ret)
{
	memset(ret, 0, sizeof *ret);
	for (const char *at = text; at && *at;) {
		size_t len = strcspn(at, ",:=");
		const struct word *w = memory ? mem_words : cpu_words;
		if (!flag_take(ret, at, len, memory)) {
			while (w->name && !is(at, len, w->name))
				w++;
			if (!w->name || w->list != (at[len] == ':' || at[len] == '='))
				return -EINVAL;
			ret->kind = w->kind == BIND_UNSET ? ret->kind : w->kind;
			if (w->list)
				return list_take(ret, at + len + 1, w->hex);
		} else if (at[len] && at[len] != ',') {
			return -EINVAL;
		}
		at += len + (at[len] != 0);
	}
	return 0;
}

void bind_fini(struct bind *b)
{
	for (size_t i = 0; i < b->n; i++)
		free(b->item[i]);
	free(b->item);
	memset(b, 0, sizeof *b);
}

const char *bind_kind_name(enum bind_kind kind, bool memory)
{
	const struct word *w = memory ? mem_words : cpu_words;
	while (w->name && w->kind != kind)
		w++;
	return w->name && kind != BIND_UNSET ? w->name : "";
}

char *bind_list(const struct bind *b)
{
	struct str out = STR_INIT;
	if (!b->n)
		return NULL;
	for (size_t i = 0; i < b->n; i++)
		str_add_sep(&out, ",", b->item[i]);
	return str_take(&out);
}

const char *bind_item(const struct bind *b, uint32_t k) { return b->n ? b->item[k % b->n] : NULL; }
