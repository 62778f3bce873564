/* auth.c - making and checking tokens (see auth.h, token.h)
 *
 * A process that can read the cluster key makes its own tokens; any other asks the sack socket, whose server learns its uid
 * from the kernel. A daemon refuses tokens made before it started, since it cannot know which of them were used: the
 * client asks for a new one and tries again. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <sodium.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "wire/auth.h"

#define KEY_FILE_MIN 32
#define KEY_FILE_MAX 4096
#define TTL_SLURM_S 60
#define TTL_MUNGE_S 300

struct wire_auth {
	bool munge, has_key;
	uint8_t key[TOKEN_KEY];
	char *cluster, *key_path, *sack_path, *munge_socket;
	uint32_t ttl_s;
	uint64_t started_ms, started_mono_ms;
	struct nonce_cache *nonces;     /* made when the first token is used */
};

uint64_t auth_now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

/* 0: read; 1: there is none we may read; negative: it must not be used. */
static int key_read(struct wire_auth *a, struct error *err)
{
	uint8_t text[KEY_FILE_MAX + 1];
	struct stat st;
	int fd = a->key_path ? open(a->key_path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return 1;
	int rc = 0;
	ssize_t n = fstat(fd, &st) || !S_ISREG(st.st_mode) ? -1 : read(fd, text, sizeof text);
	if (n < KEY_FILE_MIN || n > KEY_FILE_MAX) {
		rc = error_set(err, EINVAL, "cluster key %s must be a file of %d to %d bytes", a->key_path, KEY_FILE_MIN, KEY_FILE_MAX);
		error_hint(err, "make one: dd if=/dev/urandom of=%s bs=1024 count=1", a->key_path);
	} else if (st.st_mode & 077) {
		rc = error_set(err, EPERM, "cluster key %s can be read or changed by others (mode %04o)", a->key_path, st.st_mode & 07777);
		error_hint(err, "chmod 600 %s, and make a new key if anybody may have read it", a->key_path);
	} else {
		crypto_generichash(a->key, sizeof a->key, text, n, (const uint8_t *)"berth cluster key", 17);
		a->has_key = true;
	}
	sodium_memzero(text, sizeof text);
	close(fd);
	return rc;
}

int wire_auth_create(const struct wire_auth_params *p, struct wire_auth **ret, struct error *err)
{
#ifndef BERTH_QUICK /* it chooses among instruction sets, six CPUIDs for one token, and readies threads, of which there is one: portable code serves */
	if (sodium_init() < 0)
		return error_set(err, EIO, "libsodium cannot be initialised: no source of random numbers");
#endif
	if (p->cluster && strlen(p->cluster) > TOKEN_CLUSTER)
		return error_set(err, EINVAL, "ClusterName \"%s\" is longer than %d characters", p->cluster, TOKEN_CLUSTER);
	struct wire_auth *a = xcalloc(1, sizeof *a);
	a->munge = p->munge;
	a->cluster = xstrdup(p->cluster ? p->cluster : "");
	a->key_path = xstrdup_null(p->key_path);
	a->sack_path = xstrdup_null(p->sack_path);
	a->munge_socket = xstrdup_null(p->munge_socket);
	a->ttl_s = p->ttl_s ? p->ttl_s : p->munge ? TTL_MUNGE_S : TTL_SLURM_S;
	a->started_ms = auth_now_ms();
	a->started_mono_ms = clock_mono_ms();
	int rc = p->munge ? 0 : key_read(a, err);
	if (rc > 0 && !p->sack_path) {
		rc = error_set(err, errno ? errno : ENOENT, "cannot read the cluster key %s: %s", p->key_path ? p->key_path : "(none named)",
			       p->key_path ? strerror(errno) : "no path");
		error_hint(err, "daemons need it with mode 0600; commands need a token socket of slurmctld, slurmd or sackd");
	}
	if (rc < 0) {
		wire_auth_destroy(a);
		return rc;
	}
	*ret = a;
	return 0;
}

void wire_auth_destroy(struct wire_auth *a)
{
	if (!a)
		return;
	sodium_memzero(a->key, sizeof a->key);
	free(a->cluster);
	free(a->key_path);
	free(a->sack_path);
	free(a->munge_socket);
	nonce_cache_destroy(a->nonces);
	free(a);
}

bool auth_has_key(const struct wire_auth *a)
{
	return a->has_key;
}

bool auth_blocks(const struct wire_auth *a)
{
	return a->munge;
}

const char *auth_cluster(const struct wire_auth *a)
{
	return a->cluster;
}

static void facts_fill(const struct wire_auth *a, uint32_t uid, uint32_t gid, const uint8_t *bound, struct token_facts *f)
{
	*f = (struct token_facts){ .uid = uid, .gid = gid, .issued_ms = auth_now_ms() };
	f->expires_ms = f->issued_ms + a->ttl_s * 1000ull;
	randombytes_buf(f->id, sizeof f->id);
	randombytes_buf(f->session, sizeof f->session);
	if (bound)
		memcpy(f->bound, bound, sizeof f->bound);
	memcpy(f->cluster, a->cluster, strlen(a->cluster));
}

void auth_token_mint(struct wire_auth *a, uint32_t uid, uint32_t gid, const uint8_t *bound, uint8_t session[FRAME_KEY], struct token *ret)
{
	assert(a->has_key);
	struct token_facts f;
	facts_fill(a, uid, gid, bound, &f);
	token_seal(a->key, &f, ret);
	memcpy(session, f.session, FRAME_KEY);
	sodium_memzero(&f, sizeof f);
}

int auth_token_make(struct wire_auth *a, const uint8_t *bound, uint8_t session[FRAME_KEY], struct token *ret, struct error *err)
{
	if (a->has_key) {
		auth_token_mint(a, geteuid(), getegid(), bound, session, ret);
		return 0;
	}
	if (!a->munge)
		return sack_ask(a->sack_path, bound, session, ret, err);
	struct token_facts f;
	facts_fill(a, geteuid(), getegid(), bound, &f);
	int rc = munge_token_make(a->munge_socket, a->ttl_s, &f, ret, err);
	if (!rc)
		memcpy(session, f.session, FRAME_KEY);
	sodium_memzero(&f, sizeof f);
	return rc;
}

/* When this daemon started, by the wall clock as it goes now: it may have been set back since, and all new tokens would be older than we are. */
static uint64_t started_ms(const struct wire_auth *a, uint64_t now)
{
	uint64_t by_age = now - (clock_mono_ms() - a->started_mono_ms);
	return by_age + AUTH_SKEW_MS < a->started_ms ? by_age : a->started_ms;
}

int auth_token_open(const struct wire_auth *a, const uint8_t *data, size_t len, struct token_facts *ret, struct error *err)
{
	struct token_facts f = { 0 };
	if (a->munge) {
		int rc = munge_token_open(a->munge_socket, data, len, &f, err);
		if (rc)
			return rc;
	} else if (!a->has_key || !token_open(a->key, data, len, &f)) {
		return error_set(err, ESLURM_AUTH, "token was not made with this cluster's key");
	}
	uint64_t now = auth_now_ms();
	/* A slurmd that has no configuration yet (--conf-server) names no cluster; only who holds the key can make such a token. */
	bool unnamed = !a->munge && !*f.cluster;
	if (*a->cluster && !unnamed && strcmp(a->cluster, f.cluster))
		return error_set(err, ESLURM_AUTH, "token is for cluster \"%s\", this is \"%s\"", f.cluster, a->cluster);
	if (now > f.expires_ms)
		return error_set(err, ESLURM_AUTH, "token expired %llu s ago: do the clocks differ?", (unsigned long long)(now - f.expires_ms) / 1000);
	if (f.issued_ms > now + AUTH_SKEW_MS || f.expires_ms > now + a->ttl_s * 2000ull + AUTH_SKEW_MS)
		return error_set(err, ESLURM_AUTH, "token is from the future: do the clocks differ?");
	if (f.issued_ms < started_ms(a, now))
		return error_set(err, EAGAIN, "token is older than this daemon: try again with a new one");
	*ret = f;
	return 0;
}

int auth_token_use(struct wire_auth *a, const struct token_facts *f, struct error *err)
{
	if (!a->nonces)
		a->nonces = nonce_cache_create(a->ttl_s * 2000ull + AUTH_SKEW_MS, AUTH_NONCES_MAX);
	int rc = nonce_cache_add(a->nonces, f->id, clock_mono_ms());
	if (rc == -EEXIST)
		return error_set(err, ESLURM_AUTH, "token was used before");
	if (rc)
		return error_set(err, ESLURM_AUTH, "too many new connections: try again in a minute");
	return 0;
}
