/* effects.c - the list of what the shell must do, and the arena its messages live in
 * Lifetime: everything here lasts until effects_reset. Chunks are kept small so that a burst gives its memory back. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/state.h"

#define CHUNK 16384

struct chunk { struct chunk *next; size_t used, size; _Alignas(16) char data[]; };
struct arena { struct chunk *head; ProtobufCAllocator pb; };
struct effects { struct core_effect *item; size_t count, cap; struct arena arena; ProtobufCMessage **owned; size_t owned_n, owned_cap; };

void *arena_alloc(struct arena *a, size_t size)
{
	size = (size + 15) & ~(size_t)15;
	if (!a->head || a->head->size - a->head->used < size) {
		size_t want = size > CHUNK ? size : CHUNK;
		struct chunk *k = xmalloc(sizeof *k + want);
		*k = (struct chunk){ .next = a->head, .size = want };
		a->head = k;
	}
	void *p = a->head->data + a->head->used;
	a->head->used += size;
	return memset(p, 0, size);
}

char *arena_strdup(struct arena *a, const char *s)
{
	if (!s)
		return NULL;
	size_t n = strlen(s) + 1;
	return memcpy(arena_alloc(a, n), s, n);
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *p = arena_alloc(a, (size_t)n + 1);
	vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(again);
	return p;
}

static void *pb_alloc(void *data, size_t size) { return arena_alloc(data, size); }
static void pb_free(void *data, void *p) { (void)data; (void)p; }
const ProtobufCAllocator *arena_pb(struct arena *a)
{
	a->pb = (ProtobufCAllocator){ .alloc = pb_alloc, .free = pb_free, .allocator_data = a };
	return &a->pb;
}

ProtobufCMessage *arena_message(struct arena *a, const ProtobufCMessageDescriptor *d, const uint8_t *data, size_t len)
{
	return protobuf_c_message_unpack(d, (ProtobufCAllocator *)arena_pb(a), len, data);
}

static void arena_reset(struct arena *a, bool all)
{
	while (a->head && (all || a->head->next || a->head->size > CHUNK)) {
		struct chunk *next = a->head->next;
		free(a->head);
		a->head = next;
	}
	if (a->head)
		a->head->used = 0;
}

struct effects *effects_create(void) { return xcalloc(1, sizeof(struct effects)); }
struct arena *effects_arena(struct effects *fx) { return &fx->arena; }

void effects_own(struct effects *fx, ProtobufCMessage *m)
{
	fx->owned = xgrow(fx->owned, &fx->owned_cap, fx->owned_n + 1, sizeof(ProtobufCMessage *));
	fx->owned[fx->owned_n++] = m;
}

static void owned_free(struct effects *fx)
{
	while (fx->owned_n)
		protobuf_c_message_free_unpacked(fx->owned[--fx->owned_n], NULL);
}

void effects_reset(struct effects *fx)
{
	owned_free(fx);
	arena_reset(&fx->arena, false);
	if (fx->cap > 4096) {
		xfree(fx->item);
		fx->cap = 0;
	}
	fx->count = 0;
}

void effects_destroy(struct effects *fx)
{
	if (!fx)
		return;
	owned_free(fx);
	free(fx->owned);
	arena_reset(&fx->arena, true);
	free(fx->item);
	free(fx);
}

size_t effects_count(const struct effects *fx) { return fx->count; }

const struct core_effect *effects_at(const struct effects *fx, size_t i)
{
	assert(i < fx->count);
	return &fx->item[i];
}

struct core_effect *effects_push(struct effects *fx, enum core_effect_type type)
{
	fx->item = xgrow(fx->item, &fx->cap, fx->count + 1, sizeof *fx->item);
	struct core_effect *e = &fx->item[fx->count++];
	*e = (struct core_effect){ .type = type };
	return e;
}
