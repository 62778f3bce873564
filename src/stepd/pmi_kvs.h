/* pmi_kvs.h - pairs of texts, as PMI keeps them
 * Text of a store: "key\0value\0" for each pair. Lifetime: until kvs_free. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
struct kvs_pair;
struct kvs { struct kvs_pair *pairs; size_t bytes; };
/* A later value replaces an earlier one. false: the store would be larger than KVS_MAX. */
bool kvs_put(struct kvs *k, const char *key, const char *value);
const char *kvs_get(const struct kvs *k, const char *key);   /* NULL: none; valid until that key is put again */
/* The index-th pair in the order they came; false: there is none. */
bool kvs_at(const struct kvs *k, size_t index, const char **ret_key, const char **ret_value);
void kvs_remove(struct kvs *k, const char *key);
uint8_t *kvs_text(const struct kvs *k, size_t *ret_n);       /* malloc'd */
/* Put all pairs of a text; false: malformed or too large. */
bool kvs_load(struct kvs *k, const uint8_t *text, size_t n);
void kvs_clear(struct kvs *k);
#define KVS_MAX (256u << 20)
