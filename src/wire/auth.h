/* auth.h - making and checking tokens, whatever the AuthType (inside of wire/) */
#pragma once
#include "wire/token.h"
#include "wire/wire.h"

#define AUTH_SKEW_MS 60000u       /* clocks may differ by this much */
#define AUTH_NONCES_MAX (1u << 22)

/* A token for this process, bound to a hash (NULL: to nothing); *session is the connection's key. May block (socket, munge). */
int auth_token_make(struct wire_auth *a, const uint8_t *bound, uint8_t session[FRAME_KEY], struct token *ret, struct error *err);
/* The same for somebody else; needs the key (auth_has_key). */
void auth_token_mint(struct wire_auth *a, uint32_t uid, uint32_t gid, const uint8_t *bound, uint8_t session[FRAME_KEY], struct token *ret);
/* Checks seal, cluster and times. May block under munge; touches nothing shared, so it may run on another thread. */
int auth_token_open(const struct wire_auth *a, const uint8_t *data, size_t len, struct token_facts *ret, struct error *err);
/* Remembers the token as used; refuses a second time. On the loop's thread only. */
int auth_token_use(struct wire_auth *a, const struct token_facts *f, struct error *err);
bool auth_has_key(const struct wire_auth *a);
bool auth_blocks(const struct wire_auth *a);      /* making or opening waits for another process (munge) */
const char *auth_cluster(const struct wire_auth *a);
uint64_t auth_now_ms(void);                       /* wall clock */

/* The question to a sack socket and its answer: fixed heads. */
#define SACK_ASK 40               /* "SACK", version, 3 zeros, bound hash */
#define SACK_ANSWER 42            /* "SACK", version, 3 zeros, session key, length of the token; then the token */
#define SACK_VERSION 1
int sack_ask(const char *path, const uint8_t *bound, uint8_t session[FRAME_KEY], struct token *ret, struct error *err);

/* munge.c: libmunge, loaded when first needed. f->uid, gid and times are filled by munge on opening. */
int munge_token_make(const char *socket, uint32_t ttl_s, const struct token_facts *f, struct token *ret, struct error *err);
int munge_token_open(const char *socket, const uint8_t *data, size_t len, struct token_facts *ret, struct error *err);
