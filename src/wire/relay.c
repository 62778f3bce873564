/* relay.c - see relay.h
 *
 * Nothing here waits: a relay is a few objects on the loop until its answers are in or its time is over. Bounds: RELAYS_MAX relays at once and LETTERS_MAX bytes of
 * letters, beyond which the sender is refused and calls the nodes himself; ANSWERS_MAX bytes of answers, beyond which a node's is left out and the sender asks that node.
 * A share names each node once, all of them named in the letter, so that a letter makes no more messages than it has nodes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/alloc.h"
#include "base/log.h"
#include "model/hostlist.h"
#include "wire/auth.h"
#include "wire/relay.h"

#define RELAYS_MAX 16384             /* emulated nodes share a daemon */
#define LETTERS_MAX (64u << 20)
#define ANSWERS_MAX (64u << 20)

/* --- sending ---------------------------------------------------------------------------------- */

struct run {
	struct fan *fan;
	const struct fan_letter *letter;
	const char *const *name;
	fan_link_fn link;
	fan_answer_fn answer;
	fan_end_fn end;
	void *arg;
	/* one that we began */
	struct fan_letter sealed;
	struct fan_order order;
	uv_work_t work;
	int rc;
	struct error err;
};
struct sent { struct run *run; size_t branch; };

static void sent_answered(int code, const ProtobufCMessage *rsp, const char *detail, void *arg);

static void run_push(struct run *r)
{
	struct fan_send s;
	while (fan_next(r->fan, &s)) {
		const char *node = r->name[s.node];
		struct wire_link *l = r->link(node, r->arg);
		if (!l) {
			fan_failed(r->fan, s.branch, -ESLURM_INVALID_NODE_NAME);
			continue;
		}
		struct sent *call = xmalloc(sizeof *call);
		*call = (struct sent){ r, s.branch };
		wire_link_call_shared(l, node, RPC_D_RELAY, r->letter->packed, s.tail, s.tail_len, (int)s.wait_ms, sent_answered, call);
	}
	if (!fan_is_over(r->fan))
		return;
	r->end(r->fan, r->arg);
	fan_destroy(r->fan);
	fan_letter_fini(&r->sealed);
	free(r);
}

static void sent_answered(int code, const ProtobufCMessage *rsp, const char *detail, void *arg)
{
	struct sent s = *(struct sent *)arg;
	free(arg);
	if (code)
		log_debug("message for several nodes: %s", detail ? detail : error_text(code));
	if (code)
		fan_failed(s.run->fan, s.branch, code);
	else
		fan_took(s.run->fan, s.branch, (const Pb__RelayRsp *)rsp);
	run_push(s.run);
}

static struct run *run_make(const char *const *name, fan_link_fn link, fan_answer_fn answer, fan_end_fn end, void *arg)
{
	struct run *r = xcalloc(1, sizeof *r);
	*r = (struct run){ .name = name, .link = link, .answer = answer, .end = end, .arg = arg };
	return r;
}

static void run_begin(struct run *r, const struct fan_letter *l, size_t n)
{
	r->letter = l;
	r->fan = fan_create(l, r->name, n, r->answer, r->arg);
	run_push(r);
}

static void seal_run(uv_work_t *w)
{
	struct run *r = w->data;
	const struct fan_order *o = &r->order;
	r->rc = fan_letter_seal(o->auth, o->rpc, o->req, o->name, o->n, o->width, o->patience_ms, &r->sealed, &r->err);
}

static struct wire_link *no_link(const char *node, void *arg) { return NULL; }

static void seal_done(uv_work_t *w, int status)
{
	struct run *r = w->data;
	(void)status;
	if (r->rc)
		log_error("no message for several nodes can be made: %s", r->err.line);
	if (r->rc)
		r->link = no_link;
	run_begin(r, &r->sealed, r->order.n);
}

void fan_send(const struct fan_order *o, fan_link_fn link, fan_answer_fn answer, fan_end_fn end, void *arg)
{
	struct run *r = run_make(o->name, link, answer, end, arg);
	r->order = *o;
	r->work.data = r;
	if (auth_blocks(o->auth)) {
		(void)uv_queue_work(o->loop, &r->work, seal_run, seal_done);
		return;
	}
	seal_run(&r->work);
	seal_done(&r->work, 0);
}

/* --- letters on the way ----------------------------------------------------------------------- */

struct addressee { const char *name; uint64_t seen_by; UT_hash_handle hh; };
struct letter {
	struct letter *next;
	unsigned refs;
	struct fan_letter sealed;        /* as it came */
	const uint8_t *raw, *token;      /* the parcel and the token in it */
	size_t raw_len, token_len;
	Pb__Parcel *parcel;
	struct wire_identity sender;
	uint8_t id[16];
	struct hostlist nodes;
	struct addressee *addressee, *by_name;
};
static struct letter *letters;
static size_t letters_bytes;

static bool same(const ProtobufCBinaryData *d, const uint8_t *data, size_t len) { return d->len == len && !memcmp(d->data, data, len); }

/* One that is on its way already (its relays are emulated nodes of this daemon, or it was sent again). */
static struct letter *letter_find(const Pb__RelayReq *m)
{
	for (struct letter *l = letters; l; l = l->next)
		if (same(&m->token, l->token, l->token_len) && same(&m->parcel, l->raw, l->raw_len)) {
			l->refs++;
			return l;
		}
	return NULL;
}

/* Takes the parcel, NULL: the names are malformed. */
static struct letter *letter_add(const Pb__RelayReq *m, Pb__Parcel *parcel, const struct wire_identity *sender, const uint8_t id[16])
{
	struct letter *l = xcalloc(1, sizeof *l);
	l->parcel = parcel;
	if (hostlist_add(&l->nodes, parcel->nodes, NULL) < 0) {
		pb__parcel__free_unpacked(parcel, NULL);
		free(l);
		return NULL;
	}
	l->refs = 1;
	l->sender = *sender;
	memcpy(l->id, id, sizeof l->id);
	Pb__RelayLetter packed = PB__RELAY_LETTER__INIT;
	packed.parcel = m->parcel;
	packed.token = m->token;
	l->sealed.packed = wire_shared_pack(&packed.base);
	l->raw_len = m->parcel.len;
	l->token_len = m->token.len;
	l->token = l->sealed.packed->data + l->sealed.packed->len - l->token_len;   /* the last field */
	l->raw = memmem(l->sealed.packed->data, 16 + l->raw_len, m->parcel.data, m->parcel.len);
	l->sealed.patience_ms = parcel->patience_ms < 100 ? 100 : parcel->patience_ms > 300000 ? 300000 : parcel->patience_ms;
	l->sealed.width = parcel->width < 2 ? 2 : parcel->width > FAN_WIDTH_MAX ? FAN_WIDTH_MAX : parcel->width;
	l->addressee = xcalloc(l->nodes.count + 1, sizeof *l->addressee);
	for (size_t i = 0; i < l->nodes.count; i++) {
		struct addressee *a = &l->addressee[i];
		a->name = l->nodes.name[i];
		HASH_ADD_KEYPTR(hh, l->by_name, a->name, strlen(a->name), a);
	}
	letters_bytes += l->raw_len;
	l->next = letters;
	letters = l;
	return l;
}

static void letter_unref(struct letter *l)
{
	if (!l || --l->refs)
		return;
	for (struct letter **at = &letters; *at; at = &(*at)->next)
		if (*at == l) {
			*at = l->next;
			break;
		}
	letters_bytes -= l->raw_len;
	HASH_CLEAR(hh, l->by_name);
	free(l->addressee);
	hostlist_fini(&l->nodes);
	fan_letter_fini(&l->sealed);
	pb__parcel__free_unpacked(l->parcel, NULL);
	free(l);
}

/* --- relays ----------------------------------------------------------------------------------- */

struct way { char *addr; struct wire_link *link; UT_hash_handle hh; };
struct relay {
	const struct relay_place *place;
	char *self;
	uint64_t serial;
	struct wire_req *req;            /* NULL: answered */
	struct letter *letter;
	struct hostlist share;
	struct way *ways;
	bool own_pending, fan_pending;
	Pb__RelayAnswer **answer;
	size_t answers, cap, bytes;
	uint32_t depth, sent;
	uv_timer_t timer;
	uv_work_t work;                  /* munge is being asked */
	Pb__Parcel *parcel;
	struct wire_identity sender;
	uint8_t id[16];
	int rc;
	struct error err;
};
static size_t relays;
static uint64_t last_serial;

static void relay_free(uv_handle_t *h)
{
	struct relay *r = h->data;
	for (size_t i = 0; i < r->answers; i++)
		pb__relay_answer__free_unpacked(r->answer[i], NULL);
	free(r->answer);
	hostlist_fini(&r->share);
	letter_unref(r->letter);
	free(r->self);
	free(r);
	relays--;
}

/* Answers with what there is. Links that are still waited on are let go, which ends the run. */
static void relay_reply(struct relay *r)
{
	Pb__RelayRsp rsp = PB__RELAY_RSP__INIT;
	struct way *w, *next;
	if (r->req) {
		rsp.answer = r->answer;
		rsp.n_answer = r->answers;
		rsp.depth = r->depth + 1;
		rsp.sent = r->sent;
		wire_reply(r->req, &rsp.base);
		r->req = NULL;
	}
	HASH_ITER(hh, r->ways, w, next) {
		HASH_DEL(r->ways, w);
		wire_link_destroy(w->link);
		free(w->addr);
		free(w);
	}
}

/* The last thing that was waited for ends it. */
static void relay_check(struct relay *r)
{
	if (r->own_pending || r->fan_pending || uv_is_closing((uv_handle_t *)&r->timer))
		return;
	relay_reply(r);
	uv_close((uv_handle_t *)&r->timer, relay_free);
}

static void relay_refuse(struct relay *r, int code, const char *detail)
{
	log_info("message for several nodes from %s refused: %s", wire_req_peer(r->req), detail);
	wire_reply_error(r->req, code, detail);
	r->req = NULL;
	uv_close((uv_handle_t *)&r->timer, relay_free);
}

static void on_late(uv_timer_t *t) { relay_reply(t->data); }

static void answer_add(struct relay *r, const Pb__RelayAnswer *a)
{
	size_t len = pb__relay_answer__get_packed_size(a);
	if (!r->req || r->bytes + len > ANSWERS_MAX)
		return;
	uint8_t *data = xmalloc(len + 1);
	pb__relay_answer__pack(a, data);
	r->answer = xgrow(r->answer, &r->cap, r->answers + 1, sizeof *r->answer);
	r->answer[r->answers++] = pb__relay_answer__unpack(NULL, len, data);
	r->bytes += len;
	free(data);
}

static void on_own(int code, const uint8_t *body, size_t len, const char *detail, void *arg)
{
	struct relay *r = arg;
	Pb__RelayAnswer a = PB__RELAY_ANSWER__INIT;
	a.node = r->self;
	a.code = (uint32_t)abs(code);
	a.detail = (char *)detail;
	a.has_body = !code;
	a.body = (ProtobufCBinaryData){ len, (uint8_t *)body };
	answer_add(r, &a);
	r->own_pending = false;
	relay_check(r);
}

static void on_other(size_t i, const Pb__RelayAnswer *a, void *arg)
{
	(void)i;
	if (a)
		answer_add(arg, a);
}

static void on_others_end(const struct fan *f, void *arg)
{
	struct relay *r = arg;
	r->depth = fan_deepest(f);
	r->sent = fan_sent(f);
	r->fan_pending = false;
	relay_check(r);
}

static struct wire_link *link_to(const char *node, void *arg)
{
	struct relay *r = arg;
	const char *host;
	uint16_t port;
	struct way *w;
	if (!r->req || !r->place->where(node, &host, &port, r->place->arg))
		return NULL;
	char *addr = xasprintf("%s:%u", host, port);
	HASH_FIND_STR(r->ways, addr, w);
	if (w) {
		free(addr);
		return w->link;
	}
	w = xcalloc(1, sizeof *w);
	w->addr = addr;
	w->link = wire_link_create(r->place->loop, r->place->auth, host, port);
	HASH_ADD_KEYPTR(hh, r->ways, w->addr, strlen(w->addr), w);
	return w->link;
}

/* Itself first, each of them named in the letter, none twice. */
static int share_check(struct relay *r, const char *nodes, struct error *err)
{
	if (hostlist_add(&r->share, nodes, err) < 0 || !r->share.count || strcmp(r->share.name[0], r->self))
		return error_set(err, ESLURM_PROTOCOL, "its share of nodes does not begin with %s", r->self);
	for (size_t i = 0; i < r->share.count; i++) {
		struct addressee *a;
		HASH_FIND_STR(r->letter->by_name, r->share.name[i], a);
		if (!a || a->seen_by == r->serial)
			return error_set(err, ESLURM_ACCESS_DENIED, "it is not meant for node %s%s", r->share.name[i], a ? " twice" : "");
		a->seen_by = r->serial;
	}
	return 0;
}

static void relay_run(struct relay *r)
{
	const Pb__RelayReq *m = (const Pb__RelayReq *)wire_req_msg(r->req);
	struct letter *l = r->letter;
	int rc = r->rc;
	if (!rc && !l && !(l = r->letter = letter_add(m, r->parcel, &r->sender, r->id)))
		rc = error_set(&r->err, ESLURM_PROTOCOL, "malformed list of nodes");
	if (!rc && l->parcel->rpc == RPC_D_RELAY)
		rc = error_set(&r->err, ESLURM_PROTOCOL, "a message for several nodes within another");
	if (!rc)
		rc = share_check(r, m->nodes, &r->err);
	if (rc) {
		relay_refuse(r, rc, r->err.line);
		return;
	}
	struct wire_call_in in = { l->parcel->rpc, &l->sender, wire_req_peer(r->req), r->self, l->parcel->body.data, l->parcel->body.len };
	uv_timer_start(&r->timer, on_late, fan_wait_ms(r->share.count, l->sealed.width, l->sealed.patience_ms) - FAN_LEVEL_MS / 2 * (r->share.count > 1), 0);
	r->own_pending = true;
	r->fan_pending = r->share.count > 1;
	if (r->fan_pending)
		run_begin(run_make((const char *const *)r->share.name + 1, link_to, on_other, on_others_end, r), &l->sealed, r->share.count - 1);
	if (!fan_letter_use(r->place->auth, l->id, r->self, &r->err)) {
		wire_server_deliver(r->place->server, &in, on_own, r);
		return;
	}
	log_debug("message for several nodes from %s was here before", in.peer);
	r->own_pending = false;          /* the answer was given to who sent it then */
	relay_check(r);
}

static void work_run(uv_work_t *w)
{
	struct relay *r = w->data;
	r->rc = fan_letter_open(r->place->auth, (const Pb__RelayReq *)wire_req_msg(r->req), &r->parcel, &r->sender, r->id, &r->err);
}

static void work_done(uv_work_t *w, int status)
{
	(void)status;
	relay_run(w->data);
}

void relay_take(const struct relay_place *p, const char *self, struct wire_req *req)
{
	const Pb__RelayReq *m = (const Pb__RelayReq *)wire_req_msg(req);
	if (relays >= RELAYS_MAX || letters_bytes + m->parcel.len > LETTERS_MAX) {
		wire_reply_error(req, ENOBUFS, "too many messages for several nodes are on their way here");
		return;
	}
	struct relay *r = xcalloc(1, sizeof *r);
	r->place = p;
	r->self = xstrdup(self);
	r->serial = ++last_serial;
	r->req = req;
	uv_timer_init(p->loop, &r->timer);
	r->timer.data = r->work.data = r;
	relays++;
	r->letter = letter_find(m);
	if (!r->letter && auth_blocks(p->auth)) {
		(void)uv_queue_work(p->loop, &r->work, work_run, work_done);
		return;
	}
	if (!r->letter)
		r->rc = fan_letter_open(p->auth, m, &r->parcel, &r->sender, r->id, &r->err);
	relay_run(r);
}
