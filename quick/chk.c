/* chk.c - what a library built against the other C library with checks asks for and this one lacks */
#include <string.h>

void __explicit_bzero_chk(void *p, size_t n, size_t size);
void __explicit_bzero_chk(void *p, size_t n, size_t size)
{
	if (n > size)
		__builtin_trap();
	explicit_bzero(p, n);
}
