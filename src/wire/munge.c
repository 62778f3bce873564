/* munge.c - tokens as munge credentials (see token.h)
 *
 * libmunge is loaded when first used, so that commands of clusters with auth/slurm do not pay for it. The payload is encrypted by
 * munge. "Replayed" from munge is no error here: daemons that share one munged all decode the same credential of a fan-out, and
 * each has its own cache of token ids, which decides. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <munge.h>
#include <sodium.h>

#include "base/full.h"
#include "wire/auth.h"

static struct {
	munge_ctx_t (*ctx_create)(void);
	void (*ctx_destroy)(munge_ctx_t);
	munge_err_t (*ctx_get)(munge_ctx_t, int, ...);
	munge_err_t (*ctx_set)(munge_ctx_t, int, ...);
	const char *(*ctx_strerror)(munge_ctx_t);
	const char *(*strerror)(munge_err_t);
	munge_err_t (*encode)(char **, munge_ctx_t, const void *, int);
	munge_err_t (*decode)(const char *, munge_ctx_t, void **, int *, uid_t *, gid_t *);
} munge;
static const struct { const char *name; void *to; } symbols[] = {
	{ "munge_ctx_create", &munge.ctx_create }, { "munge_ctx_destroy", &munge.ctx_destroy }, { "munge_ctx_get", &munge.ctx_get },
	{ "munge_ctx_set", &munge.ctx_set }, { "munge_ctx_strerror", &munge.ctx_strerror }, { "munge_strerror", &munge.strerror },
	{ "munge_encode", &munge.encode }, { "munge_decode", &munge.decode },
};
static bool loaded;

static void munge_load(void)
{
	full_needed();
	void *lib = dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return;
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		void *p = dlsym(lib, symbols[i].name);
		if (!p)
			return;
		memcpy(symbols[i].to, &p, sizeof p);
	}
	loaded = true;
}

static int munge_begin(const char *socket, munge_ctx_t *ret, struct error *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, munge_load);
	if (!loaded) {
		error_set(err, ENOENT, "AuthType=auth/munge, but libmunge.so.2 cannot be loaded");
		error_hint(err, "install Debian's libmunge2, or set AuthType=auth/slurm");
		return -ENOENT;
	}
	munge_ctx_t ctx = munge.ctx_create();
	if (!ctx)
		return error_set(err, ENOMEM, "munge: out of memory");
	if (socket && munge.ctx_set(ctx, MUNGE_OPT_SOCKET, socket) != EMUNGE_SUCCESS) {
		error_set(err, EINVAL, "munge does not take the socket %s", socket);
		munge.ctx_destroy(ctx);
		return -EINVAL;
	}
	*ret = ctx;
	return 0;
}

static int munge_failed(munge_ctx_t ctx, munge_err_t e, const char *what, struct error *err)
{
	const char *text = munge.ctx_strerror(ctx);
	error_set(err, ESLURM_AUTH, "munge cannot %s: %s", what, text ? text : munge.strerror(e));
	if (e == EMUNGE_SOCKET)
		error_hint(err, "is munged running on this machine?");
	return -ESLURM_AUTH;
}

int munge_token_make(const char *socket, uint32_t ttl_s, const struct token_facts *f, struct token *ret, struct error *err)
{
	munge_ctx_t ctx;
	char *cred = NULL;
	uint8_t payload[TOKEN_PAYLOAD_MAX];
	int rc = munge_begin(socket, &ctx, err);
	if (rc)
		return rc;
	size_t n = token_payload_write(f, payload);
	munge_err_t e = munge.ctx_set(ctx, MUNGE_OPT_CIPHER_TYPE, MUNGE_CIPHER_AES256);
	if (e == EMUNGE_SUCCESS)
		e = munge.ctx_set(ctx, MUNGE_OPT_TTL, (int)ttl_s);
	if (e == EMUNGE_SUCCESS)
		e = munge.encode(&cred, ctx, payload, n);
	sodium_memzero(payload, sizeof payload);
	if (e != EMUNGE_SUCCESS)
		rc = munge_failed(ctx, e, "make a credential", err);
	else if (strlen(cred) > sizeof ret->data)
		rc = error_set(err, ESLURM_AUTH, "munge credential is longer than %zu bytes", sizeof ret->data);
	else
		memcpy(ret->data, cred, ret->len = strlen(cred));
	free(cred);
	munge.ctx_destroy(ctx);
	return rc;
}

static bool times_read(munge_ctx_t ctx, struct token_facts *f)
{
	time_t made = 0;
	int ttl = 0, cipher = MUNGE_CIPHER_NONE;
	if (munge.ctx_get(ctx, MUNGE_OPT_ENCODE_TIME, &made) != EMUNGE_SUCCESS || munge.ctx_get(ctx, MUNGE_OPT_TTL, &ttl) != EMUNGE_SUCCESS ||
	    munge.ctx_get(ctx, MUNGE_OPT_CIPHER_TYPE, &cipher) != EMUNGE_SUCCESS || made < 0 || ttl < 0)
		return false;
	f->issued_ms = made * 1000ull + 999;   /* munge knows seconds; round so that a fresh one never looks older than its reader */
	f->expires_ms = (made + (uint64_t)ttl) * 1000;
	return cipher != MUNGE_CIPHER_NONE;
}

int munge_token_open(const char *socket, const uint8_t *data, size_t len, struct token_facts *ret, struct error *err)
{
	munge_ctx_t ctx;
	char cred[FRAME_TOKEN_MAX + 1];
	void *payload = NULL;
	int n = 0;
	uid_t uid = -1;
	gid_t gid = -1;
	if (len > FRAME_TOKEN_MAX || memchr(data, 0, len))
		return error_set(err, ESLURM_AUTH, "token is not a munge credential");
	memcpy(cred, data, len);
	cred[len] = 0;
	int rc = munge_begin(socket, &ctx, err);
	if (rc)
		return rc;
	struct token_facts f = { 0 };
	munge_err_t e = munge.decode(cred, ctx, &payload, &n, &uid, &gid);
	if (e != EMUNGE_SUCCESS && e != EMUNGE_CRED_REPLAYED)
		rc = munge_failed(ctx, e, "open the credential", err);
	else if (!times_read(ctx, &f) || !payload || n < 0 || !token_payload_read(payload, n, &f))
		rc = error_set(err, ESLURM_AUTH, "munge credential does not carry a token");
	if (payload && n > 0)
		sodium_memzero(payload, n);
	free(payload);
	munge.ctx_destroy(ctx);
	if (rc)
		return rc;
	f.uid = uid;
	f.gid = gid;
	*ret = f;
	return 0;
}
