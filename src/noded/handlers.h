/* handlers.h - the calls slurmd answers (tables/rpc.def, D_*) */
#pragma once
#include "noded/noded.h"
void handlers_run(struct wire_req *req, void *arg);
/* Answers a call whose reply is a Result. code: 0, or an errno or table code of any sign; detail may be NULL. */
void handlers_reply(struct wire_req *req, int code, const char *detail);
/* The first registration was answered: launches that came before can be looked at. */
void handlers_keys_known(struct noded *n);
/* Who may make calls of a class: root, SlurmUser, and whoever runs this slurmd. */
bool handlers_policy(const struct wire_identity *id, enum rpc_who who, void *arg);
