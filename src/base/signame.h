/* signame.h - signals by name and number: "USR1", "SIGUSR1", "usr1", "10" */
#pragma once
#include <stddef.h>

/* Number of a signal (1..64), or -EINVAL. */
int signame_parse(const char *text);
/* "USR1"; the number itself where it has no name. */
void signame_format(int number, char *buf, size_t size);
