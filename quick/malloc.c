/* malloc.c - memory of a program that lives for a millisecond: it is taken from the front and given back by the end of the program
 * Blocks stand one behind the other in an arena of the program itself, then in mapped ones; free() gives back the last block alone. A quick program that is to
 * live longer becomes its full one instead (sbatch --wait). */
#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGN 16ul
#define FIRST (128ul << 10)
#define MORE (1ul << 20)

/* Before each block: its size. */
struct head { size_t size; size_t unused; };
_Static_assert(sizeof(struct head) == ALIGN, "blocks stay aligned");

static alignas(ALIGN) uint8_t first[FIRST];
static uint8_t *at = first, *end = first + FIRST;

static struct head *head_of(void *p) { return (struct head *)p - 1; }

static int arena_add(size_t need)
{
	size_t size = need + MORE;
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -1;
	at = p;
	end = p + size;
	return 0;
}

/* Not malloc() itself, of which the compiler believes that nothing stands before its blocks. */
static __attribute__((noinline)) void *take(size_t size)
{
	if (size > PTRDIFF_MAX - MORE - 2 * ALIGN) {
		errno = ENOMEM;
		return NULL;
	}
	size_t whole = (size + ALIGN - 1) / ALIGN * ALIGN;
	if ((size_t)(end - at) < whole + sizeof(struct head) && arena_add(whole + sizeof(struct head)) < 0) {
		errno = ENOMEM;
		return NULL;
	}
	struct head *h = (struct head *)at;
	h->size = whole;
	at += sizeof *h + whole;
	return h + 1;
}

void *malloc(size_t size) { return take(size); }

void free(void *p)
{
	if (p && (uint8_t *)p + head_of(p)->size == at)
		at = (uint8_t *)head_of(p);
}

void *calloc(size_t n, size_t size)
{
	size_t all;
	if (__builtin_mul_overflow(n, size, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	void *p = take(all);
	return p ? memset(p, 0, all) : NULL;   /* it may have been the last block once */
}

void *realloc(void *p, size_t size)
{
	if (p && size <= head_of(p)->size)
		return p;
	if (p && (uint8_t *)p + head_of(p)->size == at && size < (size_t)(end - (uint8_t *)p) - ALIGN) { /* it grows where it is */
		head_of(p)->size = (size + ALIGN - 1) / ALIGN * ALIGN;
		at = (uint8_t *)p + head_of(p)->size;
		return p;
	}
	void *q = take(size);
	if (q && p)
		memcpy(q, p, head_of(p)->size);
	return q;
}

/* The block keeps its size in front of it, so what is skipped stays unused. */
void *aligned_alloc(size_t align, size_t size)
{
	uint8_t *p = take(size + align);
	if (!p || align <= ALIGN)
		return p;
	uint8_t *q = (uint8_t *)(((uintptr_t)p + align - 1) / align * align);
	if (q != p)
		head_of(q)->size = head_of(p)->size - (size_t)(q - p);
	return q;
}
