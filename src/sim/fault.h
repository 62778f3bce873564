/* fault.h - inside the fault simulator (see faultsim.h)
 *
 * What is real: the core and the store's interface. What is played: the turn (records and what may leave only after they are on disk, as in ctld/turn.c), the
 * network (messages lost, doubled, late, in another order; both sides repeat until they are answered, as agent.c and noded/events.c do), nodes (they
 * die, come back, their slurmd is restarted), the disk (slow, full) and the clock (it jumps). The controller is killed between any two steps of a turn.
 *   faultsim.c     seeds, time, misfortunes, the end of the faults      fault_turn.c   the turn, the disk, the agent, the controller's death and start
 *   fault_node.c   network, nodes                                       fault_user.c   users and operators
 *   fault_audit.c  the auditor: knows only what users were told, what is on disk and what nodes did */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/core.h"
#include "model/states.h"
#include "proto/agent.pb-c.h"
#include "sim/faultsim.h"
#include "store/store.h"

enum { NODES = 8, CPUS = 8, GPUS = 2, MEM = 8000, LICENSES = 3, SOFT_LICENSES = 2, RUNS_MAX = 64, HELD_MAX = 16, JOBS_MAX = 8192, RESVS_MAX = 4, LATE_MS = 6000, REPEAT_MS = 2000, LAUNCH_TRIES = 5 };

/* --- network and nodes --- */
enum msg_kind { M_LAUNCH, M_TERMINATE, M_REPORT, M_REGISTER, M_ACK_ORDER, M_ACK_REPORT, M_REGISTERED };
struct alive { uint32_t job_id, restarts; };
/* boot: of the slurmd, epoch: of the controller at the other end; a connection dies with either. meant_for: the slurmd's start as the controller knew it. */
struct msg {
	uint64_t at, seq;
	enum msg_kind kind;
	uint32_t node, boot, epoch, job_id, restarts, status, order, report, cpus;
	bool clean, epilog, rebooted, gone, refused;
	uint64_t started, meant_for;
	struct alive *alive;
	size_t n_alive;
};
struct run { uint32_t job_id, restarts, cpus; uint64_t ends; bool ending, given_up; }; /* given_up: an operator set the node DOWN */
struct report { uint32_t id, job_id, restarts, status; bool epilog, clean; uint64_t again; };
struct node {
	bool alive, known, rebooted, keys, after_reboot;
	uint32_t boot;
	uint64_t started, register_at, silent_since, dead_until;
	struct run run[RUNS_MAX];
	size_t runs;
	struct report report[RUNS_MAX * 2];
	size_t reports;
	struct alive past[RUNS_MAX * 4];  /* runs it has had since it booted */
	size_t pasts;
	struct msg held[HELD_MAX];        /* launches that came before slurmctld's key */
	size_t helds;
};

/* --- the controller --- */
struct order { uint32_t id, node, job_id, restarts, cpus, tries; bool launch; uint64_t again, meant_for; };
enum ask_kind { ASK_NONE, ASK_SUBMIT, ASK_KILL, ASK_HOLD, ASK_LIMIT };
enum act_kind { A_REPLY, A_DONE, A_LAUNCH, A_TERMINATE, A_ENDED, A_ACK, A_REGISTERED };
struct act { enum act_kind kind; enum ask_kind ask; uint32_t node, job_id, restarts, cpus, report, boot, depends; uint64_t meant_for; };
struct put { enum store_table table; uint64_t key, step; uint8_t *data; size_t len; };
struct batch { struct batch *next; struct put *put; size_t puts, put_cap; struct act *act; size_t acts, act_cap; uint64_t ready; };

/* --- what the auditor knows --- */
struct claim { uint32_t cpus, gpus, mem; uint64_t since; bool given_back; }; /* of one node, bits; since: the step it was given in */
struct told {
	uint32_t id;
	bool final, running;              /* on disk */
	uint32_t launched, ended;         /* last run started, told ended: restarts + 1 */
	uint32_t run, host, array, lics[2]; /* run of the claims: restarts + 1 */
	bool freed;               /* its dependency was taken away, maybe before its submission was answered */
	uint32_t depends, seen, seen_epoch; /* afterany of that job; last run that its node named to the controller of that epoch */
	bool few;                         /* running, in QOS few */
	uint32_t few_cpus;
	bool held, over;                  /* on disk: pending and held; it was final once */
	struct claim *claim;              /* NODES of them while it has any */
};
struct reserved { uint32_t id, nodes; uint64_t start, end; bool alice_only, part; char name[8]; };

struct sim {
	uint64_t seed, random, now, clock, seq, token, ask_token, timer_ms, steps, launches, kills, accepted;
	struct core *core;
	struct effects *fx;
	struct store *store;
	struct core_params params;
	struct node node[NODES];
	struct msg *msg;
	size_t msgs, msg_cap;
	struct order *order;
	size_t orders, order_cap;
	uint32_t order_id, report_id, epoch;
	struct batch *open, *first, **last;
	bool plan_more, full, faults, down, blameless; /* blameless: the event under way takes nothing from anybody (audit_plan) */
	enum ask_kind ask;
	uint32_t ask_job, ask_depends;
	struct told *told;                /* by id */
	uint64_t gone[NODES];             /* the step in which the node last had nothing any more, or was given up */
	uint64_t downed[NODES];           /* when an operator set it DOWN (ms); 0: never */
	uint32_t highest;
	struct reserved resv[RESVS_MAX];
	size_t resvs;
	struct planned { uint32_t id; uint64_t start; char nodes[64]; } *planned; /* promised starts, and where, before the event under way */
	size_t planneds, planned_cap;
	uint32_t up;                      /* nodes that were given work before it */
	bool reserved;                    /* there were reservations before it */
};
extern const char *const node_name[NODES];

uint32_t draw(struct sim *s, uint32_t below);
bool chance(struct sim *s, uint32_t permille);                 /* false once the faults have stopped */
_Noreturn void wrong(const struct sim *s, const char *what, uint32_t job, uint32_t x);
void story(const struct sim *s, uint32_t job, const char *fmt, uint32_t a, uint32_t b);

/* fault_turn.c */
void act_add(struct sim *s, struct act a);
void step(struct sim *s, struct core_event *ev);
struct core_event event(struct sim *s, enum core_event_type type, uint32_t uid);
Pb__JobRecord *job_record(struct sim *s, uint32_t id);         /* as the core has it now; NULL: unknown; the caller's */
void turn_close(struct sim *s);
void controller_start(struct sim *s);
void controller_kill(struct sim *s);
void disk(struct sim *s);
void agent(struct sim *s);
bool order_wanted(struct sim *s, const struct order *o);
/* fault_node.c */
void post(struct sim *s, const struct msg *m);
void node_lives(struct sim *s, uint32_t at);
void node_die(struct sim *s, uint32_t at);
void node_boot(struct sim *s, uint32_t at);
void slurmd_restart(struct sim *s, uint32_t at);
void network(struct sim *s);
/* fault_user.c */
void users(struct sim *s);
void operators(struct sim *s);
void all_is_well(struct sim *s);                               /* what operators do when the faults are over */
/* fault_audit.c */
struct told *told(struct sim *s, uint32_t id);
void audit_committed(struct sim *s, const struct batch *b);
void audit_restored(struct sim *s);
void audit_act(struct sim *s, const struct act *a);
void audit_run(struct sim *s, uint32_t at, const struct msg *m, uint32_t used);
void audit_clean(struct sim *s, uint32_t job_id, uint32_t restarts, uint32_t node);
void audit_launches(struct sim *s, uint32_t job_id, uint32_t restarts);
void audit_registers(struct sim *s, const struct msg *m);
void audit_node_gone(struct sim *s, uint32_t node);
void audit_node_down(struct sim *s, uint32_t node);             /* by an operator */
bool audit_given_up(struct sim *s, uint32_t job_id, uint32_t node);
void audit_plan_before(struct sim *s);
void audit_plan_after(struct sim *s, const uint32_t *started, size_t n);
void audit_queue(struct sim *s);
uint32_t left_over(struct sim *s, bool show);
