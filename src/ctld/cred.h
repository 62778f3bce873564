/* cred.h - slurmctld's signature: what may run where
 * The secret key is made at the first start and stays in StateSaveLocation, readable by slurmctld alone. Nodes learn the public keys, newest first, when they
 * register. */
#pragma once
#include "ctld/ctld.h"

int cred_open(const char *state_dir, struct cred **ret, struct error *err);
void cred_close(struct cred *c);
/* A step's credential for the job as it is now. Freed by cred_free. */
Pb__SignedCred *cred_step(struct ctld *d, const Pb__JobRecord *job, uint32_t step_id, const Pb__StepLayout *layout, const Pb__StepDesc *desc);
void cred_free(Pb__SignedCred *s);
/* A batch launch for the node as it was when the job was started, signed whole; `script` is an encoded ScriptRsp. NULL when malformed. Freed with free_unpacked. */
struct cred_node { uint64_t boot_time, slurmd_start_time; };
Pb__SignedBatch *cred_batch(struct ctld *d, const Pb__JobRecord *job, const struct cred_node *at, const void *script, size_t len);
/* Keys to believe, for NodeRegisterRsp: borrowed. */
size_t cred_keys(const struct cred *c, Pb__CredKey *const **ret);
