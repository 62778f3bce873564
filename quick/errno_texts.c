/* errno_texts.c - writes the texts of this machine's C library for all errors as errno_texts.h */
#include <stdio.h>
#include <string.h>

int main(void)
{
	printf("/* written by errno_texts.c */\nstatic const char *const errno_texts[] = {\n");
	for (int i = 0; i < 134; i++)
		if (strncmp(strerror(i), "Unknown", 7) != 0)
			printf("\t[%d] = \"%s\",\n", i, strerror(i));
	printf("};\n");
	return 0;
}
