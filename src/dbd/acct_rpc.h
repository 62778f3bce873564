/* acct_rpc.h - the calls about accounts (see acct_rpc.c) */
#pragma once
#include "dbd/dbd.h"
#include "wire/wire.h"

struct acct_waiter;
struct acct_calls { struct db *db; struct acct_waiter *waiters; };
/* daemon: the caller is root or SlurmUser. */
void acct_get(struct acct_calls *a, struct wire_req *r, bool daemon);
void acct_set(struct acct_calls *a, struct wire_req *r, bool daemon);
