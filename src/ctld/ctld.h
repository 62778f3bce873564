/* ctld.h - what the files of slurmctld share: the one object of the process
 *
 * Everything here lives on the loop's thread. Other threads (store writer, identity look-ups, at start the reader of
 * the saved state) share nothing with it but the queues of commit.c, ident.c and restore.c. Where to start reading: turn.h (one turn), rpc.c (what can be asked), agent.c (what is told to the nodes). */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "conf/conf.h"
#include "core/core.h"
#include "store/store.h"
#include "wire/wire.h"

struct turns;
struct commit;
struct agent;
struct acct;
struct accounts;
struct idents;
struct cred;
struct waiters;
struct reads;
struct crontabs;

struct ctld {
	uv_loop_t *loop;
	char *conf_file;             /* absolute */
	char *log_file;              /* -L; NULL: SlurmctldLogFile */
	struct conf *conf;
	struct wire_auth *auth;
	struct wire_server *server;
	struct sack *sack;
	struct core *core;
	struct store *store;
	struct turns *turns;
	struct commit *commit;
	struct agent *agent;
	struct acct *acct;
	struct accounts *accounts;
	struct idents *idents;
	struct cred *cred;
	struct waiters *waiters;
	struct reads *reads;
	struct crontabs *crontabs;
	uint32_t slurm_uid;
	char hostname[256];
	uint64_t boot_ms;
	int64_t gettimeofday_us;      /* 1000 calls took so long at the start */
	bool stopping;
	bool clear_state, ignore_errors, foreground;
	int verbose;
	bool has_level;              /* scontrol setdebug: level, until the configuration is read again */
	uint32_t level;
	char *debug_flags;           /* scontrol setdebugflags: instead of DebugFlags; NULL: as configured */
	uint64_t submits, calls, refused;
	struct call_stats *call_stats; /* rpc.c */
	struct pass_times { uint64_t n, last_us, max_us, sum_us, last_ms; } pass, plan_pass; /* turns with a quick pass; with one of the planner */
};

/* Milliseconds since the epoch, never backwards. */
uint64_t ctld_now_ms(void);
/* Ends the daemon: what was acknowledged is on disk, the rest is finished first. */
void ctld_stop(struct ctld *d);
/* Reads the configuration again and puts it in force; on error the old one stays. */
int ctld_reconfigure(struct ctld *d, struct error *err);
/* rpc.c */
void rpc_handle(struct wire_req *req, void *arg);
/* Calls so far by kind and by user: the i-th of them; false when there is no such. */
struct call_stat { uint32_t id; const char *name; uint64_t count, total_us; };
bool rpc_stat(const struct ctld *d, bool by_user, size_t i, struct call_stat *ret);
bool rpc_policy(const struct wire_identity *id, enum rpc_who who, void *arg);
bool ctld_is_admin(const struct ctld *d, uint32_t uid);
