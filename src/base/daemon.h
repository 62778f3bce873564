/* daemon.h - how every daemon leaves the terminal and says that it is alive
 *
 * Order in a main(): parse options, load configuration, daemon_detach, then create the loop, threads and sockets
 * (none of them survives a fork). Signals are the caller's business (uv_signal_t on its loop).
 * Invariant: while a daemon lives it holds a lock on its pid file, so a second one with the same file is refused. */
#pragma once
#include <stdbool.h>
#include "base/error.h"

/* Exclusive lock on an open file. One that is just being killed keeps its locks for some milliseconds: this waits that long (LOCK_WAIT_MS in daemon.c),
 * so that a restart at once succeeds. 0, or -EWOULDBLOCK: a living process holds it. */
int daemon_lock(int fd);
/* Foreground: stay. Else fork; the parent exits 0, the child leads a session of its own, works in "/" and has
 * /dev/null as its standard streams. `pid_path` (NULL or "": none) is locked and gets the pid. -EEXIST: a living daemon
 * holds it. Errors are found before the fork, so that the caller can still tell the terminal. */
int daemon_detach(bool foreground, const char *pid_path, struct error *err);
/* At the end of main: remove the pid file. Harmless when there is none. */
void daemon_end(void);
