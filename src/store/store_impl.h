/* store_impl.h - what an implementation of store.h provides; private to this folder */
#pragma once
#include "store/store.h"

struct store_ops {
	int (*commit)(struct store *s, const struct store_put *put, size_t n, struct error *err);
	int (*scan)(struct store *s, enum store_table t, int (*fn)(uint64_t, const void *, size_t, void *), void *arg, struct error *err);
	int (*get)(struct store *s, enum store_table t, uint64_t key, void **ret, size_t *ret_len, struct error *err);
	int (*clear)(struct store *s, enum store_table t, struct error *err);
	void (*close)(struct store *s);
};
/* First member of each implementation's struct. */
struct store { const struct store_ops *ops; };
