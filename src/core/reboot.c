/* reboot.c - scontrol reboot: a node is asked for (@), waits until no job is left on it, is told (^), and comes back
 *
 * REBOOT_REQUESTED and REBOOT_ISSUED are kept with the node. What happens afterwards is in rec->next_state: NODE_DOWN, NODE_IDLE (RESUME) or NODE_NEXT_UNDRAIN (ASAP
 * drained it, and that ends). While the order is out the node is not up; one that is not back within ResumeTimeout is down. */
#include <stdlib.h>

#include "core/state.h"

#define CLOCK_SLACK_SEC 5      /* a boot time is a difference of two clocks */

static void reason_put(struct core *c, struct core_node *n, const char *reason, const struct core_caller *by)
{
	xstr_set(&n->rec->reason, reason);
	xstr_set(&n->rec->reason_user, reason ? (by && by->user ? by->user : "root") : NULL);
	n->rec->has_reason_time = n->rec->has_reason_uid = reason != NULL;
	n->rec->reason_time = now_sec(c);
	n->rec->reason_uid = by ? by->uid : 0;
}

void reboot_ask(struct core *c, struct core_node *n, bool asap, const char *next, const char *reason, const struct core_caller *by)
{
	n->flags |= NODEF_REBOOT_REQUESTED | (asap ? NODEF_DRAIN : 0);
	n->rec->has_next_state = asap || next;
	n->rec->next_state = !next ? NODE_NEXT_UNDRAIN : !strcasecmp(next, "DOWN") ? NODE_DOWN : NODE_IDLE;
	if ((reason && reason[0]) || !n->rec->reason)
		reason_put(c, n, reason && reason[0] ? reason : asap ? "Reboot ASAP" : "reboot requested", by);
	reboot_look(c, n);
}

int reboot_cancel(struct core *c, struct core_node *n, bool check, struct error *err)
{
	if (check)
		return n->flags & NODEF_REBOOT_REQUESTED ? 0 : error_set(err, ESLURM_NODE_STATE_TRANSITION, "node %s is not to be rebooted", n->name);
	n->flags &= ~(uint32_t)(NODEF_REBOOT_REQUESTED | (n->rec->has_next_state ? NODEF_DRAIN : 0));
	n->rec->has_next_state = false;
	reason_put(c, n, NULL, NULL);
	return 0;
}

void reboot_look(struct core *c, struct core_node *n)
{
	if (!(n->flags & NODEF_REBOOT_REQUESTED) || n->held_n || !n->registered || (n->flags & NODEF_NOT_RESPONDING) || n->base == NODE_DOWN)
		return;
	Pb__RebootReq *m = arena_alloc(fx_arena(c), sizeof *m);
	pb__reboot_req__init(m);
	m->reason = n->rec->reason;
	n->flags = (n->flags & ~(uint32_t)NODEF_REBOOT_REQUESTED) | NODEF_REBOOT_ISSUED;
	n->reboot_ms = n->rec->reboot_ms = c->now_ms;
	n->rec->has_reboot_ms = true;
	node_refresh(c, n);
	fx_to_nodes(c, FX_REBOOT, 0, n->name, m);
	fx_log(c, LOG_L_INFO, "node %s is told to reboot", n->name);
	timer_add(c, c->now_ms + c->params.resume_timeout_sec * 1000ull, TIMER_NODE, n->index, 0);
	fx_node(c, n);
}

bool reboot_is_back(const struct core_node *n, const Pb__NodeRegisterReq *q)
{
	const Pb__NodeRecord *r = q->node;
	return n->flags & NODEF_REBOOT_ISSUED && (q->rebooted || (r->has_boot_time && r->boot_time + CLOCK_SLACK_SEC >= n->reboot_ms / 1000));
}

void reboot_done(struct core *c, struct core_node *n)
{
	uint32_t next = n->rec->has_next_state ? n->rec->next_state : 0;
	n->flags &= ~(uint32_t)NODEF_REBOOT_ISSUED;
	n->rec->has_next_state = false;
	n->base = NODE_IDLE;
	fx_log(c, LOG_L_INFO, "node %s is back from its reboot", n->name);
	if (next == NODE_DOWN) {
		n->down_by_admin = true;
		n->base = NODE_DOWN;
		return;
	}
	if (next)
		n->flags &= ~(uint32_t)NODEF_DRAIN;
	if (!(n->flags & NODEF_DRAIN))
		reason_put(c, n, NULL, NULL);
}

void reboot_timer(struct core *c, struct core_node *n)
{
	if (!(n->flags & NODEF_REBOOT_ISSUED) || n->reboot_ms + c->params.resume_timeout_sec * 1000ull > c->now_ms)
		return;
	n->flags &= ~(uint32_t)NODEF_REBOOT_ISSUED;
	n->rec->has_next_state = false;
	node_set_down(c, n, "reboot timed out");
}

/* The controller was away: what is to happen afterwards, and since when the node is awaited. */
void reboot_restore(struct core *c, struct core_node *n, const Pb__NodeRecord *m)
{
	if (!(n->flags & (NODEF_REBOOT_REQUESTED | NODEF_REBOOT_ISSUED)))
		return;
	n->rec->has_next_state = m->has_next_state;
	n->rec->next_state = m->next_state;
	n->reboot_ms = n->rec->reboot_ms = m->reboot_ms;
	n->rec->has_reboot_ms = m->has_reboot_ms;
	if (n->flags & NODEF_REBOOT_ISSUED)
		timer_add(c, n->reboot_ms + c->params.resume_timeout_sec * 1000ull, TIMER_NODE, n->index, 0);
}
