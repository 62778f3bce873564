/* predict.c - how long a job will probably run, learnt from its user
 * The mean of the user's last two runs (Tsafrir, Etsion, Feitelson 2007), never more than the limit. A guess: it may choose who of several goes
 * first, never who has to wait for whom; what is promised to a job rests on limits alone. */
#include <stdlib.h>

#include "core/state.h"

struct history { UT_hash_handle hh; uint32_t uid, runs, last[2]; };

void predict_learn(struct core *c, const struct core_job *j)
{
	struct history *h;
	if (!j->start || j->end < j->start)
		return;
	HASH_FIND(hh, c->histories, &j->uid, sizeof j->uid, h);
	if (!h) {
		h = xcalloc(1, sizeof *h);
		h->uid = j->uid;
		HASH_ADD(hh, c->histories, uid, sizeof h->uid, h);
	}
	h->last[h->runs++ % 2] = j->end - j->start;
}

uint32_t predict_limit_sec(const struct core_job *j) { return j->time_min >= ONE_YEAR_SEC / 60 ? ONE_YEAR_SEC : j->time_min * 60; }

uint32_t predict_sec(const struct core *c, const struct core_job *j)
{
	struct history *h;
	uint32_t limit = predict_limit_sec(j);
	HASH_FIND(hh, c->histories, &j->uid, sizeof j->uid, h);
	if (!h || h->runs < 2)
		return limit;
	uint32_t mean = (uint32_t)(((uint64_t)h->last[0] + h->last[1]) / 2);
	mean = mean ? mean : 1;
	return mean < limit ? mean : limit;
}

void predict_free(struct core *c)
{
	struct history *h, *tmp;
	HASH_ITER(hh, c->histories, h, tmp) {
		HASH_DEL(c->histories, h);
		free(h);
	}
}
