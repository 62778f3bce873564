/* frame.c - heads of frames and their MACs (see frame.h) */
#include <assert.h>
#include <string.h>
#include <sodium.h>

#include "base/error.h"
#include "wire/frame.h"

static_assert(FRAME_MAC == crypto_onetimeauth_BYTES, "MAC is Poly1305");
static_assert(FRAME_KEY == crypto_onetimeauth_KEYBYTES && FRAME_KEY <= crypto_generichash_KEYBYTES_MAX, "keys fit");

int frame_head_read(const uint8_t raw[FRAME_HEAD], struct frame_head *ret)
{
	if (memcmp(raw, "BRTH", 4))
		return -ESLURM_PROTOCOL;
	if (raw[4] != FRAME_VERSION)
		return -ESLURM_PROTOCOL_VERSION;
	if (raw[5] < FRAME_CALL || raw[5] > FRAME_ERROR)
		return -ESLURM_PROTOCOL;
	struct frame_head h = {
		.kind = raw[5], .rpc = be_get(raw + 6, 2), .seq = be_get(raw + 8, 4), .token_len = be_get(raw + 12, 2),
		.to_len = be_get(raw + 14, 2),
		.body_len = be_get(raw + 16, 4), .code = be_get(raw + 20, 4),
	};
	if (h.token_len > FRAME_TOKEN_MAX || (h.kind != FRAME_CALL && h.token_len))
		return -ESLURM_PROTOCOL;
	if (h.to_len > FRAME_TO_MAX || h.to_len > h.body_len || (h.kind != FRAME_CALL && h.to_len))
		return -ESLURM_PROTOCOL;
	if ((h.kind == FRAME_ERROR) != (h.code != 0) || h.code > INT32_MAX)
		return -ESLURM_PROTOCOL;
	if (h.kind == FRAME_ERROR ? h.body_len > FRAME_TEXT_MAX : !h.rpc)
		return -ESLURM_PROTOCOL;
	*ret = h;
	return 0;
}

void frame_head_write(const struct frame_head *h, uint8_t raw[FRAME_HEAD])
{
	memset(raw, 0, FRAME_HEAD);
	memcpy(raw, "BRTH", 4);
	raw[4] = FRAME_VERSION;
	raw[5] = h->kind;
	be_put(raw + 6, h->rpc, 2);
	be_put(raw + 8, h->seq, 4);
	be_put(raw + 12, h->token_len, 2);
	be_put(raw + 14, h->to_len, 2);
	be_put(raw + 16, h->body_len, 4);
	be_put(raw + 20, h->code, 4);
}

static void mac_make(const struct frame_channel *c, bool from_server, uint64_t count, const uint8_t *raw,
		     const struct frame_part *part, size_t n, uint8_t mac[FRAME_MAC])
{
	uint8_t what[16] = "frame", key[FRAME_KEY];
	what[7] = from_server;
	be_put(what + 8, count, 8);
	crypto_generichash(key, sizeof key, what, sizeof what, c->key, sizeof c->key);
	crypto_onetimeauth_state s;
	crypto_onetimeauth_init(&s, key);
	crypto_onetimeauth_update(&s, raw, FRAME_MAC_AT);
	for (size_t i = 0; i < n; i++)
		if (part[i].len)
			crypto_onetimeauth_update(&s, part[i].data, part[i].len);
	crypto_onetimeauth_final(&s, mac);
	sodium_memzero(key, sizeof key);
}

void frame_seal(struct frame_channel *c, uint8_t raw[FRAME_HEAD], const struct frame_part *part, size_t n)
{
	if (c->keyed)
		mac_make(c, c->server, c->sent, raw, part, n, raw + FRAME_MAC_AT);
	c->sent++;
}

bool frame_check(struct frame_channel *c, const uint8_t raw[FRAME_HEAD], const struct frame_part *part, size_t n)
{
	uint8_t mac[FRAME_MAC] = { 0 };
	if (c->keyed)
		mac_make(c, !c->server, c->received, raw, part, n, mac);
	if (sodium_memcmp(mac, raw + FRAME_MAC_AT, FRAME_MAC))
		return false;
	c->received++;
	return true;
}
