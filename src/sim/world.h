/* world.h - a cluster around one core, on virtual time: nodes that answer, a store that keeps what was persisted
 * Shared by the scenario runner and the random simulation. Deterministic: events that are due are delivered in order of time, then of their
 * creation. After every step core_check runs. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "core/core.h"

struct world_event;
struct blob { uint8_t *data; size_t len; };
struct world_node { char *name; bool alive; uint32_t epilog_ms; bool no_epilog; };
struct world {
	struct core *core;
	struct effects *fx;
	struct core_params params;
	Pb__NodeRecord **node_conf;
	Pb__PartitionRecord **part_conf;
	Pb__TopologyRecord **topo_conf;
	size_t nodes, parts, node_cap, part_cap, topos;
	struct world_node *node;
	size_t nodes_cap;
	uint64_t now_ms, timer_ms, token;
	uint32_t next_id;
	bool plan_more, started, clean;       /* clean: slurmd reports BATCH_DONE with nothing left */
	struct world_event *queue;
	struct kept *kept;                    /* the store: job id -> record */
	struct blob *node_kept;
	struct { uint32_t id; struct blob b; } *resv_kept;
	size_t resv_kept_n, resv_kept_cap;
	Pb__AcctSnapshot *acct;               /* accounts and QOS; NULL: none */
	Pb__AcctUsage *usage;          /* as FX_PERSIST_USAGE gave it last */
	struct answer *answers;               /* token -> reply */
	struct str log;
	char *requeue_exit[2], *licenses, *tres;                /* owned, where params point to them */
	uint64_t steps, launches, terminates;
	uint32_t signal_job, signal;          /* the last signal for a job's processes; signals counts them */
	uint64_t signals, mails;
	uint32_t script_ms;                   /* how long PrologSlurmctld, EpilogSlurmctld and the prologs of nodes take */
	int script_status;                    /* with which the first two end */
	bool no_scripts;                      /* nothing of it ends */
	uint64_t scripts;                     /* begun */
	uint32_t (*run_sec)(struct world *w, uint32_t job_id); /* how long the script runs; 0: until told */
	void *arg;
};

void world_init(struct world *w);
void world_fini(struct world *w);
void world_add_node(struct world *w, const Pb__NodeRecord *rec);   /* copied */
void world_add_part(struct world *w, const Pb__PartitionRecord *rec);
/* EV_CONFIG, and all living nodes register. */
/* The same configuration read again. */
void world_configure(struct world *w);
void world_start(struct world *w);
/* kill -9 of the controller and a new one from the store; nodes register again, naming what runs there. */
void world_restart(struct world *w);
const char *world_user(uint32_t uid);   /* 0 root, 1001 alice, bob, carol, dave, erin */
struct core_event world_event(struct world *w, enum core_event_type type, uint32_t uid);
/* One step and everything that follows at the same moment. */
void world_step(struct world *w, const struct core_event *ev);
void world_advance(struct world *w, uint64_t to_ms);
/* w->acct has changed: the core is told, once it has started. */
void world_acct(struct world *w);
/* The reply to a token, or NULL; the world's. */
const ProtobufCMessage *world_answer(struct world *w, uint64_t token);
int world_node(const struct world *w, const char *name);
void world_node_kill(struct world *w, size_t i);
void world_node_register(struct world *w, size_t i, bool rebooted, uint64_t started_ms); /* started: slurmd anew, without its steps */
/* The batch script of a job ends. */
void world_batch_done(struct world *w, uint32_t job_id, uint32_t status);
Pb__JobRecord *world_job(struct world *w, uint32_t job_id);        /* caller frees; NULL: unknown */
