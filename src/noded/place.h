/* place.h - the places slurmd takes on its machine: folder, pid file, address and port, token socket, cgroup */
#pragma once
#include "noded/noded.h"
/* Our row: by name, or where none was given by host name. NULL and err. */
const Pb__NodeRecord *place_find(const struct conf *conf, const char *name, struct error *err);
/* Spool folder, pid file (locked: two slurmds of one node cannot run), cgroup. */
int place_take(struct noded *n, struct error *err);
/* The port of a node's slurmd. */
uint16_t place_port(const struct noded *n, const Pb__NodeRecord *r);
/* Keys and server at the node's address and port. */
int place_serve(struct noded *n, wire_handler_fn handler, wire_policy_fn policy, void *arg, struct error *err);
/* The same for slurmd's own calls, and the token socket. */
int place_listen(struct noded *n, struct error *err);
void place_leave(struct noded *n);
