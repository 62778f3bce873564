/* io_proof.h - how slurmstepd and the reader of a connection (wire/stepio.h) prove to each other that they know its key */
#pragma once
#include "stepd/step.h"
#define IO_PROOF_LEN 32
/* HMAC of "job.step node" under the connection's key (crypto_auth_KEYBYTES); `who` stands before it: "" ours, "srun " the other side's. */
void io_proof(const struct step *s, const uint8_t *key, const char *who, uint8_t ret[IO_PROOF_LEN]);
/* The HELLO of this step; its proof lies in mac, which must live as long. */
void io_hello(const struct step *s, const uint8_t *key, Pb__IoHello *ret, uint8_t mac[IO_PROOF_LEN]);
