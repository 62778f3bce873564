/* full.h - the full program behind a quick one
 * Some commands are built twice (quick/README.md): the quick program against a C library that starts in a fifth of the time and has no plug-ins, neither dlopen() nor NSS, and the
 * full one. Where the quick program needs one of them it becomes the full program, which begins anew with the same arguments, environment and standard input. In a full program all
 * of this does nothing. */
#pragma once
#include <stddef.h>

#ifdef BERTH_QUICK
/* First thing in main(): remembers what the program was started with. `argv` is borrowed for ever. */
void full_start(char **argv);
/* `data` has been read from standard input and has to be there again for the full program. Borrowed until full_sent(). */
void full_keep_stdin(const char *data, size_t len);
/* Something is about to leave the process: from here on it cannot begin anew. */
void full_sent(void);
/* Becomes the full program; returns only after full_sent(). */
void full_needed(void);
#else
static inline void full_start(char **argv) { (void)argv; }
static inline void full_keep_stdin(const char *data, size_t len) { (void)data; (void)len; }
static inline void full_sent(void) { }
static inline void full_needed(void) { }
#endif
