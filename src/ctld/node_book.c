/* node_book.c - see node_book.h */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "ctld/cred.h"
#include "ctld/node_book.h"
#include "ctld/turn.h"

bool book_may_ask(struct book_node *b)
{
	if (b->asking)
		return false;
	return b->asking = true;
}

enum book_do book_answer(struct book_node *b, int code)
{
	enum book_contact was = b->contact;
	b->asking = false;
	if (!code) {
		b->misses = 0;
		b->contact = BOOK_ANSWERS;
		return was == BOOK_ANSWERS ? BOOK_NOTHING : BOOK_BACK;
	}
	if (was == BOOK_SILENT)
		return BOOK_NOTHING;
	if (!b->misses++)
		return BOOK_ASK_AGAIN;
	b->contact = BOOK_SILENT;
	return BOOK_LOST;
}

void book_heard(struct book_node *b)
{
	b->misses = 0;
	b->contact = BOOK_ANSWERS;
}

void book_contact(struct ctld *d, const char *node, bool responding, bool loud)
{
	struct core_event ev = { .type = EV_NODE_CONTACT };
	ev.contact.node = node;
	ev.contact.responding = responding;
	if (!responding && loud) /* that it answers again the core says itself */
		log_error("node %s does not answer", node);
	turn_step(d, &ev);
}

bool book_knows_key(struct ctld *d, const Pb__NodeStatusRsp *status)
{
	Pb__CredKey *const *key;
	if (!cred_keys(d->cred, &key))
		return false;
	for (size_t i = 0; i < status->n_key_id; i++)
		if (status->key_id[i] == key[0]->id)
			return true;
	return false;
}

void book_returned(struct ctld *d, const char *node, const Pb__NodeStatusRsp *status)
{
	struct core_event ev = { .type = EV_NODE_REGISTER };
	Pb__NodeRegisterReq req = PB__NODE_REGISTER_REQ__INIT;
	size_t n = status->n_step;
	Pb__StepAlive *step = xcalloc(n + 1, sizeof *step), **list = xcalloc(n + 1, sizeof *list);
	book_contact(d, node, true, false);
	for (size_t i = 0; i < n; i++) {
		pb__step_alive__init(&step[i]);
		step[i].job_id = status->step[i]->job_id;
		step[i].step_id = status->step[i]->step_id;
		list[i] = &step[i];
	}
	req.node = status->node;
	req.n_step = n;
	req.step = list;
	ev.node_register = &req;
	turn_step(d, &ev);
	free(step);
	free(list);
}
