/* events.h - what slurmctld must hear from this node, in order, until it has answered
 * Ends of steps stand in the spool until then (done files), so they survive slurmd; the rest is found out anew when slurmctld asks again. */
#pragma once
#include "noded/noded.h"
struct event_queue *events_create(struct noded *n);
/* Copied. */
void events_push(struct noded *n, const Pb__NodeEvent *e);
/* slurmctld can be reached (again): send what waits. */
void events_send(struct noded *n);
/* The i-th that waits; NULL past the end. */
const Pb__NodeEvent *events_at(const struct noded *n, size_t i);
