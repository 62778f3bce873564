/* fd.h - reading from descriptors that block */
#pragma once
#include <stddef.h>

/* All n bytes. 0, or a negative errno; -ECONNRESET where it ends before them. Signals do not end it; SO_RCVTIMEO does (-EAGAIN). */
int fd_read_all(int fd, void *to, size_t n);
