/* handlers.h - the calls slurmd answers (tables/rpc.def, D_*) */
#pragma once
#include "noded/noded.h"
void handlers_run(struct wire_req *req, void *arg);
/* The first registration was answered: launches that came before can be looked at. */
void handlers_keys_known(struct noded *n);
/* Who may make calls of a class: root, SlurmUser, and whoever runs this slurmd. */
bool handlers_policy(const struct wire_identity *id, enum rpc_who who, void *arg);
