/* pmi_kvs.c - pairs of texts (see pmi_kvs.h): a hash table that keeps the order of arrival */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/alloc.h"
#include "stepd/pmi_kvs.h"

struct kvs_pair { UT_hash_handle hh; char *value; char key[]; };

static struct kvs_pair *find(const struct kvs *k, const char *key)
{
	struct kvs_pair *p;
	HASH_FIND_STR(k->pairs, key, p);
	return p;
}

bool kvs_put(struct kvs *k, const char *key, const char *value)
{
	struct kvs_pair *p = find(k, key);
	size_t key_len = strlen(key), value_len = strlen(value);
	if (k->bytes + key_len + value_len > KVS_MAX)
		return false;
	if (!p) {
		p = xcalloc(1, sizeof *p + key_len + 1);
		memcpy(p->key, key, key_len + 1);
		HASH_ADD_STR(k->pairs, key, p);
		k->bytes += key_len;
	}
	k->bytes += value_len;
	k->bytes -= p->value ? strlen(p->value) : 0;
	free(p->value);
	p->value = xstrdup(value);
	return true;
}

const char *kvs_get(const struct kvs *k, const char *key)
{
	const struct kvs_pair *p = find(k, key);
	return p ? p->value : NULL;
}

bool kvs_at(const struct kvs *k, size_t index, const char **ret_key, const char **ret_value)
{
	const struct kvs_pair *p = k->pairs;
	while (p && index--)
		p = p->hh.next;
	if (!p)
		return false;
	*ret_key = p->key;
	*ret_value = p->value;
	return true;
}

static void pair_free(struct kvs *k, struct kvs_pair *p)
{
	HASH_DEL(k->pairs, p);
	free(p->value);
	free(p);
}

void kvs_remove(struct kvs *k, const char *key)
{
	struct kvs_pair *p = find(k, key);
	if (!p)
		return;
	k->bytes -= strlen(p->key) + strlen(p->value);
	pair_free(k, p);
}

uint8_t *kvs_text(const struct kvs *k, size_t *ret_n)
{
	size_t n = 0;
	for (const struct kvs_pair *p = k->pairs; p; p = p->hh.next)
		n += strlen(p->key) + strlen(p->value) + 2;
	uint8_t *text = xmalloc(n + 1), *at = text;
	for (const struct kvs_pair *p = k->pairs; p; p = p->hh.next) {
		size_t key_len = strlen(p->key) + 1, value_len = strlen(p->value) + 1;
		memcpy(at, p->key, key_len);
		memcpy(at + key_len, p->value, value_len);
		at += key_len + value_len;
	}
	*ret_n = n;
	return text;
}

bool kvs_load(struct kvs *k, const uint8_t *text, size_t n)
{
	const char *at = (const char *)text, *end = at + n;
	while (at < end) {
		const char *value = memchr(at, 0, (size_t)(end - at));
		const char *stop = value && value + 1 < end ? memchr(value + 1, 0, (size_t)(end - value - 1)) : NULL;
		if (!stop || !kvs_put(k, at, value + 1))
			return false;
		at = stop + 1;
	}
	return true;
}

void kvs_clear(struct kvs *k)
{
	while (k->pairs)
		pair_free(k, k->pairs);
	k->bytes = 0;
}
