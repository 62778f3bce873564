/* states.h - words for job states, node states and reasons, made from tables/ */
#pragma once
#define NODE_NEXT_UNDRAIN 255u   /* a node's next_state after a reboot that only drained it for itself */
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

enum { /* bits of JobRecord.state_flags */
#define JOB_FLAG(sym, bit, compact) JOBF_##sym = 1u << bit,
#include "tables/job_states.def"
#undef JOB_FLAG
};
enum node_state {
#define NODE_STATE(sym, s, l) NODE_##sym,
#include "tables/node_states.def"
#undef NODE_STATE
};
enum { /* bits of NodeRecord.state_flags */
#define NODE_FLAG(sym, bit, word) NODEF_##sym = 1u << bit,
#include "tables/node_states.def"
#undef NODE_FLAG
};
enum reason {
#define REASON(sym, name) REASON_##sym,
#include "tables/reasons.def"
#undef REASON
};
const char *job_state_name(uint32_t state, uint32_t flags);      /* RUNNING, COMPLETING, ... */
const char *job_state_compact(uint32_t state, uint32_t flags);   /* R, CG */
/* Name or compact form in any case -> (is it a flag?, number). -EINVAL. */
int job_state_parse(const char *text, bool *ret_is_flag, uint32_t *ret);
static inline bool job_state_is_final(uint32_t state) { return state >= 3; }
const char *reason_name(uint32_t reason);
/* sinfo's words: short ("alloc", "drng", "mix-"), long ("allocated", "draining"), with suffix * ~ # ! % $ @ ^ -. buf. */
void node_state_short(uint32_t state, uint32_t flags, char *buf, size_t size);
void node_state_long(uint32_t state, uint32_t flags, char *buf, size_t size);
/* scontrol's: "IDLE+DRAIN". */
void node_state_full(uint32_t state, uint32_t flags, char *buf, size_t size);
