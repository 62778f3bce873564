/* daemon.h - how every daemon leaves the terminal and says that it is alive
 *
 * Order in a main(): parse options, load configuration, daemon_detach, then create the loop, threads and sockets
 * (none of them survives a fork), then daemon_ready. Signals are the caller's business (uv_signal_t on its loop).
 * Invariant: while a daemon lives it holds a lock on its pid file, so a second one with the same file is refused. */
#pragma once
#include <stdbool.h>
#include "base/error.h"

/* Exclusive lock on an open file. One that is just being killed keeps its locks for some milliseconds: this waits that long (LOCK_WAIT_MS in daemon.c),
 * so that a restart at once succeeds. 0, or -EWOULDBLOCK: a living process holds it. */
int daemon_lock(int fd);
/* Fork; the child leads a session of its own and can still tell the terminal why it does not start. The parent waits until it says
 * daemon_ready and exits 0, or 1 when it ends before. */
int daemon_background(struct error *err);
/* It serves: the supervisor at $NOTIFY_SOCKET is told (sd_notify), the parent may go, the standard streams are /dev/null from now on. In the foreground there is
 * no parent and the streams stay. */
void daemon_ready(void);
/* Foreground: stay. Else daemon_background, and work in "/". `pid_path` (NULL or "": none) is locked and gets the pid. -EEXIST: a living daemon
 * holds it. */
int daemon_detach(bool foreground, const char *pid_path, struct error *err);
/* At the end of main: remove the pid file. Harmless when there is none. */
void daemon_end(void);
