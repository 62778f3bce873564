/* io_proof.c - see io_proof.h */
#include <stdio.h>
#include <sodium.h>

#include "stepd/io_proof.h"

_Static_assert(crypto_auth_BYTES == IO_PROOF_LEN, "the proof's size is in the protocol");

void io_proof(const struct step *s, const uint8_t *key, const char *who, uint8_t ret[IO_PROOF_LEN])
{
	char text[512];
	int n = snprintf(text, sizeof text, "%s%u.%u %s", who, s->job_id, s->step_id, s->node);
	crypto_auth(ret, (const uint8_t *)text, (size_t)n, key);
}

void io_hello(const struct step *s, const uint8_t *key, Pb__IoHello *ret, uint8_t mac[IO_PROOF_LEN])
{
	pb__io_hello__init(ret);
	io_proof(s, key, "", mac);
	ret->job_id = s->job_id;
	ret->step_id = s->step_id;
	ret->node = (char *)s->node;
	ret->node_index = s->start->node_index;
	ret->proof.data = mac;
	ret->proof.len = IO_PROOF_LEN;
}
