/* signame.c - signals by name and number (see signame.h) */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/signame.h"
#include "base/str.h"

/* As sigabbrev_np() has them, which not every C library knows. */
#define NAMED(s) [SIG##s] = #s
static const char *const names[] = {
	NAMED(HUP), NAMED(INT), NAMED(QUIT), NAMED(ILL), NAMED(TRAP), NAMED(ABRT), NAMED(BUS), NAMED(FPE), NAMED(KILL), NAMED(USR1), NAMED(SEGV), NAMED(USR2), NAMED(PIPE),
	NAMED(ALRM), NAMED(TERM), NAMED(STKFLT), NAMED(CHLD), NAMED(CONT), NAMED(STOP), NAMED(TSTP), NAMED(TTIN), NAMED(TTOU), NAMED(URG), NAMED(XCPU), NAMED(XFSZ), NAMED(VTALRM),
	NAMED(PROF), NAMED(WINCH), NAMED(POLL), NAMED(PWR), NAMED(SYS),
};
enum { NAMES = sizeof names / sizeof *names };

int signame_parse(const char *text)
{
	unsigned long long number;
	if (str_to_u64(text, 1, 64, &number) == 0)
		return (int)number;
	if (!strncasecmp(text, "SIG", 3))
		text += 3;
	for (int i = 1; i < NAMES; i++)
		if (names[i] && !strcasecmp(names[i], text))
			return i;
	return -EINVAL;
}

void signame_format(int number, char *buf, size_t size)
{
	const char *name = number > 0 && number < NAMES ? names[number] : NULL;
	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "%d", number);
}
