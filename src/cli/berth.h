/* berth.h - the local cluster: one folder, one command
 *
 * DIR/etc      slurm.conf gres.conf slurmdbd.conf slurm.key hosts sizes
 * DIR/run      NAME.pid ("pid start-time"), sack.socket
 * DIR/state    slurmctld's store and key; DIR/db slurmdbd's; DIR/spool/NODE slurmd's; DIR/dev pretended devices; DIR/log
 *
 * A daemon is named by its program (slurmctld, slurmdbd, sackd) or, for a slurmd, by its node. A pid file is believed only while the
 * process has the start time noted in it, so that a pid used again by the system is never killed. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum berth_size { BERTH_NODES, BERTH_CPUS, BERTH_GPUS, BERTH_MEM, BERTH_SIZES };
extern const char *const berth_size_name[BERTH_SIZES]; /* as in options */

struct berth {
	char *dir;
	char *bin_dir, *sbin_dir;   /* of the running installation */
	uint32_t size[BERTH_SIZES]; /* of each node, but for their number */
	unsigned given;             /* bits: sizes that the command line names */
	const char *extra_conf;     /* file with more lines for slurm.conf */
	bool root;
};

/* berth_conf.c */
/* Make the folders, configuration, key and pretended devices; picks ports no other cluster uses. Existing clusters keep theirs. */
int berth_conf_write(struct berth *b, struct error *err);
/* Put the folder of the spools into memory, where that is permitted and it is empty. */
void berth_spool_mount(const struct berth *b);
/* Remove what is ours in the folder, and the folder unless something else is in it. */
int berth_conf_remove(const struct berth *b, struct error *err);
/* For a cluster that exists: reads it, and refuses options that ask for another than it is. */
int berth_conf_same(struct berth *b, struct error *err);
/* Reads back from DIR/etc which nodes there are; -ENOENT when DIR holds no cluster. */
int berth_conf_read(struct berth *b, struct error *err);
char *berth_path(const struct berth *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "node-3" for 2. */
void berth_node_name(uint32_t index, char *buf, size_t size);

/* berth_proc.c */
struct berth_proc { char name[64]; bool node; uint32_t index; pid_t pid; /* 0: not running */ };
/* All daemons of the cluster in the order they are started. Caller frees. */
struct berth_proc *berth_procs(const struct berth *b, size_t *ret_n);
/* Start one (in the background, output to its log). `notify`: where it is to say that it serves ($NOTIFY_SOCKET), or NULL. 0 or error; *ret_pid: its
 * process, *ret_note: what this machine does not permit, or NULL. */
int berth_proc_start(const struct berth *b, const struct berth_proc *p, const char *notify, pid_t *ret_pid, const char **ret_note, struct error *err);
/* Does the process that berth_proc_start has made still run? */
bool berth_proc_alive(pid_t pid);
/* SIGTERM, then after `grace_ms` SIGKILL; for a node everything in its namespaces too when `all`. Waits until gone. */
void berth_proc_stop(const struct berth *b, struct berth_proc *p, int signal, bool all, int grace_ms);
/* Every process that belongs to a node: slurmd, its slurmstepds and their tasks. Returns how many were signalled. */
size_t berth_node_signal(const struct berth *b, const struct berth_proc *p, int signal);
/* Become a process in which node names resolve (own mount namespace, hosts file); hostname NULL: keep. 0, or -errno where not permitted. */
int berth_enter_names(const struct berth *b, const char *hostname);
/* What this machine would have to permit, for a code of berth_enter_names. */
const char *berth_names_missing(int rc);
