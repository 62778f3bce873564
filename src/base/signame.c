/* signame.c - signals by name and number (see signame.h) */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/signame.h"
#include "base/str.h"

int signame_parse(const char *text)
{
	unsigned long long number;
	if (str_to_u64(text, 1, 64, &number) == 0)
		return (int)number;
	if (!strncasecmp(text, "SIG", 3))
		text += 3;
	for (int i = 1; i <= 31; i++) {
		const char *name = sigabbrev_np(i);
		if (name && !strcasecmp(name, text))
			return i;
	}
	return -EINVAL;
}

void signame_format(int number, char *buf, size_t size)
{
	const char *name = sigabbrev_np(number);
	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "%d", number);
}
