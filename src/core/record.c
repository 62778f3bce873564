/* record.c - a job as a JobRecord: encoded once when it changed, restored once at start-up
 * Ended jobs drop their allocation; what is shown of it stays as text in job_extra. */
#include <stdio.h>
#include <stdlib.h>

#include "core/reserve.h"
#include "model/arrayspec.h"
#include "model/hostlist.h"
#include "model/idset.h"

#define DESC_FIELD 100 /* JobRecord.desc */

/* Unique in the cluster, made from what never changes: submit time and id. Letters of Crockford's base 32. */
static void sluid_make(const struct core_job *j, char buf[16])
{
	static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	uint64_t v = (uint64_t)j->submit << 32 | j->id;
	buf[0] = 's';
	for (int i = 13; i >= 1; i--, v >>= 5)
		buf[i] = digit[v & 31];
	buf[14] = 0;
}

char *job_nodes_text(const struct core *c, const struct core_job *j)
{
	struct hostlist hl = HOSTLIST_INIT;
	if (!j->alloc)
		return j->x ? xstrdup_null(j->x->nodes) : NULL;
	if (j->alloc->n == 1)
		return xstrdup(c->node[j->alloc->on[0].node]->name);
	for (uint32_t i = 0; i < j->alloc->n; i++)
		hostlist_push(&hl, c->node[j->alloc->on[i].node]->name);
	char *s = hostlist_compact(&hl);
	hostlist_fini(&hl);
	return s;
}

/* Shards of several GPUs are one entry of the message: are those of g the first that the job has? */
static bool shards_first(const struct core_node *n, const uint64_t *count, uint32_t g)
{
	for (uint32_t i = 0; i < g; i++)
		if (n->gres[i].shard && n->gres[i].name == n->gres[g].name && count[i])
			return false;
	return true;
}

static void shards_message(const struct core_node *n, const struct node_gres *e, const uint64_t *count, Pb__GresAlloc *m, struct arena *a)
{
	struct bitset *gpus = bitset_create(4096);
	m->type = NULL;
	m->count = 0;
	for (uint32_t g = 0; g < n->gres_n; g++)
		if (n->gres[g].shard && n->gres[g].name == e->name && count[g]) {
			m->count += count[g];
			bitset_set(gpus, n->gres[g].gpu);
		}
	char *index = idset_format(gpus), *shares = shards_text(n, e, false, count);
	m->index = arena_strdup(a, index);
	m->shares = arena_strdup(a, shares);
	free(index);
	free(shares);
	bitset_destroy(gpus);
}

static size_t gres_messages(const struct core *c, const struct core_node *n, const uint64_t *words, Pb__GresAlloc **ret, struct arena *a)
{
	const uint64_t *dev = words + n->cpu_words, *count = dev + n->dev_words;
	size_t k = 0;
	for (uint32_t g = 0; g < n->gres_n; g++) {
		const struct node_gres *e = &n->gres[g];
		if (!count[g] || (e->shard && !shards_first(n, count, g)))
			continue;
		Pb__GresAlloc *m = arena_alloc(a, sizeof *m);
		pb__gres_alloc__init(m);
		m->name = arena_strdup(a, atom_text(c, e->name));
		m->type = e->type ? arena_strdup(a, atom_text(c, e->type)) : NULL;
		m->count = count[g];
		if (e->by_device && !e->no_index) {
			uint64_t *bits = arena_alloc(a, ((e->first_index + e->count) / 64 + 1) * sizeof *bits);
			for (uint32_t i = 0; i < e->count; i++)
				if (dev[(e->bit0 + i) / 64] >> ((e->bit0 + i) % 64) & 1)
					bits[(e->first_index + i) / 64] |= 1ULL << ((e->first_index + i) % 64);
			char *t = bits_text(bits, e->first_index + e->count);
			m->index = arena_strdup(a, t);
			free(t);
		}
		if (e->shard)
			shards_message(n, e, count, m, a);
		ret[k++] = m;
	}
	return k;
}

size_t record_gres(const struct core *c, const struct core_node *n, const uint64_t *words, Pb__GresAlloc ***ret, struct arena *a)
{
	*ret = arena_alloc(a, GRES_MAX * sizeof **ret);
	return gres_messages(c, n, words, *ret, a);
}

static bool same_holding(const struct core *c, const struct alloc *a, uint32_t x, uint32_t y)
{
	const struct core_node *n = c->node[a->on[x].node], *m = c->node[a->on[y].node];
	uint32_t words = n->cpu_words + n->dev_words + n->gres_n;
	return n->cpu_words == m->cpu_words && n->dev_words == m->dev_words && n->gres_n == m->gres_n && n->cpus == m->cpus &&
		a->on[x].cpus == a->on[y].cpus && a->on[x].mem == a->on[y].mem && a->on[x].tasks == a->on[y].tasks &&
		!memcmp(a->words + a->on[x].bits, a->words + a->on[y].bits, words * sizeof(uint64_t)) &&
		(!n->gres_n || !memcmp(n->gres, m->gres, n->gres_n * sizeof *n->gres) || n == m);
}

/* Neighbours that hold the same share one NodeAlloc. */
static Pb__Alloc *alloc_message(const struct core *c, const struct core_job *j, struct arena *a)
{
	const struct alloc *al = j->alloc;
	Pb__Alloc *m = arena_alloc(a, sizeof *m);
	char *t = job_nodes_text(c, j);
	pb__alloc__init(m);
	m->nodes = arena_strdup(a, t ? t : "");
	free(t);
	m->has_num_nodes = m->has_num_cpus = true;
	m->has_share = m->share = al && al->share;
	m->has_over = m->over = al && al->over;
	m->num_nodes = al ? al->n : j->x->nodes_n;
	m->num_cpus = al ? al->cpus : j->x->cpus_n;
	if (!al) {                /* ended, and read from the store: its nodes are a text */
		t = hostlist_first(m->nodes);
		m->batch_host = t ? arena_strdup(a, t) : NULL;
		free(t);
		return m;
	}
	m->batch_host = arena_strdup(a, c->node[al->on[0].node]->name);
	m->part = arena_alloc(a, al->n * sizeof *m->part);
	for (uint32_t i = 0; i < al->n;) {
		struct hostlist hl = HOSTLIST_INIT;
		Pb__NodeAlloc *p = arena_alloc(a, sizeof *p);
		const struct core_node *n = c->node[al->on[i].node];
		uint32_t k = i;
		while (k < al->n && (k == i || same_holding(c, al, i, k)))
			k++;
		for (uint32_t x = i; k > i + 1 && x < k; x++)
			hostlist_push(&hl, c->node[al->on[x].node]->name);
		pb__node_alloc__init(p);
		t = k == i + 1 ? NULL : hostlist_compact(&hl);
		p->nodes = arena_strdup(a, t ? t : n->name);
		free(t);
		hostlist_fini(&hl);
		p->cpus = al->on[i].cpus;
		t = bits_text(al->words + al->on[i].bits, n->cpus);
		p->cpu_ids = arena_strdup(a, t);
		free(t);
		p->mem = al->on[i].mem;
		p->has_tasks = true;
		p->tasks = al->on[i].tasks;
		p->n_gres = record_gres(c, n, al->words + al->on[i].bits, &p->gres, a);
		m->part[m->n_part++] = p;
		i = k;
	}
	return m;
}

#define SET(f, v) do { m->has_##f = true; m->f = (v); } while (0)

static void record_times(Pb__JobRecord *m, const struct core_job *j)
{
	SET(submit_time, j->submit);
	if (j->eligible)
		SET(eligible_time, j->eligible);
	if (j->accrue)
		SET(accrue_time, j->accrue);
	if (j->paused_at)
		SET(paused_at, j->paused_at);
	if (j->site)
		SET(site_factor, j->site);
	if (j->start)
		SET(start_time, j->start);
	if (j->end)
		SET(end_time, j->end);
	if (j->suspend)
		SET(suspend_time, j->suspend);
	if (j->susp_total)
		SET(pre_suspend_sec, j->susp_total);
}

static void record_extra(const struct core *c, Pb__JobRecord *m, const struct core_job *j, struct arena *a)
{
	const struct job_extra *x = j->x;
	if (!x)
		return;
	m->why = x->why;
	m->preempted_by = x->preempted_by;
	m->causes = x->causes;
	if ((x->lic_n || x->lic_was) && j->state != PB__JOB_STATE__PENDING) {
		char *t = license_text(c, j);
		m->licenses_alloc = arena_strdup(a, t);
		free(t);
	}
	m->fail_node = x->fail_node;
	m->system_comment = x->comment_sys;
	if (x->end_reason)
		SET(end_reason, x->end_reason);
	if (x->derived_exit)
		SET(derived_exit, x->derived_exit);
	if (x->derived_status)
		SET(derived_status, x->derived_status);
	if (x->resv && j->state != PB__JOB_STATE__PENDING)
		m->resv_name = x->resv;
	if (x->dep_n) { /* also of one that was cancelled: requeued, it waits again */
		char *t = depend_left(c, j);
		m->dependency_left = arena_strdup(a, t);
		free(t);
	}
	if (x->has_idem) {
		m->has_idem_key = m->has_idem_hash = true;
		m->idem_key = (ProtobufCBinaryData){ 16, (uint8_t *)x->idem_key };
		m->idem_hash = (ProtobufCBinaryData){ 32, (uint8_t *)x->idem_hash };
	}
	if (!j->alloc)
		m->tres_alloc = x->tres_alloc;
}

static void record_array(Pb__JobRecord *m, const struct core_job *j, struct arena *a)
{
	if (!j->array)
		return;
	SET(array_job_id, j->array->id);
	if (j->task != UINT32_MAX)
		SET(array_task_id, j->task);
	if (j->tasks) {
		char *t = idset_format(j->tasks);
		m->array_tasks = arena_strdup(a, t);
		free(t);
		SET(pending_tasks, bitset_count(j->tasks));
	}
	if (j->array->max_running)
		SET(array_max_running, j->array->max_running);
}

static void record_het(Pb__JobRecord *m, const struct core_job *j, struct arena *a)
{
	if (!j->het)
		return;
	char *ids = het_ids(j->het);
	SET(het_job_id, j->het->id);
	SET(het_offset, j->het_at);
	m->het_ids = arena_strdup(a, ids);
	free(ids);
}

static void record_fill(const struct core *c, Pb__JobRecord *m, struct core_job *j, char *sluid, struct arena *a)
{
	const struct shape *s = j->shape;
	m->job_id = j->id;
	m->uid = j->uid;
	m->gid = j->gid;
	m->user = (char *)atom_text(c, j->user);
	m->group = (char *)atom_text(c, j->group);
	m->state = (Pb__JobState)j->state;
	if (j->flags)
		SET(state_flags, j->flags);
	record_array(m, j, a);
	record_het(m, j, a);
	record_times(m, j);
	if (j->has_exit)
		SET(exit_status, j->exit_status);
	if (j->restarts)
		SET(restarts, j->restarts);
	if (j->part != UINT32_MAX && j->part < c->part_n)
		m->partition = c->part[j->part]->rec->name;
	SET(time_limit_min, j->time_min);
	bool held = j->alloc || (j->x && j->x->nodes);
	SET(num_nodes, j->alloc ? j->alloc->n : held ? j->x->nodes_n : s->min_nodes);
	SET(num_tasks, s->tasks);
	uint32_t cpus = s->tasks * s->cpus_per_task;
	SET(num_cpus, j->alloc ? inside_charged(c, j) : held ? j->x->cpus_n : cpus < s->min_nodes ? s->min_nodes : cpus);
	m->tres_req = s->tres_req;
	if (held)
		m->alloc = alloc_message(c, j, a);
	if (j->epilog_ctld)
		SET(epilog_ctld, true);
	if (j->cancelled_by)
		SET(cancel_uid, j->cancel_uid);
	if (j->step_reserved)
		SET(next_step_id, j->step_reserved);
	if (j->resv_id && j->state != PB__JOB_STATE__PENDING) {
		SET(resv_id, j->resv_id);
		if (j->resv_end)
			SET(resv_end, j->resv_end);
	}
	if (j->preempt_at && j->state != PB__JOB_STATE__PENDING) {
		SET(preempt_time, j->preempt_at);
		SET(preempt_end, j->preempt_end);
	}
	bool stays_held = j->hold && !job_state_is_final(j->state);
	if (stays_held) {
		SET(hold_reason, j->hold);
		SET(admin_prio, 0);
		SET(held_by_admin, j->hold == REASON_HELD_ADMIN);
	} else if (j->prio_set)
		SET(admin_prio, j->prio);
	if (j->yields)
		SET(yields, true);
	if (j->unlaunched)
		SET(unlaunched, true);
	if (j->warned)
		SET(warned, true);
	if (j->blocked)
		SET(blocked_reason, j->blocked);
	record_extra(c, m, j, a);
	if (stays_held && j->state == PB__JOB_STATE__PENDING && !m->has_end_reason)
		SET(end_reason, j->hold);
	sluid_make(j, sluid);
	m->sluid = sluid;
}

const char *shape_tres(struct core *c, struct shape *s)
{
	if (!s->tres_req)
		s->tres_req = license_tres(c, tres_of_request(c, s), s->lic.w, s->lic.n);
	return s->tres_req;
}

char *record_sluid(const struct core_job *j)
{
	char buf[16];
	sluid_make(j, buf);
	return xstrdup(buf);
}

void record_encode(const struct core *c, struct core_job *j)
{
	Pb__JobRecord m;
	char sluid[16];
	uint8_t small[4096], *buf = small;
	struct arena *a = effects_arena(c->scratch_fx);
	pb__job_record__init(&m);
	(void)shape_tres((struct core *)c, j->shape);
	record_fill(c, &m, j, sluid, a);
	bool known = j->x && j->x->tres_alloc; /* it has just ended (drop_alloc) */
	char *tres = j->alloc && !known ? license_job_tres((struct core *)c, j, tres_of_alloc(c, j)) : NULL;
	if (tres || known)
		m.tres_alloc = tres ? tres : j->x->tres_alloc;
	size_t len = pb__job_record__get_packed_size(&m);
	if (len > sizeof small)
		buf = xmalloc(len);
	pb__job_record__pack(&m, buf);
	job_set_state_bytes(j, buf, (uint32_t)len);
	if (buf != small)
		free(buf);
	free(tres);
	effects_reset(c->scratch_fx);
}

Pb__JobRecord *record_message(struct core *c, struct core_job *j, struct arena *a)
{
	if (j->blob_stale)
		record_encode(c, j);
	return (Pb__JobRecord *)arena_message(a, &pb__job_record__descriptor, j->blob, j->blob_len);
}

Pb__AllocInfo *record_alloc_info(struct core *c, struct core_job *j, struct arena *a)
{
	Pb__AllocInfo *m = arena_alloc(a, sizeof *m);
	pb__alloc_info__init(m);
	m->job = record_message(c, j, a);
	m->het = arena_alloc(a, HET_MAX * sizeof *m->het);
	for (uint32_t i = 1; het_leads(j) && i < j->het->n; i++) {
		struct core_job *k = het_job(c, j->het, i);
		if (k && k->alloc)
			m->het[m->n_het++] = record_alloc_info(c, k, a);
	}
	m->n_addr = j->alloc ? j->alloc->n : 0;
	m->addr = arena_alloc(a, (m->n_addr + 1) * sizeof *m->addr);
	for (size_t i = 0; i < m->n_addr; i++) {
		const struct core_node *n = c->node[j->alloc->on[i].node];
		m->addr[i] = arena_alloc(a, sizeof **m->addr);
		pb__node_addr__init(m->addr[i]);
		m->addr[i]->name = n->name;
		m->addr[i]->addr = n->addr;
		m->addr[i]->port = n->port;
	}
	return m;
}

/* --- restore --------------------------------------------------------------------------------- */

static int restore_gres(const struct core *c, const struct core_node *n, const Pb__NodeAlloc *p, uint64_t *w)
{
	uint64_t *dev = w + n->cpu_words, *count = dev + n->dev_words;
	for (size_t i = 0; i < p->n_gres; i++) {
		const Pb__GresAlloc *m = p->gres[i];
		uint32_t name = atom_find(c, m->name), type = atom_find(c, m->type), g = 0;
		if (m->shares && !shards_read(n, name, m->shares, count))
			return -ESLURM_INVALID_GRES;
		if (m->shares)
			continue;
		while (g < n->gres_n && (n->gres[g].name != name || n->gres[g].type != type))
			g++;
		if (g == n->gres_n)
			return -ESLURM_INVALID_GRES;
		const struct node_gres *e = &n->gres[g];
		count[g] = m->count;
		struct bitset *b = NULL;
		if (m->index && m->index[0] && idset_parse(m->index, e->first_index + e->count, &b, NULL) < 0)
			return -ESLURM_INVALID_GRES;
		uint32_t left = e->by_device ? (uint32_t)m->count : 0;
		for (uint32_t d = 0; d < e->count && left; d++)
			if (b ? bitset_has(b, e->first_index + d) : !((n->used + n->cpu_words)[(e->bit0 + d) / 64] >> ((e->bit0 + d) % 64) & 1)) {
				dev[(e->bit0 + d) / 64] |= 1ULL << ((e->bit0 + d) % 64);
				left--;
			}
		bitset_destroy(b);
		if (left)
			return -ESLURM_INVALID_GRES;
	}
	return 0;
}

/* piled: its CPUs may be held by others, too: one of them is suspended. */
static int restore_part(struct core *c, struct alloc *a, const Pb__NodeAlloc *p, bool live, bool share, bool piled)
{
	struct bitset *nodes = NULL, *cpus = NULL;
	if (nodes_bitset(c, p->nodes, &nodes, NULL) < 0)
		return -ESLURM_INVALID_NODE_NAME;
	int r = 0;
	bitset_for(nodes, i) {
		const struct core_node *n = c->node[i];
		struct alloc_on *o = &a->on[a->n];
		*o = (struct alloc_on){ .node = i, .cpus = p->cpus, .mem = p->mem, .tasks = p->tasks, .bits = a->words_n };
		uint32_t words = n->cpu_words + n->dev_words + n->gres_n;
		a->words = xrealloc(a->words, (a->words_n + words + 1) * sizeof *a->words);
		uint64_t *w = memset(a->words + a->words_n, 0, words * sizeof *w);
		if (!p->cpu_ids || idset_parse(p->cpu_ids, n->cpus, &cpus, NULL) < 0) {
			r = -EINVAL;
			break;
		}
		memcpy(w, cpus->bits, n->cpu_words * sizeof *w);
		bitset_destroy(cpus);
		if ((r = restore_gres(c, n, p, w)) < 0)
			break;
		for (uint32_t k = 0; live && k < n->cpu_words + n->dev_words && !r; k++)
			r = (k >= n->cpu_words || !(share || piled)) && w[k] & n->used[k] ? -EEXIST : 0;
		for (uint32_t k = 0; live && share && !piled && !n->over && k < n->cpus && !r; k++)
			r = bit_of(w, k) && bit_of(n->used, k) && !(n->shares && n->shares[k]) ? -EEXIST : 0;
		if (!r && live && shards_clash(n, w))
			r = -EEXIST;
		if (r < 0)
			break;
		a->words_n += words;
		a->cpus += p->cpus;
		a->n++;
	}
	bitset_destroy(nodes);
	return r;
}

/* A running job holds its nodes again; if they are gone or shaped otherwise it cannot go on: negative. One that was completing
 * comes after all running ones (restore_cleaning): nodes that it had left may have been given to others since its record was written. */
static int restore_alloc(struct core *c, struct core_job *j, const Pb__Alloc *m, bool live)
{
	bool share = m->has_share && m->share;
	struct alloc *a = xcalloc(1, sizeof *a + (m->num_nodes + 1) * sizeof a->on[0]);
	int r = m->n_part ? 0 : -EINVAL;
	for (size_t i = 0; r >= 0 && i < m->n_part; i++) {
		long n = hostlist_count(m->part[i]->nodes, NULL);
		r = n < 0 || a->n + (unsigned long)n > m->num_nodes ? -EINVAL : restore_part(c, a, m->part[i], live, share, m->over || j->yields);
	}
	if (r < 0) {
		free(a->words);
		free(a);
		return r;
	}
	a->exclusive = j->shape->exclusive;
	a->own_spec = j->shape->own_spec;
	a->mcs = j->shape->mcs;
	a->topo_only = topology_alone(j->shape, j->part < c->part_n ? c->part[j->part] : NULL);
	a->user_only = j->shape->user_only || (j->part < c->part_n && c->part[j->part]->user_only);
	a->share = share;
	a->over = m->over;
	j->alloc = a;
	for (uint32_t i = 0; live && i < a->n; i++)
		node_hold(c, j, i);
	return 0;
}

/* Have others its CPUs, or the node for themselves? One that is suspended so that others have its CPUs stands in nobody's way, nor they in its. */
static bool taken_by_others(const struct core_node *n, const struct core_job *j, const uint64_t *w)
{
	bool piled = n->over || j->alloc->over, beside = j->alloc->over || j->alloc->share || (j->yields && n->over);
	for (size_t i = 0; i < n->held_n; i++) {
		const struct core_job *h = n->held[i].job;
		const uint64_t *x = h->alloc->words + h->alloc->on[n->held[i].at].bits;
		if (piled && (gang_stands_by(h) || j->yields))
			continue;
		if (h->alloc->exclusive || j->alloc->exclusive)
			return true;
		for (uint32_t k = 0; k < n->cpu_words && !beside; k++)
			if (w[k] & x[k])
				return true;
	}
	return false;
}

void restore_cleaning(struct core *c, struct core_job *j)
{
	for (uint32_t i = 0; i < j->alloc->n; i++) {
		const struct core_node *n = c->node[j->alloc->on[i].node];
		const uint64_t *w = j->alloc->words + j->alloc->on[i].bits;
		uint32_t words = n->cpu_words + n->dev_words;
		if (node_has_released(n, j))
			continue;
		bool taken = taken_by_others(n, j, w) || n->mem_used + j->alloc->on[i].mem > n->mem;
		for (uint32_t k = n->cpu_words; k < words; k++)
			taken = taken || n->used[k] & w[k];
		for (uint32_t k = 0; j->alloc->share && k < n->cpus; k++)
			taken = taken || (bit_of(w, k) && bit_of(n->used, k) && !(n->shares && n->shares[k]));
		for (uint32_t g = 0; g < n->gres_n; g++)
			taken = taken || n->gres[g].used + w[words + g] > n->gres[g].count;
		taken = taken || shards_clash(n, w);
		if (taken)
			continue;
		node_hold(c, j, i);
		j->alloc->on[i].state = ON_CLEANING;
		c->node[j->alloc->on[i].node]->completing++;
	}
}

static void restore_plain(struct core *c, struct core_job *j, const Pb__JobRecord *m)
{
	j->uid = m->uid;
	j->gid = m->gid;
	j->user = atom_get(c, m->user ? m->user : "");
	j->group = atom_get(c, m->group ? m->group : "");
	j->state = (uint8_t)m->state;
	j->flags = m->state_flags;
	j->epilog_ctld = m->epilog_ctld;
	j->submit = (uint32_t)m->submit_time;
	j->eligible = (uint32_t)m->eligible_time;
	j->paused_at = (uint32_t)m->paused_at;
	j->site = m->site_factor;
	j->accrue = (uint32_t)m->accrue_time;
	j->start = (uint32_t)m->start_time;
	j->end = (uint32_t)m->end_time;
	j->suspend = (uint32_t)m->suspend_time;
	j->susp_total = (uint32_t)m->pre_suspend_sec;
	j->has_exit = m->has_exit_status;
	j->exit_status = m->exit_status;
	j->restarts = m->restarts;
	j->next_step = j->step_reserved = m->next_step_id;
	j->blocked = (uint8_t)m->blocked_reason;
	j->warned = m->warned;
	j->cancelled_by = m->has_cancel_uid;
	j->cancel_uid = m->cancel_uid;
	if (m->has_admin_prio && !m->admin_prio)
		j->hold = (uint8_t)(m->has_hold_reason ? m->hold_reason : m->has_end_reason ? m->end_reason : m->held_by_admin ? REASON_HELD_ADMIN : REASON_HELD_USER);
	else if (m->has_admin_prio) {
		j->prio_set = true;
		j->prio = m->admin_prio;
		j->prio_at = j->submit;
	}
	struct core_part *p = part_find(c, m->partition);
	j->part = p ? p->index : UINT32_MAX;
	if (m->why)
		xstr_set(&job_x(j)->why, m->why);
	if (m->preempted_by)
		xstr_set(&job_x(j)->preempted_by, m->preempted_by);
	if (m->causes)
		xstr_set(&job_x(j)->causes, m->causes);
	if (m->licenses_alloc)
		xstr_set(&job_x(j)->lic_was, m->licenses_alloc);
	if (m->fail_node)
		xstr_set(&job_x(j)->fail_node, m->fail_node);
	if (m->dependency_left && m->dependency_left[0])
		xstr_set(&job_x(j)->dep_left, m->dependency_left);
	if (m->system_comment)
		xstr_set(&job_x(j)->comment_sys, m->system_comment);
	j->yields = m->yields && (j->state == PB__JOB_STATE__SUSPENDED || j->flags & JOBF_COMPLETING);
	j->unlaunched = m->unlaunched;
	j->preempt_at = (uint32_t)m->preempt_time;
	j->preempt_end = (uint32_t)m->preempt_end;
	j->resv_id = m->resv_id;
	j->resv_end = m->resv_end;
	if (m->resv_name)
		xstr_set(&job_x(j)->resv, m->resv_name);
	if (m->has_end_reason)
		job_x(j)->end_reason = m->end_reason;
	if (m->has_derived_exit)
		job_x(j)->derived_exit = m->derived_exit;
	if (m->has_derived_status)
		job_x(j)->derived_status = m->derived_status;
}

static void restore_request(struct core *c, struct core_job *j, const Pb__JobRecord *m, struct error *err)
{
	const Pb__JobDesc *d = m->desc;
	j->batch = d->batch;
	j->interactive = d->interactive;
	j->requeue = d->has_requeue ? d->requeue : c->params.job_requeue;
	j->kill_invalid_dep = d->has_kill_on_invalid_dep ? d->kill_on_invalid_dep : c->params.kill_invalid_depend;
	j->nice = d->nice;
	j->begin = sec_last(d->begin_time);
	j->deadline = sec_deadline(d->deadline);
	recur_read(c, j, d, m->restarts ? now_sec(c) : sec_last(m->submit_time));
	warn_parse(j, d->signal);
	mail_parse(j, d->has_het_job_id && j->id != d->het_job_id ? NULL : d->mail_type);
	if (!c->params.priority_multifactor && !j->prio_set)
		j->prio = 4294901760u - j->id;
	if (job_reshape(c, j, d, err) < 0) { /* the configuration no longer knows what it asks for */
		Pb__JobDesc plain;
		pb__job_desc__init(&plain);
		plain.partition = d->partition;
		(void)shape_make(c, &plain, j->uid, UINT32_MAX, &j->shape, NULL);
		j->limit_reason = REASON_BAD_CONSTRAINTS;
	}
	if (m->has_time_limit_min)
		j->time_min = m->time_limit_min;
}

static void restore_finish(struct core *c, struct core_job *j, const Pb__JobRecord *m)
{
	struct job_extra *x = job_x(j);
	xstr_set(&x->nodes, m->alloc ? m->alloc->nodes : NULL);
	xstr_set(&x->tres_alloc, m->tres_alloc);
	x->nodes_n = m->alloc ? m->alloc->num_nodes : 0;
	x->cpus_n = m->alloc ? m->alloc->num_cpus : 0;
}

static uint64_t varint(const uint8_t *data, uint32_t len, uint32_t *at)
{
	uint64_t v = 0;
	for (uint32_t shift = 0; *at < len && shift < 64; shift += 7) {
		v |= (uint64_t)(data[*at] & 0x7f) << shift;
		if (!(data[(*at)++] & 0x80))
			break;
	}
	return v;
}

/* Where the packed request is in a record that could be unpacked: the field with the largest number comes last. */
static uint32_t desc_in(const uint8_t *data, uint32_t len, uint32_t *ret_len)
{
	uint32_t at = 0;
	while (at < len) {
		uint64_t tag = varint(data, len, &at), n = (tag & 7) == 2 || (tag & 7) == 0 ? varint(data, len, &at) : 0;
		if (tag == (DESC_FIELD << 3 | 2) && n <= len - at) {
			*ret_len = (uint32_t)n;
			return at;
		}
		at += (tag & 7) == 2 ? (uint32_t)n : (tag & 7) == 1 ? 8 : (tag & 7) == 5 ? 4 : 0;
	}
	*ret_len = 0;
	return 0;
}

void record_restore(struct core *c, const struct core_event *ev)
{
	struct error err = { 0 };
	const Pb__JobRecord *m = ev->restore.job;
	if (!m)
		m = (Pb__JobRecord *)arena_message(fx_arena(c), &pb__job_record__descriptor, ev->restore.data, ev->restore.len);
	if (!m || !m->desc || !m->job_id || job_find(c, m->job_id)) {
		c->unread++;
		fx_log(c, LOG_L_ERROR, "a stored job record of %zu bytes cannot be read or is there twice; it is left alone", ev->restore.len);
		return;
	}
	struct core_job *j = job_new(c, m->job_id);
	restore_plain(c, j, m);
	uint32_t desc_len, desc_at = desc_in(ev->restore.data, (uint32_t)ev->restore.len, &desc_len);
	job_set_desc_bytes(j, ev->restore.data + desc_at, desc_len);
	restore_request(c, j, m, &err);
	array_restore(c, j, m);
	if (m->has_het_job_id && m->het_offset < HET_MAX)
		het_enter(c, j, m->het_job_id, m->het_offset);
	if (m->has_idem_key && m->idem_key.len == 16 && m->idem_hash.len == 32)
		idem_keep(c, j, m->idem_key.data, m->idem_hash.data, (uint64_t)j->submit * 1000);
	bool active = j->state == PB__JOB_STATE__RUNNING || j->state == PB__JOB_STATE__SUSPENDED || (j->flags & JOBF_COMPLETING);
	bool live = j->state == PB__JOB_STATE__RUNNING || j->state == PB__JOB_STATE__SUSPENDED;
	if (active && (!m->alloc || restore_alloc(c, j, m->alloc, live) < 0)) {
		fx_log(c, LOG_L_ERROR, "job %u: its nodes %s are not configured as they were; it ends", j->id, m->alloc ? m->alloc->nodes : "(unknown)");
		j->flags &= ~(uint32_t)(JOBF_COMPLETING | JOBF_CONFIGURING);
		j->epilog_ctld = j->yields = j->unlaunched = false;
		if (live) {
			j->state = PB__JOB_STATE__NODE_FAIL;
			j->end = now_sec(c);
			j->lost_place = j->batch && j->requeue;
		}
		c->restore_changed = true;
	}
	j->requeue_pending = j->state == PB__JOB_STATE__PENDING && (j->flags & JOBF_COMPLETING);
	if (job_state_is_final(j->state) && !j->alloc)
		restore_finish(c, j, m);
	if (m->job_id >= c->next_id && m->job_id < 67000000)
		c->next_id = m->job_id + 1;
}

/* Jobs that were completing, those that started last first: what an earlier one had may have been given back, and to a later one, since its record was written. */
static void restore_all_cleaning(struct core *c)
{
	struct core_job **job = NULL, *j;
	size_t n = 0, cap = 0;
	for (uint64_t cur = 0; (j = (struct core_job *)core_job_next(c, &cur));)
		if ((j->flags & JOBF_COMPLETING) && j->alloc) {
			job = xgrow(job, &cap, n + 1, sizeof *job);
			size_t at = n++;
			for (; at && job[at - 1]->start <= j->start; at--)   /* few, and mostly in order */
				job[at] = job[at - 1];
			job[at] = j;
		}
	for (size_t i = 0; i < n; i++)
		restore_cleaning(c, job[i]);
	free(job);
}

void record_restored(struct core *c, const struct core_event *ev)
{
	resv_restored(c);
	if (ev->restored.next_job_id > c->next_id)
		c->next_id = ev->restored.next_job_id;
	c->id_persisted = c->next_id > ev->restored.next_job_id ? 0 : ev->restored.next_job_id;
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			break;
		if (j->state == PB__JOB_STATE__RUNNING || j->state == PB__JOB_STATE__SUSPENDED)
			life_restored(c, j);
	}
	restore_all_cleaning(c);
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			break;
		if (j->state != PB__JOB_STATE__RUNNING && j->state != PB__JOB_STATE__SUSPENDED)
			life_restored(c, j);
	}
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			break;
		if (j->lost_place) {
			j->lost_place = false;
			job_requeue(c, j, false, 0, 0);
		}
	}
	het_restored(c);
	c->gang_wanted = true;
	sched_all(c);
}
