/* log.h - log lines in the reference's format and levels
 *
 * A daemon logs "[2026-11-30T03:47:36.123] error: text" to its file (or, in the foreground, "slurmctld: error: text"
 * to stderr); a command writes "squeue: error: text" to stderr. Levels and prefixes are the reference's:
 * quiet fatal error info verbose debug debug2 .. debug5. Process-wide, set once at start; safe from threads. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_L_QUIET, LOG_L_FATAL, LOG_L_ERROR, LOG_L_INFO, LOG_L_VERBOSE, LOG_L_DEBUG, LOG_L_DEBUG2, LOG_L_DEBUG3, LOG_L_DEBUG4, LOG_L_DEBUG5 };

/* Program name for prefixes; level for stderr. Before this call everything from info up goes to stderr. */
void log_init(const char *prog, enum log_level stderr_level);
/* Also (daemons) write to a file, opened with O_APPEND, 0640. "" or NULL: none. 0 or -errno. Called again on SIGHUP. */
int log_open(const char *path, enum log_level file_level);
/* Put before each text in the file and after the program's name on stderr ("[5.batch] "). Kept, not copied. NULL: nothing. */
void log_set_prefix(const char *prefix);
void log_set_levels(enum log_level stderr_level, enum log_level file_level);
bool log_would(enum log_level level);
/* The level of the file; of stderr where there is none. */
enum log_level log_level_now(void);
/* LogTimeFormat: "rfc5424_ms", "short,format_stderr" ... (slurm.conf(5)); words it does not know change nothing, NULL is iso8601_ms. */
void log_set_time_format(const char *words);
/* DebugFlags: subsystems whose lines (log_flag) are wanted; words without a row in tables/log_flags.def change nothing, NULL is none. */
#define LOG_FLAG(symbol, word) LOG_F_##symbol,
enum log_flag {
#include "tables/log_flags.def"
	LOG_F_COUNT
};
#undef LOG_FLAG
void log_set_flags(const char *words);
bool log_flagged(enum log_flag flag);
/* "info", "debug2", "3" ... ; -EINVAL. */
int log_level_parse(const char *text, enum log_level *ret);
const char *log_level_name(enum log_level level);
void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Where lines go besides: used by slurmstepd to carry them to srun. NULL: nowhere. */
void log_set_sink(void (*sink)(enum log_level, const char *line, void *arg), void *arg);

#define log_fatal(...) log_at(LOG_L_FATAL, __VA_ARGS__)   /* does not exit */
#define log_error(...) log_at(LOG_L_ERROR, __VA_ARGS__)
#define log_info(...) log_at(LOG_L_INFO, __VA_ARGS__)
#define log_verbose(...) log_at(LOG_L_VERBOSE, __VA_ARGS__)
#define log_debug(...) do { if (log_would(LOG_L_DEBUG)) log_at(LOG_L_DEBUG, __VA_ARGS__); } while (0)
#define log_debug2(...) do { if (log_would(LOG_L_DEBUG2)) log_at(LOG_L_DEBUG2, __VA_ARGS__); } while (0)
#define log_debug3(...) do { if (log_would(LOG_L_DEBUG3)) log_at(LOG_L_DEBUG3, __VA_ARGS__); } while (0)
/* A line of a subsystem that DebugFlags names, at level info; its first word is the flag's. */
void log_flag_at(enum log_flag flag, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define log_flag(symbol, ...) do { if (log_flagged(LOG_F_##symbol)) log_flag_at(LOG_F_##symbol, __VA_ARGS__); } while (0)
