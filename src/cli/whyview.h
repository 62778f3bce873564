/* whyview.h - the answer of RPC_WHY as text for people, or as JSON with stable keys (doc/why.md) */
#pragma once
#include "cli/json.h"
#include "client/client.h"
#include "proto/why.pb-c.h"

/* Asks; selectors may be none (all pending jobs). Freed with protobuf_c_message_free_unpacked. */
int why_call(struct client *c, char **selector, size_t n, const uint32_t *uid, bool brief, Pb__WhyRsp **ret, struct error *err);
/* full: with the table of nodes, plan, priority and hints. */
void put_why(struct str *out, const Pb__WhyJob *j, bool full);
void why_json(const Pb__WhyRsp *rsp, bool yaml, const char *const *argv, int argc);
