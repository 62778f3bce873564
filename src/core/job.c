/* job.c - job objects: made, found, forgotten; and the packed request they carry
 * Jobs are found through pages of 1,024 ids, so that memory is given back page by page as the queue drains. */
#include <stdio.h>
#include <stdlib.h>

#include "core/acct.h"
#include "core/state.h"

struct core_job *job_find(const struct core *c, uint32_t id)
{
	uint32_t p = id / JOB_PAGE;
	return p < c->page_n && c->page[p] ? c->page[p]->job[id % JOB_PAGE] : NULL;
}

uint32_t job_take_id(struct core *c)
{
	uint32_t max = c->params.max_job_id ? c->params.max_job_id : 67043328;
	while (job_find(c, c->next_id)) /* after the numbers wrapped */
		c->next_id = c->next_id >= max ? 1 : c->next_id + 1;
	uint32_t id = c->next_id;
	c->next_id = c->next_id >= max ? (c->params.first_job_id ? c->params.first_job_id : 1) : c->next_id + 1;
	if (c->next_id > c->id_persisted || c->next_id < id) {
		c->id_persisted = c->next_id + NEXT_ID_BLOCK;
		effects_push(c->fx, FX_PERSIST_NEXT_ID)->value = c->id_persisted;
	}
	return id;
}

struct core_job *job_new(struct core *c, uint32_t id)
{
	struct core_job *j = xcalloc(1, sizeof *j);
	uint32_t p = id / JOB_PAGE;
	assert(id && !job_find(c, id));
	j->id = id;
	j->task = UINT32_MAX;
	j->part = UINT32_MAX;
	j->blob_stale = true;
	if (p >= c->page_n) {
		uint32_t n = p + 64;
		c->page = xrealloc(c->page, n * sizeof *c->page);
		memset(c->page + c->page_n, 0, (n - c->page_n) * sizeof *c->page);
		c->page_n = n;
	}
	if (!c->page[p])
		c->page[p] = xcalloc(1, sizeof **c->page);
	c->page[p]->job[id % JOB_PAGE] = j;
	c->page[p]->used++;
	c->job_n++;
	return j;
}

struct job_extra *job_x(struct core_job *j)
{
	if (!j->x)
		j->x = xcalloc(1, sizeof *j->x);
	return j->x;
}

static void job_free(struct core_job *j)
{
	struct job_extra *x = j->x;
	if (x) {
		free(x->why);
		free(x->cron);
		free(x->causes);
		free(x->preempted_by);
		acct_counted_free(x->counted);
		free(x->lic);
		free(x->lic_was);
		free(x->fail_node);
		free(x->dependency);
		free(x->dep_left);
		free(x->comment_sys);
		free(x->wait_text);
		free(x->tres_alloc);
		free(x->nodes);
		free(x->resv);
		free(x->dep);
		free(x);
	}
	while (j->steps) {
		struct step *s = j->steps;
		j->steps = s->next;
		step_free(s);
	}
	if (j->alloc)
		free(j->alloc->words);
	free(j->alloc);
	bitset_destroy(j->tasks);
	free(j->blob);
	free(j);
}

void job_forget(struct core *c, struct core_job *j)
{
	struct job_page *p = c->page[j->id / JOB_PAGE];
	assert(!j->alloc || !j->alloc->left);
	queue_remove(c, j);
	promise_drop(c, j);
	depend_clear(c, j);
	fx_job(c, FX_REMOVE_JOB, j);
	if (j->end_prev || j->end_next || c->end_first == j) {
		*(j->end_prev ? &j->end_prev->end_next : &c->end_first) = j->end_next;
		*(j->end_next ? &j->end_next->end_prev : &c->end_last) = j->end_prev;
	}
	array_job_gone(c, j);
	het_gone(c, j);
	shape_unref(c, j->shape);
	p->job[j->id % JOB_PAGE] = NULL;
	if (!--p->used) {
		c->page[j->id / JOB_PAGE] = NULL;
		free(p);
	}
	c->job_n--;
	depend_waiters_free(&j->waiters);
	job_free(j);
}

void job_free_all(struct core *c)
{
	for (uint32_t p = 0; p < c->page_n; p++) {
		for (uint32_t i = 0; c->page[p] && i < JOB_PAGE; i++)
			if (c->page[p]->job[i]) {
				struct core_job *j = c->page[p]->job[i];
				depend_waiters_free(&j->waiters);
				free(j->promise);
				job_free(j);
			}
		free(c->page[p]);
	}
	free(c->page);
}

/* --- the packed request ---------------------------------------------------------------------- */

static size_t put_varint(uint8_t *p, uint64_t v)
{
	size_t n = 0;
	for (; v > 127; v >>= 7)
		p[n++] = (uint8_t)(v | 128);
	p[n++] = (uint8_t)v;
	return n;
}

/* The blob becomes [room for nothing][desc]; the next encode puts the state part before it. */
void job_set_desc_bytes(struct core_job *j, const uint8_t *data, uint32_t len)
{
	uint8_t *b = xmalloc(len + 1);
	memcpy(b, data, len);
	free(j->blob);
	j->blob = b;
	j->blob_len = j->desc_len = len;
	j->desc_at = 0;
	j->blob_stale = true;
}

void job_set_desc(struct core_job *j, const Pb__JobDesc *d)
{
	size_t len = pb__job_desc__get_packed_size(d);
	uint8_t *b = xmalloc(len + 1);
	pb__job_desc__pack(d, b);
	free(j->blob);
	j->blob = b;
	j->blob_len = j->desc_len = (uint32_t)len;
	j->desc_at = 0;
	j->blob_stale = true;
}

/* New state part, same request: one allocation, one copy. */
void job_set_state_bytes(struct core_job *j, const uint8_t *state, uint32_t len)
{
	uint8_t head[16] = { 0xa2, 0x06 }; /* field 100, length-delimited */
	size_t h = 2 + put_varint(head + 2, j->desc_len);
	uint8_t *b = xmalloc(len + h + j->desc_len);
	memcpy(b, state, len);
	memcpy(b + len, head, h);
	memcpy(b + len + h, j->blob + j->desc_at, j->desc_len);
	free(j->blob);
	j->blob = b;
	j->desc_at = (uint32_t)(len + h);
	j->blob_len = j->desc_at + j->desc_len;
	j->blob_stale = false;
}

Pb__JobDesc *job_desc(const struct core_job *j)
{
	Pb__JobDesc *d = pb__job_desc__unpack(NULL, j->desc_len, j->blob + j->desc_at);
	assert(d); /* we packed it ourselves, or refused the record when it was restored */
	return d;
}

static bool get_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;
	for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
		uint8_t b = *(*p)++;
		v |= (uint64_t)(b & 127) << shift;
		if (!(b & 128)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

/* A string of the packed request, in place: field numbers ascend, so it stops early. */
static const char *desc_find(const struct core_job *j, uint32_t field, size_t *ret_len)
{
	const uint8_t *p = j->blob + j->desc_at, *end = p + j->desc_len;
	uint64_t tag, v;
	while (p < end && get_varint(&p, end, &tag)) {
		uint32_t f = (uint32_t)(tag >> 3);
		if (f > field)
			return NULL;
		if ((tag & 7) == 0 ? !get_varint(&p, end, &v) : (tag & 7) != 2 || !get_varint(&p, end, &v) || v > (uint64_t)(end - p))
			return NULL;
		if ((tag & 7) == 2) {
			if (f == field) {
				*ret_len = (size_t)v;
				return (const char *)p;
			}
			p += v;
		}
	}
	return NULL;
}

char *job_desc_str(const struct core_job *j, uint32_t field)
{
	size_t n;
	const char *s = desc_find(j, field, &n);
	return s ? xstrndup(s, n) : NULL;
}

bool job_desc_str_eq(const struct core_job *j, uint32_t field, const char *text)
{
	size_t n;
	const char *s = desc_find(j, field, &n);
	return s ? strlen(text) == n && !memcmp(s, text, n) : !text[0];
}

uint32_t job_time_used(const struct core *c, const struct core_job *j)
{
	if (!j->start || j->state == PB__JOB_STATE__PENDING)
		return 0;
	uint32_t until = job_state_is_final(j->state) ? j->end : (j->state == PB__JOB_STATE__SUSPENDED ? j->suspend : now_sec(c));
	uint32_t used = until > j->start ? until - j->start : 0;
	return used > j->susp_total ? used - j->susp_total : 0;
}

char *job_id_text(const struct core_job *j, char *buf, size_t size)
{
	if (j->array && j->task != UINT32_MAX)
		snprintf(buf, size, "%u_%u", j->array->id, j->task);
	else if (j->het)
		snprintf(buf, size, "%u+%u", j->het->id, j->het_at);
	else
		snprintf(buf, size, "%u", j->id);
	return buf;
}
