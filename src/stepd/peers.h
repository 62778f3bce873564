/* peers.h - what the slurmstepds of one step say to each other
 *
 * They form a tree by their place in the step (node 0 is the root). Each listens on a port of its own and tells srun (wire/stepio.h, PEER_PORT); srun tells it its parent's
 * (PEER_PARENT). Both ends prove that they hold the step's key before anything else is taken. Only steps that need it have peers: MPI across nodes.
 * What is sent before a connection stands waits. A connection that breaks is logged; that the node is lost, srun notices by itself. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
struct step;
/* Listen. 0; -1 and the step's note filled. */
int peers_start(struct step *s);
/* Tell srun the port. */
void peers_announce(struct step *s);
void peers_parent(struct step *s, uint16_t port);
/* Tasks of other nodes may need us while they run: true when none does, nobody could tell us, or the step was killed. */
bool peers_finish(const struct step *s);
void peers_all_ended(void);
/* One node's part of what `nodes` nodes (this one included) gather under `id`; node 0 puts the parts together and all nodes get the
 * whole by mpi_gathered(). An id may be used again once it was delivered. */
void peers_gather(struct step *s, uint64_t id, uint32_t nodes, const void *data, size_t n);
/* To one node, where mpi_message() gets it; also to ourselves. */
void peers_send(struct step *s, uint32_t node, const void *data, size_t n);
