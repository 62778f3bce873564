/* reserve_use.c - for whom: which jobs may use a reservation, and what it keeps from all others
 * A job that is in none must end before, or start after, whatever is reserved on its nodes; one that is in a reservation stays on what that holds, while it lasts.
 * FLEX loosens both for its own jobs; a MAINT or an OVERLAP reservation takes precedence over those it lies on (blocks). */
#include <stdlib.h>

#include "core/reserve.h"

/* --- who may ---------------------------------------------------------------------------------- */

bool resv_list_has(const char *list, const char *word)
{
	for (const char *s = list; s && *s;) {
		size_t k = strcspn(s, ",");
		const char *w = *s == '-' ? s + 1 : s;
		size_t n = k - (size_t)(w - s);
		if (word && strlen(word) == n && !strncmp(w, word, n))
			return true;
		s += k + (s[k] == ',');
	}
	return false;
}

/* "a,b": only these; "-a,-b": all but these; absent: all. */
static bool list_lets(const char *list, const char *word)
{
	if (!list || !list[0])
		return true;
	return resv_list_has(list, word) != (list[0] == '-');
}

static bool parts_let(const char *list, const struct resv_who *w)
{
	if (!list || !list[0])
		return true;
	for (uint32_t i = 0; i < w->part_n; i++)
		if (list_lets(list, w->parts[i]))
			return true;
	return false;
}

static bool qos_let(const char *list, const char *mine)
{
	if (!list || !list[0])
		return true;
	char *copy = xstrdup(mine && mine[0] ? mine : "normal"), *at = copy, *q;
	bool ok = false;
	while (!ok && (q = str_next(&at, ",")))
		ok = list_lets(list, q);
	free(copy);
	return ok;
}

bool resv_allows(const struct resv *r, const struct resv_who *w)
{
	const Pb__ReservationRecord *m = r->rec;
	if (w->root)
		return true;
	if (m->groups && m->groups[0] && !resv_list_has(m->group_users, w->user))
		return false;
	return list_lets(m->users, w->user) && list_lets(m->accounts, w->account) && qos_let(m->qos, w->qos) && parts_let(m->allowed_partitions, w);
}

bool core_resv_lets(const Pb__ReservationRecord *r, const char *user)
{
	return (!r->groups || !r->groups[0] || resv_list_has(r->group_users, user)) && list_lets(r->users, user);
}

static void who_of(const struct core *c, const struct core_job *j, const Pb__JobDesc *d, struct resv_who *w)
{
	*w = (struct resv_who){ .user = atom_text(c, j->user), .account = d->account, .qos = d->qos, .root = j->uid == 0 };
}

bool resv_job_allowed(const struct core *c, const struct resv *r, const struct core_job *j, const Pb__JobDesc *d)
{
	struct resv_who w;
	char *parts[JOB_PARTS_MAX], *list = xstrdup(d->partition ? d->partition : ""), *at = list, *p;
	who_of(c, j, d, &w);
	while ((p = str_next(&at, ",")) && w.part_n < JOB_PARTS_MAX)
		parts[w.part_n++] = p;
	w.parts = (const char *const *)parts;
	bool ok = resv_allows(r, &w);
	free(list);
	return ok;
}

/* --- what part of a shape's key --------------------------------------------------------------- */

static bool delay_short(const struct resv *r, uint32_t time_min)
{
	return r->rec->max_start_delay_sec && time_min != TIME_INFINITE && time_min * 60ull <= r->rec->max_start_delay_sec;
}

/* Named ones as given. Else "^a,b" for magnetic ones that draw the job, "~d" for those whose MaxStartDelay lets it in between. */
char *resv_key(const struct core *c, const struct core_job *j, const Pb__JobDesc *d)
{
	struct str s = STR_INIT;
	struct resv_who w;
	char *parts[JOB_PARTS_MAX], *list = xstrdup(d->partition ? d->partition : ""), *at = list, *p;
	if (d->reservation && d->reservation[0]) {
		free(list);
		return xstrdup(d->reservation);
	}
	who_of(c, j, d, &w);
	while ((p = str_next(&at, ",")) && w.part_n < JOB_PARTS_MAX)
		parts[w.part_n++] = p;
	w.parts = (const char *const *)parts;
	w.root = false;
	for (uint32_t i = 0; i < c->resv_n; i++) {
		const struct resv *r = c->resv[i];
		bool magnet = r->flags & RESVF_MAGNETIC, delay = delay_short(r, d->has_time_limit_min ? d->time_limit_min : TIME_INFINITE);
		if (!(r->flags & RESVF_TIME_FLOAT) && (magnet || delay) && resv_allows(r, &w))
			str_addf(&s, "%s%c%s", s.len ? "," : "", magnet ? '^' : '~', r->rec->name);
	}
	free(list);
	if (!s.len) {
		str_fini(&s);
		return NULL;
	}
	return str_take(&s);
}

static bool key_has(const struct shape *s, char mark, const char *name)
{
	size_t n = strlen(name);
	for (const char *k = s->resv_key; k && *k;) {
		size_t len = strcspn(k, ",");
		if (k[0] == mark && len == n + 1 && !strncmp(k + 1, name, n))
			return true;
		k += len + (k[len] == ',');
	}
	return false;
}

uint32_t resv_choices(struct core *c, struct shape *s, struct resv *ret[RESV_USE_MAX + 1])
{
	uint32_t n = 0;
	bool named = s->resv_key && s->resv_key[0] != '^' && s->resv_key[0] != '~';
	char *copy = s->resv_key ? xstrdup(s->resv_key) : NULL, *at = copy, *w;
	while (copy && (w = str_next(&at, ",")) && n < RESV_USE_MAX) {
		struct resv *r = named ? resv_find(c, w) : w[0] == '^' ? resv_find(c, w + 1) : NULL;
		if (r)
			ret[n++] = r;
	}
	free(copy);
	if (!named)
		ret[n++] = NULL;
	return n;
}

/* May a job start in it now? */
bool resv_open(const struct core *c, const struct resv *r)
{
	int64_t now = now_sec(c);
	if (r->flags & RESVF_TIME_FLOAT)
		return false;
	return r->flags & RESVF_FLEX ? r->flags & RESVF_RECURRING || now < r->end : r->start <= now && now < r->end;
}

void resv_candidates(const struct core *c, const struct resv *in, struct bitset *cand)
{
	(void)c;
	if (in && !(in->flags & (RESVF_FLEX | RESVF_ANY_NODES)))
		bitset_and(cand, in->nodes);
}

/* --- what is left on a node ------------------------------------------------------------------- */

/* Does b, on a node where a job of `in` wants to be, keep it away? */
static bool blocks(const struct when *w, const struct core_node *n, const struct node_resv *b)
{
	const struct resv *in = w->in, *r = b->r;
	if (r == in)
		return false;
	if (!in)
		return !(w->j && key_has(w->j->shape, '~', r->rec->name));
	if (r->flags & RESVF_MAINT)
		return !(in->flags & RESVF_MAINT);
	if (in->flags & (RESVF_MAINT | RESVF_OVERLAP))
		return !bitset_has(in->nodes, n->index) && !bitset_empty(in->nodes);
	if (in->flags & (RESVF_FLEX | RESVF_ANY_NODES))
		return true;
	return r->flags & RESVF_OVERLAP;
}

static const struct node_resv *held_by(const struct core_node *n, const struct resv *r)
{
	for (uint32_t i = 0; i < n->resv_n; i++)
		if (n->resv[i].r == r)
			return &n->resv[i];
	return NULL;
}

/* What is in use when w begins: of now, or by jobs that will still be there. buf: the node's CPU and device words. */
static const uint64_t *used_then(const struct core *c, const struct core_node *n, const struct when *w, uint64_t *buf)
{
	if (!w->start_ms)
		return n->used;
	memset(buf, 0, (n->cpu_words + n->dev_words) * sizeof *buf);
	for (size_t i = 0; !w->empty && i < n->held_n; i++) {
		const struct core_job *j = n->held[i].job;
		const uint64_t *held = j->alloc->words + j->alloc->on[n->held[i].at].bits;
		for (uint32_t k = 0; job_end_ms(c, j) > w->start_ms && k < n->cpu_words + n->dev_words; k++)
			buf[k] |= held[k];
	}
	return buf;
}

/* Adds to it the GPUs of which shards are in use then. */
static void shared_then(const struct core *c, const struct core_node *n, const struct when *w, uint64_t *busy)
{
	if (!w->start_ms)
		shards_busy(n, NULL, busy);
	for (size_t i = 0; w->start_ms && n->shards && !w->empty && i < n->held_n; i++) {
		const struct core_job *j = n->held[i].job;
		if (job_end_ms(c, j) > w->start_ms)
			shards_busy(n, j->alloc->words + j->alloc->on[n->held[i].at].bits + n->cpu_words + n->dev_words, busy);
	}
}

static bool device_part(const struct core_node *n, uint32_t g, const uint64_t *words)
{
	const struct node_gres *e = &n->gres[g];
	for (uint32_t d = e->bit0; e->by_device && d < e->bit0 + e->count; d++)
		if (bit_of(words + n->cpu_words, d))
			return true;
	return false;
}

/* The time for which the job will hold the node, as far as others' reservations go. */
static struct resv_window span(const struct core *c, const struct when *w)
{
	uint64_t from = w->start_ms ? w->start_ms : c->now_ms, to = w->end_ms ? w->end_ms : c->now_ms + job_length_ms(w->j);
	struct resv_window s = { (int64_t)(from / 1000), (int64_t)((to + 999) / 1000) };
	if (w->in && !(w->in->flags & RESVF_FLEX)) {
		struct resv_window o;
		if (resv_occurrence(c, w->in, s.start, &o) && o.end < s.end)
			s.end = o.end;
	}
	return s;
}

/* Does some reservation hold a part of this node? */
static bool any_parts(const struct core_node *n)
{
	for (uint32_t i = 0; i < n->resv_n; i++)
		if (n->resv[i].words)
			return true;
	return false;
}

/* Adds to `busy` what reservations of parts of n keep from w's job. */
static void keep_parts(const struct core *c, const struct core_node *n, const struct when *w, struct resv_window s, uint64_t *busy)
{
	for (uint32_t i = 0; i < n->resv_n; i++) {
		const struct node_resv *b = &n->resv[i];
		bool mine = b->r == w->in && !(b->r->flags & RESVF_FLEX);
		if (!b->words || (!mine && (w->empty || !blocks(w, n, b) || !resv_overlaps(c, b->r, s.start, s.end))))
			continue;
		for (uint32_t k = 0; k < n->cpu_words; k++)
			busy[k] |= mine ? ~b->words[k] : b->words[k];
		for (uint32_t g = 0; g < n->gres_n; g++) {
			const struct node_gres *e = &n->gres[g];
			if (!device_part(n, g, b->words))
				continue;
			for (uint32_t d = e->bit0; d < e->bit0 + e->count; d++)
				if (bit_of(b->words + n->cpu_words, d) != mine)
					busy[n->cpu_words + d / 64] |= 1ULL << (d % 64);
		}
	}
}

/* Exactly what could be handed out: whole units of CPUs, and devices one by one. */
static void less_parts(const struct core *c, const struct core_node *n, const struct when *w, struct resv_window s, struct avail *a)
{
	uint32_t words = n->cpu_words + n->dev_words;
	uint64_t *busy = xmalloc((words + 1) * sizeof *busy);
	const uint64_t *used = used_then(c, n, w, busy);
	if (used != busy)
		memcpy(busy, used, words * sizeof *busy);
	keep_parts(c, n, w, s, busy);
	uint32_t cpus = inside_free(c, n, busy);
	a->cpus = cpus < a->cpus ? cpus : a->cpus;
	for (uint32_t g = 0; n->shards && g < n->gres_n; g++)
		if (n->gres[g].shard && shard_whole(n, g, busy))
			a->gres[g] = 0;
	shared_then(c, n, w, busy);
	for (uint32_t g = 0; g < n->gres_n; g++) {
		uint32_t k = 0;
		for (uint32_t d = n->gres[g].bit0; n->gres[g].by_device && d < n->gres[g].bit0 + n->gres[g].count; d++)
			k += !bit_of(busy + n->cpu_words, d);
		if (n->gres[g].by_device && k < a->gres[g])
			a->gres[g] = k;
	}
	if (w->part && w->part->max_socket_cpus != UINT32_MAX) /* which sockets would be left is not looked into: it stays off such a node */
		a->cpus = 0;
	free(busy);
}

void resv_less(const struct core *c, const struct core_node *n, const struct when *w, struct avail *a)
{
	if (!n->resv_n && !w->in)
		return;
	struct resv_window s = span(c, w);
	if (w->in && !(w->in->flags & (RESVF_FLEX | RESVF_ANY_NODES)) && !held_by(n, w->in))
		a->cpus = 0;
	for (uint32_t i = 0; a->cpus && !w->empty && i < n->resv_n; i++) {
		const struct node_resv *b = &n->resv[i];
		if (!b->words && blocks(w, n, b) && resv_overlaps(c, b->r, s.start, s.end))
			a->cpus = 0;
	}
	if (a->cpus && any_parts(n))
		less_parts(c, n, w, s, a);
}

void resv_used(const struct core *c, const struct core_node *n, const struct when *w, uint64_t *buf)
{
	memcpy(buf, n->used, (n->cpu_words + n->dev_words) * sizeof *buf);
	if (any_parts(n))
		keep_parts(c, n, w, span(c, w), buf);
}

uint64_t resv_next_end(const struct core *c, const struct core_node *n, const struct when *w)
{
	struct resv_window s = span(c, w), o;
	uint64_t next = UINT64_MAX;
	for (uint32_t i = 0; i < n->resv_n; i++) {
		const struct node_resv *b = &n->resv[i];
		if (!blocks(w, n, b) || !resv_occurrence(c, b->r, s.start, &o) || o.start >= s.end)
			continue;
		uint64_t e = (uint64_t)o.end * 1000;
		next = e < next ? e : next;
	}
	return next;
}

/* --- jobs ------------------------------------------------------------------------------------- */

int resv_submit_check(struct core *c, const struct core_job *j, const Pb__JobDesc *d, struct error *err)
{
	int r = 0;
	uint32_t n = 0;
	if (!d->reservation || !d->reservation[0])
		return 0;
	char *list = xstrdup(d->reservation), *at = list, *word;
	while (r >= 0 && (word = str_next(&at, ","))) {
		const struct resv *v = resv_find(c, word);
		if (!v || v->flags & RESVF_TIME_FLOAT || ++n > RESV_USE_MAX)
			r = error_set(err, ESLURM_RESERVATION_INVALID, !v ? "reservation \"%s\" does not exist" : "reservation \"%s\" is not for jobs", word);
		else if (!resv_job_allowed(c, v, j, d))
			r = error_set(err, ESLURM_RESERVATION_ACCESS, "job and user may not use reservation \"%s\"", word);
	}
	free(list);
	return r;
}

/* Where a job that names no partition goes: the partition of the first reservation it names. */
struct core_part *resv_partition(const struct core *c, const char *list)
{
	char *first = list && list[0] ? xstrndup(list, strcspn(list, ",")) : NULL;
	const struct resv *r = first ? resv_find(c, first) : NULL;
	free(first);
	return r && r->rec->partition ? part_find(c, r->rec->partition) : NULL;
}

/* Could the job run in one of those it names, were that empty? */
int resv_possible(struct core *c, struct core_job *j, struct error *err)
{
	struct resv *use[RESV_USE_MAX + 1];
	struct shape *s = j->shape;
	uint32_t n = resv_choices(c, s, use);
	for (uint32_t i = 0; i < n; i++) {
		if (!use[i] || use[i]->flags & (RESVF_FLEX | RESVF_ANY_NODES) || use[i]->flags & RESVF_REPLACE)
			return 0;
		struct when w = { .j = j, .in = use[i], .start_ms = (uint64_t)resv_start(c, use[i]) * 1000, .end_ms = (uint64_t)use[i]->end * 1000, .empty = true };
		for (uint32_t p = 0; p < s->part_n; p++) {
			struct fit *f;
			if (!s->able[p])
				continue;
			struct bitset *b = bitset_copy(s->able[p]);
			bitset_and(b, use[i]->nodes);
			uint32_t k = place_choose(c, s, b, &w, &f);
			bitset_destroy(b);
			if (k) {
				free(f);
				return 0;
			}
		}
	}
	return error_set(err, ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE, "reservation \"%s\" does not hold what the job asks for", s->resv_key);
}

uint32_t resv_wait(struct core *c, struct core_job *j)
{
	struct resv *use[RESV_USE_MAX + 1];
	if (!j->shape->resv_key)
		return REASON_NONE;
	uint32_t n = resv_choices(c, j->shape, use);
	for (uint32_t i = 0; i < n; i++)
		if (!use[i] || resv_open(c, use[i]))
			return REASON_NONE;
	return REASON_RESERVATION;
}

/* Called for a head that found no room: is it that too few nodes are left to it by reservations? 1: reserved for other jobs, 2: for maintenance. */
bool resv_keeps_away(const struct core *c, struct shape *s, struct core_job *j)
{
	struct resv *use[RESV_USE_MAX + 1];
	struct when w = { .j = j };
	uint32_t free_nodes = 0, kept = 0;
	bool maint = false;
	s->resv_shown = 0;
	if (!c->resv_n)
		return false;
	w.in = resv_choices((struct core *)c, s, use) ? use[0] : NULL;
	for (uint32_t p = 0; p < s->part_n; p++) {
		if (!s->able[p])
			continue;
		bitset_for(s->able[p], i) {
			const struct core_node *n = c->node[i];
			struct avail a;
			if (!bitset_has(c->up, i) || (s->required && !bitset_has(s->required, i)))
				continue;
			avail_full(n, &a);
			resv_less(c, n, &w, &a);
			if (fit_tasks(c, s, n, &a)) {
				free_nodes++;
				continue;
			}
			kept++;
			for (uint32_t k = 0; k < n->resv_n; k++)
				maint = maint || n->resv[k].r->flags & RESVF_MAINT;
		}
	}
	if (!kept || free_nodes >= (s->required ? bitset_count(s->required) : s->min_nodes))
		return false;
	s->resv_shown = maint ? 2 : 1;
	return true;
}

uint64_t resv_kill_ms(const struct core *c, const struct core_job *j)
{
	uint32_t over = c->params.resv_over_run_min;
	return !j->resv_end || over == UINT32_MAX ? UINT64_MAX : (j->resv_end + over * 60ull) * 1000;
}
