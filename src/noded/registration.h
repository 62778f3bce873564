/* registration.h - tells slurmctld that this node is here, and keeps the connection to it
 * Tries every SlurmctldHost in turn until one answers; again whenever the connection breaks. */
#pragma once
#include "noded/noded.h"
void registration_start(struct noded *n);
void registration_lost(struct noded *n);
/* Ask again, soon: configuration changed. */
void registration_again(struct noded *n);
/* Record as found, for registration and ping; strings belong to n. */
void registration_fill(const struct noded *n, Pb__NodeRecord *ret);
