/* fan.c - letters, and the sender's side of a fan-out (see fan.h) */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sodium.h>
#include <uthash.h>

#include "base/alloc.h"
#include "model/hostlist.h"
#include "wire/auth.h"
#include "wire/fan.h"

#define HEADS_MAX 8              /* so many dead nodes of a share are tried as its relay */

struct wire_shared *wire_shared_pack(const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	struct wire_shared *s = xmalloc(sizeof *s + len);
	s->refs = 1;
	s->len = len;
	protobuf_c_message_pack(m, s->data);
	return s;
}

void wire_shared_unref(struct wire_shared *s)
{
	if (s && !--s->refs)
		free(s);
}

/* --- letters ---------------------------------------------------------------------------------- */

static char *names_fold(const char *const *name, size_t n)
{
	struct hostlist hl = { .name = (char **)(void *)name, .count = n };
	return hostlist_compact(&hl);
}

int fan_letter_seal(struct wire_auth *a, enum rpc rpc, const ProtobufCMessage *req, const char *const *name, size_t n, uint32_t width, uint32_t patience_ms,
		    struct fan_letter *ret, struct error *err)
{
	Pb__Parcel p = PB__PARCEL__INIT;
	Pb__RelayLetter letter = PB__RELAY_LETTER__INIT;
	struct token token = { 0 };
	uint8_t hash[32], session[FRAME_KEY];
	p.rpc = rpc;
	p.body.len = protobuf_c_message_get_packed_size(req);
	p.body.data = xmalloc(p.body.len + 1);
	protobuf_c_message_pack(req, p.body.data);
	p.nodes = names_fold(name, n);
	p.width = width < 2 ? 2 : width > FAN_WIDTH_MAX ? FAN_WIDTH_MAX : width;
	p.patience_ms = patience_ms;
	*ret = (struct fan_letter){ .width = p.width, .patience_ms = patience_ms };
	letter.parcel.len = pb__parcel__get_packed_size(&p);
	letter.parcel.data = xmalloc(letter.parcel.len + 1);
	pb__parcel__pack(&p, letter.parcel.data);
	free(p.body.data);
	free(p.nodes);
	wire_hash(letter.parcel.data, letter.parcel.len, hash);
	int rc = auth_token_make(a, hash, session, &token, err);
	sodium_memzero(session, sizeof session);
	letter.token = (ProtobufCBinaryData){ token.len, token.data };
	if (!rc)
		ret->packed = wire_shared_pack(&letter.base);
	free(letter.parcel.data);
	return rc;
}

void fan_letter_fini(struct fan_letter *l)
{
	wire_shared_unref(l->packed);
	l->packed = NULL;
}

int fan_letter_open(const struct wire_auth *a, const Pb__RelayReq *req, Pb__Parcel **ret, struct wire_identity *ret_sender, uint8_t ret_id[16], struct error *err)
{
	struct token_facts f;
	uint8_t hash[32];
	int rc = auth_token_open(a, req->token.data, req->token.len, &f, err);
	if (rc < 0)
		return rc;
	sodium_memzero(f.session, sizeof f.session);
	wire_hash(req->parcel.data, req->parcel.len, hash);
	if (memcmp(hash, f.bound, sizeof hash))
		return error_set(err, ESLURM_AUTH, "the token was not made for this message: it was changed on its way");
	Pb__Parcel *p = (Pb__Parcel *)(void *)wire_unpack(&pb__parcel__descriptor, req->parcel.data, req->parcel.len);
	if (!p)
		return error_set(err, ESLURM_PROTOCOL, "malformed message for several nodes");
	*ret_sender = (struct wire_identity){ .uid = f.uid, .gid = f.gid, .known = true };
	wire_hash(p->body.data, p->body.len, ret_sender->bound);
	memcpy(ret_id, f.id, 16);
	*ret = p;
	return 0;
}

int fan_letter_use(struct wire_auth *a, const uint8_t id[16], const char *node, struct error *err)
{
	struct token_facts f = { 0 };
	uint8_t mix[16 + 256];
	size_t len = strnlen(node, 256);
	memcpy(mix, id, 16);
	memcpy(mix + 16, node, len);
	crypto_generichash(f.id, sizeof f.id, mix, 16 + len, NULL, 0);   /* emulated nodes share a daemon */
	return auth_token_use(a, &f, err) < 0 ? -EEXIST : 0;
}

/* --- the shape -------------------------------------------------------------------------------- */

static size_t share_size(size_t n, uint32_t width) { return (n + width - 1) / width; }

unsigned fan_depth(size_t n, uint32_t width)
{
	unsigned depth = 0;
	for (; n; n = share_size(n, width) - 1)
		depth++;
	return depth;
}

uint32_t fan_wait_ms(size_t n, uint32_t width, uint32_t patience_ms) { return patience_ms + FAN_LEVEL_MS * (n ? fan_depth(n - 1, width) : 0); }

/* --- sending ---------------------------------------------------------------------------------- */

enum branch_state { BRANCH_DUE, BRANCH_SENT, BRANCH_OVER };
/* A share: names [from, end). Its first nodes may have failed: [from, head). */
struct branch { size_t from, head, end; unsigned tries; enum branch_state state; uint8_t *tail; };
struct member { const char *name; size_t index; bool told; UT_hash_handle hh; };
struct fan {
	const struct fan_letter *letter;
	const char *const *name;
	size_t n, branches, next, open;
	struct branch *branch;
	struct member *member, *by_name;
	fan_answer_fn fn;
	void *arg;
	uint32_t deepest, sent;
};

struct fan *fan_create(const struct fan_letter *l, const char *const *name, size_t n, fan_answer_fn fn, void *arg)
{
	struct fan *f = xcalloc(1, sizeof *f);
	*f = (struct fan){ .letter = l, .name = name, .n = n, .fn = fn, .arg = arg };
	f->branches = f->open = n < l->width ? n : l->width;
	f->branch = xcalloc(f->branches + 1, sizeof *f->branch);
	f->member = xcalloc(n + 1, sizeof *f->member);
	for (size_t i = 0; i < f->branches; i++)
		f->branch[i] = (struct branch){ .from = n * i / f->branches, .head = n * i / f->branches, .end = n * (i + 1) / f->branches };
	for (size_t i = 0; i < n; i++) {
		struct member *m = &f->member[i], *other;
		m->name = name[i];
		m->index = i;
		HASH_FIND_STR(f->by_name, name[i], other);
		if (!other)
			HASH_ADD_KEYPTR(hh, f->by_name, m->name, strlen(m->name), m);
	}
	return f;
}

void fan_destroy(struct fan *f)
{
	if (!f)
		return;
	HASH_CLEAR(hh, f->by_name);
	for (size_t i = 0; i < f->branches; i++)
		free(f->branch[i].tail);
	free(f->branch);
	free(f->member);
	free(f);
}

bool fan_next(struct fan *f, struct fan_send *ret)
{
	for (; f->next < f->branches; f->next++) {
		struct branch *b = &f->branch[f->next];
		if (b->state != BRANCH_DUE)
			continue;
		Pb__RelayShare share = PB__RELAY_SHARE__INIT;
		share.nodes = names_fold(f->name + b->head, b->end - b->head);
		size_t len = pb__relay_share__get_packed_size(&share);
		b->tail = xmalloc(len);
		pb__relay_share__pack(&share, b->tail);
		free(share.nodes);
		b->state = BRANCH_SENT;
		b->tries++;
		f->sent++;
		*ret = (struct fan_send){ .branch = f->next, .node = b->head, .tail = b->tail, .tail_len = len };
		ret->wait_ms = fan_wait_ms(b->end - b->head, f->letter->width, f->letter->patience_ms);
		return true;
	}
	return false;
}

static void tell(struct fan *f, struct member *m, const Pb__RelayAnswer *a)
{
	if (m->told)
		return;
	m->told = true;
	f->fn(m->index, a, f->arg);
}

/* Those that no answer came from. */
static void branch_over(struct fan *f, struct branch *b)
{
	xfree(b->tail);
	b->state = BRANCH_OVER;
	f->open--;
	for (size_t i = b->from; i < b->end; i++)
		tell(f, &f->member[i], NULL);
}

void fan_took(struct fan *f, size_t branch, const Pb__RelayRsp *rsp)
{
	struct branch *b = &f->branch[branch];
	if (b->state != BRANCH_SENT)
		return;
	for (size_t i = 0; i < rsp->n_answer; i++) {
		struct member *m;
		HASH_FIND_STR(f->by_name, rsp->answer[i]->node, m);
		if (m && m->index >= b->head && m->index < b->end)
			tell(f, m, rsp->answer[i]);
	}
	f->sent += rsp->sent;
	f->deepest = rsp->depth > f->deepest ? rsp->depth : f->deepest;
	branch_over(f, b);
}

void fan_failed(struct fan *f, size_t branch, int code)
{
	struct branch *b = &f->branch[branch];
	if (b->state != BRANCH_SENT)
		return;
	if (code == -ESLURM_SOCKET_TIMEOUT || code == -ECANCELED || b->tries >= HEADS_MAX || b->head + 1 == b->end) {
		branch_over(f, b);
		return;
	}
	xfree(b->tail);
	b->head++;
	b->state = BRANCH_DUE;
	f->next = branch < f->next ? branch : f->next;
}

bool fan_is_over(const struct fan *f) { return !f->open; }

size_t fan_branches(const struct fan *f) { return f->branches; }

uint32_t fan_deepest(const struct fan *f) { return f->deepest; }

uint32_t fan_sent(const struct fan *f) { return f->sent; }
