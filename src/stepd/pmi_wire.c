/* pmi_wire.c - requests and answers of PMI (see pmi_wire.h) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stepd/pmi_wire.h"

static bool word_add(struct pmi_req *r, char *key, char *value)
{
	if (r->n == PMI_WORDS)
		return false;
	r->word[r->n].key = key;
	r->word[r->n++].value = value;
	return true;
}

/* "a=b c=d": the value of the last word may hold blanks (a port's name may). */
static bool line_split(char *at, struct pmi_req *r)
{
	while (*at) {
		at += strspn(at, " ");
		char *eq = strchr(at, '='), *end;
		if (!eq)
			break;
		*eq++ = 0;
		bool rest = !strcmp(at, "value") || !strcmp(at, "port");
		end = rest ? eq + strlen(eq) : eq + strcspn(eq, " ");
		char *next = *end ? end + 1 : end;
		*end = 0;
		if (!word_add(r, at, eq))
			return false;
		at = next;
	}
	return r->n > 0;
}

/* PMI-1 gives a spawn as one word a line, between "mcmd=spawn" and "endcmd". */
static long many_lines(char *data, size_t n, struct pmi_req *r)
{
	char *end = memmem(data, n, "\nendcmd\n", 8), *save = NULL;
	if (!end)
		return n > PMI_REQUEST_MAX ? -1 : 0;
	*end = 0;
	for (char *line = strtok_r(data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *eq = strchr(line, '=');
		if (!eq)
			return -1;
		*eq = 0;
		if (!word_add(r, line, eq + 1))
			return -1;
	}
	return end + 8 - data;
}

static long line_take(char *data, size_t n, struct pmi_req *r)
{
	if (n >= 5 && !memcmp(data, "mcmd=", 5))
		return many_lines(data, n, r);
	char *end = memchr(data, '\n', n);
	if (!end)
		return n > PMI_REQUEST_MAX ? -1 : 0;
	*end = 0;
	return memchr(data, 0, (size_t)(end - data)) || !line_split(data, r) ? -1 : end + 1 - data;
}

/* "key=value;" with ";;" for a semicolon in a value. */
static bool fields_split(char *at, char *end, struct pmi_req *r)
{
	while (at < end) {
		char *eq = memchr(at, '=', (size_t)(end - at)), *to, *key = at;
		if (!eq)
			return false;
		*eq = 0;
		char *value = to = at = eq + 1;
		for (; at < end; *to++ = *at++) {
			if (*at != ';')
				continue;
			if (at + 1 < end && at[1] == ';')
				at++;
			else
				break;
		}
		at += at < end;
		*to = 0;
		if (!word_add(r, key, value))
			return false;
	}
	return r->n > 0;
}

static long record_take(char *data, size_t n, struct pmi_req *r)
{
	char head[7] = { 0 }, *rest;
	if (n < 6)
		return 0;
	memcpy(head, data, 6);
	unsigned long len = strtoul(head, &rest, 10);
	rest += strspn(rest, " ");
	if (*rest || !len || len > PMI_REQUEST_MAX || strchr(head, '-'))
		return -1;
	if (n - 6 < len)
		return 0;
	/* The byte behind the record belongs to the next: a value at the very end has no room for its NUL unless a semicolon ends it. */
	if (memchr(data + 6, 0, len) || data[6 + len - 1] != ';' || !fields_split(data + 6, data + 6 + len, r))
		return -1;
	return 6 + (long)len;
}

long pmi_take(char *data, size_t n, int *version, struct pmi_req *ret)
{
	ret->n = 0;
	ret->version = *version == 2 ? 2 : 1;
	if (*version == 2)
		return record_take(data, n, ret);
	long used = line_take(data, n, ret);
	if (used > 0 && !*version) {
		const char *want = pmi_word(ret, "pmi_version");
		if (strcmp(ret->word[0].key, "cmd") || strcmp(ret->word[0].value, "init") || !want)
			return -1;
		*version = !strcmp(want, "2") ? 2 : 1;
	}
	return used;
}

const char *pmi_word(const struct pmi_req *r, const char *key)
{
	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->word[i].key, key))
			return r->word[i].value;
	return NULL;
}

void pmi_answer(struct str *out, const struct pmi_req *r, const char *cmd)
{
	if (r->version == 1) {
		str_addf(out, "cmd=%s", cmd);
		return;
	}
	const char *thread = pmi_word(r, "thrid");
	str_add_n(out, "      ", 6);
	str_addf(out, "cmd=%s-response;", cmd);
	if (thread)
		pmi_add(out, r, "thrid", thread);
}

void pmi_add(struct str *out, const struct pmi_req *r, const char *key, const char *value)
{
	if (r->version == 1) {
		str_addf(out, " %s=%s", key, value);
		return;
	}
	str_addf(out, "%s=", key);
	for (; *value; value++)
		str_add_n(out, *value == ';' ? ";;" : value, *value == ';' ? 2 : 1);
	str_add_n(out, ";", 1);
}

void pmi_end(struct str *out, const struct pmi_req *r)
{
	char head[16];
	if (r->version == 1) {
		str_add_n(out, "\n", 1);
		return;
	}
	snprintf(head, sizeof head, "%-6zu", out->len - 6);
	memcpy(out->data, head, 6);
}
