/* scontrol.h - parts of scontrol: what each keyword does
 * scontrol.c reads options, keeps the command table and the prompt; scontrol_job.c and scontrol_node.c print records as the
 * reference lays them out; scontrol_show.c finds what "show" is asked for; scontrol_update.c and scontrol_op.c change things. */
#pragma once
#include "cli/showcmd.h"

struct scontrol {
	bool all, details, one_line, quiet, future;
	const char *task;                /* "show job A_T": the task that is asked for, where it is one of many in a record */
	const char *json, *yaml;         /* parser asked for; "" default; NULL: text */
	unsigned verbose;
	int64_t uid;                     /* -u; -1: not given */
	int exit_code;
	const char *const *argv;         /* of the process, for the meta block of --json */
	int argc;
	struct client *client_;          /* opened when first needed */
};
struct client *scontrol_client(struct scontrol *s);
/* Remember a failure: message to stderr (unless --quiet), exit status 1. */
void scontrol_fail(struct scontrol *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* scontrol_values.c: may the value be right? If not, it is said why. */
bool scontrol_job_value(struct scontrol *s, const char *key, const char *value);
bool scontrol_part_value(struct scontrol *s, const char *key, const char *value);

/* The same on stdout, where the reference says that a thing shown does not exist. */
void scontrol_missing(struct scontrol *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Records as text. */
void put_job_record(struct str *out, struct jobview *v, const struct scontrol *s);
void put_step_record(struct str *out, const struct msgview *m, const struct scontrol *s);
void put_node_record(struct str *out, const struct msgview *m, const struct scontrol *s);
void put_part_record(struct str *out, const struct msgview *m, const struct scontrol *s);

/* Reservations (scontrol_resv.c). `typed`: as the user named it. */
void scontrol_resv_create(struct scontrol *s, int argc, char **argv);
void scontrol_resv_update(struct scontrol *s, int argc, char **argv);
void scontrol_resv_delete(struct scontrol *s, const char *typed, char *name);
void scontrol_resv_show(struct scontrol *s, const char *id);
/* "show licenses [NAME]" (scontrol_license.c) */
void scontrol_licenses(struct scontrol *s, const char *id);
/* What stands behind "show topology"; "show topoconf" (scontrol_topology.c) */
void scontrol_topology(struct scontrol *s, int argc, char **argv);
void scontrol_topoconf(struct scontrol *s, const char *id);

/* Keywords: argv[0] is the keyword itself. */
typedef void (*scontrol_fn)(struct scontrol *s, int argc, char **argv);
void scontrol_show(struct scontrol *s, int argc, char **argv);
void scontrol_completing(struct scontrol *s, int argc, char **argv);
void scontrol_update(struct scontrol *s, int argc, char **argv);
void scontrol_create(struct scontrol *s, int argc, char **argv);
void scontrol_delete(struct scontrol *s, int argc, char **argv);
void scontrol_job_op(struct scontrol *s, int argc, char **argv);
void scontrol_notify(struct scontrol *s, int argc, char **argv);
void scontrol_reboot(struct scontrol *s, int argc, char **argv);
void scontrol_cancel_reboot(struct scontrol *s, int argc, char **argv);
void scontrol_ping(struct scontrol *s, int argc, char **argv);
void scontrol_reconfigure(struct scontrol *s, int argc, char **argv);
void scontrol_shutdown(struct scontrol *s, int argc, char **argv);
/* of the host scontrol runs on (scontrol_local.c) */
void scontrol_getent(struct scontrol *s, int argc, char **argv);
void scontrol_listjobs(struct scontrol *s, int argc, char **argv);
void scontrol_listpids(struct scontrol *s, int argc, char **argv);
void scontrol_liststeps(struct scontrol *s, int argc, char **argv);
void scontrol_pidinfo(struct scontrol *s, int argc, char **argv);
void scontrol_show_slurmd(struct scontrol *s, const char *id);
/* scontrol_debug.c */
void scontrol_cluster(struct scontrol *s, int argc, char **argv);
void scontrol_power(struct scontrol *s, int argc, char **argv);
void scontrol_schedloglevel(struct scontrol *s, int argc, char **argv);
void scontrol_setdebug(struct scontrol *s, int argc, char **argv);
void scontrol_setdebugflags(struct scontrol *s, int argc, char **argv);
void scontrol_why(struct scontrol *s, int argc, char **argv);
void scontrol_write(struct scontrol *s, int argc, char **argv);
void scontrol_errnumstr(struct scontrol *s, int argc, char **argv);
void scontrol_getaddrs(struct scontrol *s, int argc, char **argv);
void scontrol_wait_job(struct scontrol *s, int argc, char **argv);
