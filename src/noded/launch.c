/* launch.c - checks a launch and hands it to jobs.c (see launch.h)
 *
 * slurmd believes the signed bytes and nothing beside them. A step's argv, environment and addresses come from the user: they are taken only from a connection
 * whose token names the credential's uid and was made for exactly these bytes. Nobody, root included, launches as someone else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "model/hostlist.h"
#include "noded/cred.h"
#include "noded/events.h"
#include "noded/jobs.h"
#include "noded/launch.h"
#include "noded/place.h"
#include "noded/settings.h"
#include "noded/used.h"
#include "wire/sign.h"
#include "wire/stepio.h"

/* Place of this node among those of the step. */
static uint32_t node_index(const struct noded *n, const Pb__StepCred *cred)
{
	for (size_t i = 0; i < cred->layout->n_node; i++)
		if (!strcmp(cred->layout->node[i]->name, n->name))
			return (uint32_t)i;
	return 0;
}

/* What slurmstepd is told; settings_free() afterwards. */
static int start_fill(struct noded *n, Pb__StepCred *cred, Pb__StepdStart *start, struct error *err)
{
	pb__stepd_start__init(start);
	if (!n->is_root && cred->uid != geteuid())
		return error_set(err, ESLURM_ACCESS_DENIED, "slurmd on %s runs as uid %u and not as root: it can run jobs of that user only, not of uid %u", n->name,
				 (unsigned)geteuid(), cred->uid);
	start->cred = cred;
	start->node = n->name;
	start->node_index = node_index(n, cred);
	start->spool_dir = n->spool;
	start->run_dir = n->spool;
	start->cluster = (char *)conf_str(n->conf, CONF_ClusterName);
	settings_fill(n, start);
	return 0;
}

static int start_step(struct noded *n, Pb__StepCred *cred, Pb__LaunchSpec *spec, Pb__BatchLaunch *batch, struct error *err)
{
	Pb__StepdStart start;
	int rc = start_fill(n, cred, &start, err);
	if (rc < 0)
		return rc;
	start.spec = spec;
	start.batch = batch;
	rc = jobs_launch(n, &start, err);
	settings_free(&start);
	return rc;
}

/* This run of the job has ended here: a launch repeated after a restart of either daemon must not run it twice. */
static int check_not_run(const Pb__StepCred *cred, struct error *err)
{
	if (jobs_batch_ran(cred->job_id, cred->job->restarts))
		return error_set(err, EEXIST, "job %u has run on this node already", cred->job_id);
	return 0;
}

/* Sent before the node was rebooted? Then its run died with the node, and slurmctld has started the job again or will. */
static int check_since_reboot(const struct noded *n, const Pb__BatchLaunch *b, struct error *err)
{
	bool other_slurmd = n->after_reboot && b->has_slurmd_start_time && b->slurmd_start_time != n->start_time;
	bool other_boot = b->has_boot_time && b->boot_time && n->hw.boot_time > b->boot_time + 60;
	if (other_slurmd || other_boot)
		return error_set(err, ESLURM_CRED, "job %u was sent before this node was rebooted", b->cred->job_id);
	return 0;
}

int launch_batch(struct noded *n, struct wire_req *req, struct error *err)
{
	const Pb__SignedBatch *m = (const Pb__SignedBatch *)wire_req_msg(req);
	int rc = cred_check_signature(n->creds, SIGN_BATCH, &m->batch, &m->signature, err);
	if (rc < 0)
		return rc;
	Pb__BatchLaunch *b = (Pb__BatchLaunch *)(void *)wire_unpack(&pb__batch_launch__descriptor, m->batch.data, m->batch.len);
	if (!b)
		return error_set(err, ESLURM_PROTOCOL, "malformed batch launch");
	rc = cred_use(n->creds, b->cred, n->name, (uint64_t)time(NULL), err);
	if (!rc)
		rc = check_not_run(b->cred, err);
	if (!rc)
		rc = check_since_reboot(n, b, err);
	if (!rc) {
		log_info("Launching batch JobId=%u for UID %u", b->cred->job_id, b->cred->uid);
		rc = start_step(n, b->cred, NULL, b, err);
	}
	pb__batch_launch__free_unpacked(b, NULL);
	return rc;
}

/* Its credential does not expire: slurmctld repeats the order until the node is there, and a run that is over here is not begun again. */
int launch_prolog(struct noded *n, const Pb__PrologReq *m, struct error *err)
{
	Pb__StepdStart start;
	if (!m->extern_cred)
		return jobs_prolog(n, m, NULL);
	int rc = cred_check_signature(n->creds, SIGN_CRED, &m->extern_cred->cred, &m->extern_cred->signature, err);
	if (rc < 0)
		return rc;
	Pb__StepCred *cred = (Pb__StepCred *)(void *)wire_unpack(&pb__step_cred__descriptor, m->extern_cred->cred.data, m->extern_cred->cred.len);
	if (!cred || cred->step_id != STEP_ID_EXTERN || cred->job_id != m->job_id || cred->job->restarts != m->restarts)
		rc = error_set(err, ESLURM_CRED, "malformed credential of an extern step");
	rc = rc < 0 ? rc : start_fill(n, cred, &start, err);
	if (!rc) {
		rc = jobs_prolog(n, m, &start);
		settings_free(&start);
	}
	if (cred)
		pb__step_cred__free_unpacked(cred, NULL);
	return rc;
}

/* Is it the user himself who says this, and nothing else than this? */
static int check_user(const struct wire_req *req, const Pb__StepCred *cred, struct error *err)
{
	const struct wire_identity *id = wire_req_identity(req);
	uint8_t hash[32];
	size_t len;
	const uint8_t *body = wire_req_body(req, &len);
	wire_hash(body, len, hash);
	if (!id->known || id->uid != cred->uid)
		return error_set(err, ESLURM_ACCESS_DENIED, "step %u.%u belongs to uid %u, the launch comes from uid %u", cred->job_id, cred->step_id, cred->uid, id->uid);
	if (memcmp(id->bound, hash, sizeof hash))
		return error_set(err, ESLURM_ACCESS_DENIED, "the token of the launch of step %u.%u was not made for this launch", cred->job_id, cred->step_id);
	return 0;
}

int launch_step(struct noded *n, struct wire_req *req, struct error *err)
{
	Pb__LaunchSpec *spec = (Pb__LaunchSpec *)(void *)wire_req_msg(req);
	int rc = cred_check_signature(n->creds, SIGN_CRED, &spec->cred->cred, &spec->cred->signature, err);
	if (rc < 0)
		return rc;
	Pb__StepCred *cred = (Pb__StepCred *)(void *)wire_unpack(&pb__step_cred__descriptor, spec->cred->cred.data, spec->cred->cred.len);
	if (!cred)
		return error_set(err, ESLURM_PROTOCOL, "malformed step credential");
	rc = check_user(req, cred, err);
	if (!rc && (cred->step_id == STEP_ID_BCAST) != (spec->bcast != NULL))
		rc = error_set(err, ESLURM_CRED, "a credential for sbcast is for a file, and only that one is");
	rc = rc < 0 ? rc : cred_use(n->creds, cred, n->name, (uint64_t)time(NULL), err);
	if (!rc) {
		Pb__SignedCred *sealed = spec->cred, empty = PB__SIGNED_CRED__INIT;
		log_info("launch task StepId=%u.%u request from UID:%u GID:%u HOST:%s", cred->job_id, cred->step_id, cred->uid, cred->gid, wire_req_peer(req));
		spec->cred = &empty;           /* slurmstepd gets it unsealed, once */
		rc = start_step(n, cred, spec, NULL, err);
		spec->cred = sealed;
		/* Not before: srun asks again when slurmd is killed here, and must not be told that the step had been launched. */
		int noted = rc < 0 ? 0 : used_nonce(n, cred->nonce.data, cred->expires);
		if (noted < 0)
			log_error("cannot note in %s that the credential of step %u.%u is used: %s", n->spool, cred->job_id, cred->step_id, strerror(-noted));
	}
	pb__step_cred__free_unpacked(cred, NULL);
	return rc;
}
