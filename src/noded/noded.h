/* noded.h - slurmd: what its files share
 *
 * One loop, one thread. slurmd keeps nothing of its own on disk but the completions slurmstepds leave in the spool: after a restart it connects to the
 * slurmstepds that are alive (steps.c), reports completions not acknowledged yet (events.c) and registers (registration.c).
 * Lifetime of everything here: the process, unless said otherwise. */
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/error.h"
#include "conf/conf.h"
#include "model/stepid.h"
#include "noded/gpus.h"
#include "proto/agent.pb-c.h"
#include "proto/controller.pb-c.h"
#include "wire/relay.h"

struct cred_book;
struct event_queue;
struct node_job;
struct node_step;

struct noded_options {
	const char *conf_path, *node_name, *conf_server, *log_file, *stepd_path;
	bool print_gres;                  /* and end */
	bool foreground, clean, rebooted, change_dir, lock_memory;
	int verbose, nice;
	unsigned emulate;                 /* so many nodes; 0: be one */
	bool has_nice;
};

/* What the machine has, found at start. */
struct hardware {
	uint32_t cpus, boards, sockets, cores, threads;   /* sockets a board, cores a socket, threads a core */
	uint64_t memory_mb, tmp_disk_mb, boot_time;
	char *arch, *os;
	char *cpu_map;          /* kernel's numbers of CPUs in core-major order, "0,4,1,5" */
};

struct noded {
	uv_loop_t loop;
	struct noded_options opt;
	struct conf *conf;
	const Pb__NodeRecord *self;       /* in conf */
	struct gpus_list gres;            /* its generic resources, with what AutoDetect has found */
	char *name, *spool, *run_dir, *stepd_path, *cgroup, *controllers;
	int zygote;                       /* connection to the slurmstepd that waits to be forked (stepd.h); 0: none */
	unsigned zygote_steps;            /* forked from it */
	struct hardware hw;
	struct wire_auth *auth;
	struct wire_server *server;
	struct relay_place relay;
	struct wire_link *ctld;
	struct sack *sack;
	size_t ctld_index;                /* which SlurmctldHost */
	uint64_t start_time, ctld_time;   /* seconds since the epoch; ctld_time: slurmctld's last call or answer, 0: none yet */
	bool after_reboot;               /* -b */
	uint32_t node_index;
	uid_t slurm_uid;
	bool is_root, registered, stopping;
	char *debug_flags;               /* scontrol setdebugflags nodes=: instead of DebugFlags, until the configuration is read again; NULL: as configured */
	struct cred_book *creds;
	struct event_queue *events;
	struct node_step *steps;          /* list */
	uint32_t *stopped;                /* jobs that are suspended: a step that is started later is, too */
	size_t stopped_n, stopped_cap;
	struct node_job *jobs;            /* list */
	char *gres_problem;
};

/* Read configuration into n->conf and what depends on it. Also at SIGHUP: on failure the old one stays. */
int noded_load_conf(struct noded *n, struct error *err);
/* Its log file: the caller's to free; NULL: none. */
char *noded_log_path(const struct noded *n);
/* Of scontrol setdebugflags nodes=, else of the configuration; may be NULL. */
const char *noded_debug_flags(const struct noded *n);
