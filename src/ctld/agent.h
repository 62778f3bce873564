/* agent.h - what slurmctld tells the nodes, and what it believes of them
 *
 * One connection kept open to each node; calls to a node leave in order, at most AGENT_IN_FLIGHT at once, the rest waits in its
 * queue. Launches and ends are tried again until answered or pointless. Each node is asked for a sign of life at intervals; a broken connection
 * is followed up at once. */
#pragma once
#include "ctld/ctld.h"

struct agent *agent_create(struct ctld *d);
void agent_destroy(struct agent *a);
/* Nodes were configured (again): make and drop connections. */
void agent_nodes_changed(struct ctld *d);
/* Effects of the core: prepared now, sent when the turn is on disk. */
void agent_launch(struct ctld *d, const struct core_effect *e);
void agent_tell(struct ctld *d, const struct core_effect *e);
void agent_prolog(struct ctld *d, const struct core_effect *e);
/* All nodes: D_RECONFIG, D_SHUTDOWN. */
void agent_tell_all(struct ctld *d, enum rpc rpc);
/* Ask a node for a sign of life now. */
void agent_ask(struct ctld *d, const char *node);
/* A node registered by itself: it is there. */
void agent_heard(struct ctld *d, const char *node);
unsigned agent_ping_sec(const struct ctld *d);
size_t agent_in_flight(const struct agent *a);
