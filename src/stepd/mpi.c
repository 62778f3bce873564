/* mpi.c - hands what concerns MPI to the kind the step was started with (see mpi.h) */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "stepd/contain.h"
#include "stepd/io_link.h"
#include "stepd/mpi.h"
#include "stepd/peers.h"
#include "stepd/pmi.h"
#include "stepd/pmix.h"
#include "stepd/step.h"
#include "stepd/task.h"
#include "wire/stepio.h"

static enum { KIND_NONE, KIND_PMI, KIND_PMIX } kind;

int mpi_prepare(struct step *s)
{
	const char *type = s->spec ? s->spec->mpi_type : NULL;
	if (!type || !*type || !strcmp(type, "none"))
		return 0;
	if (strcmp(type, "pmi2") && strcmp(type, "pmix"))
		return step_fail(s, EINVAL, "MPI type %s is not known on node %s", type, s->node);
	kind = strcmp(type, "pmix") ? KIND_PMI : KIND_PMIX;
	if (peers_start(s) < 0)
		return -1;
	return kind == KIND_PMI ? pmi_prepare(s) : pmix_prepare(s);
}

int mpi_open(struct step *s, struct task *t) { return kind == KIND_PMI ? pmi_open(s, t) : 0; }

void mpi_forked(struct step *s, struct task *t)
{
	if (kind == KIND_PMI)
		pmi_forked(s, t);
}

void mpi_child(const struct step *s, const struct task *t, struct envlist *e)
{
	if (kind == KIND_PMI)
		pmi_child(s, t, e);
	else if (kind == KIND_PMIX)
		pmix_child(s, t, e);
}

void mpi_launched(struct step *s)
{
	if (kind != KIND_NONE)
		peers_announce(s);
}

bool mpi_reaped(struct step *s, pid_t pid) { return kind == KIND_PMIX && pmix_reaped(s, pid); }
bool mpi_finish(struct step *s) { return peers_finish(s) && (kind != KIND_PMIX || pmix_finish(s)); }

void mpi_gathered(struct step *s, uint64_t id, const uint8_t *parts, size_t n)
{
	if (kind == KIND_PMI)
		pmi_gathered(s, parts, n);
	else if (kind == KIND_PMIX)
		pmix_gathered(s, id, parts, n);
}

void mpi_message(struct step *s, uint32_t node, const uint8_t *data, size_t n)
{
	if (kind == KIND_PMI)
		pmi_message(s, node, data, n);
	else if (kind == KIND_PMIX)
		pmix_message(s, node, data, n);
}

void mpi_spawned(struct step *s, uint32_t ticket, bool ok)
{
	if (kind == KIND_PMI)
		pmi_spawned(s, ticket, ok);
}

void mpi_abort(struct step *s, uint32_t rank, int code)
{
	uint8_t body[4] = { (uint8_t)(code >> 24), (uint8_t)(code >> 16), (uint8_t)(code >> 8), (uint8_t)code };
	log_info("task %u called abort with code %d", rank, code);
	if (!io_link_send(s, STEPIO_ABORT, body, sizeof body))
		task_terminate(s, (uint32_t)step_conf_num(s, "KillWait", 30));
}

uint32_t mpi_node_of(const struct step *s, uint32_t rank)
{
	const Pb__StepLayout *layout = s->cred->layout;
	for (size_t i = 0; i < layout->n_node; i++)
		for (size_t k = 0; k < layout->node[i]->n_task_ids; k++)
			if (layout->node[i]->task_ids[k] == rank)
				return (uint32_t)i;
	return UINT32_MAX;
}
