/* store.c - hands each call of store.h to the implementation that was opened */
#include <assert.h>
#include "store/store_impl.h"

int store_commit(struct store *s, const struct store_put *put, size_t n, struct error *err)
{
	assert(s && (put || !n));
	return n ? s->ops->commit(s, put, n, err) : 0;
}

int store_scan(struct store *s, enum store_table t, int (*fn)(uint64_t, const void *, size_t, void *), void *arg, struct error *err)
{
	assert(s && t < STORE_TABLES);
	return s->ops->scan(s, t, fn, arg, err);
}

int store_get(struct store *s, enum store_table t, uint64_t key, void **ret, size_t *ret_len, struct error *err)
{
	assert(s && t < STORE_TABLES);
	return s->ops->get(s, t, key, ret, ret_len, err);
}

int store_clear(struct store *s, enum store_table t, struct error *err)
{
	assert(s && t < STORE_TABLES);
	return s->ops->clear(s, t, err);
}

void store_close(struct store *s)
{
	if (s)
		s->ops->close(s);
}
