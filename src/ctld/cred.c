/* cred.c - see cred.h
 * The file `cred.key` holds one line a key, newest first: id, public key, secret key, in hex. Written whole under another name and renamed, synced. The first
 * signs; the first two are told to the nodes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <sodium.h>

#include "base/alloc.h"
#include "ctld/cred.h"
#include "ctld/ident.h"
#include "ctld/replies.h"
#include "model/stepid.h"
#include "wire/sign.h"

#define KEYS_MAX 2
#define EXPIRE_SEC 120             /* to reach slurmd; AuthInfo=cred_expire= */

struct cred {
	uint32_t id[KEYS_MAX];
	uint8_t public_key[KEYS_MAX][crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES];
	Pb__CredKey msg[KEYS_MAX], *list[KEYS_MAX];
	size_t keys;
};

static int key_write(const char *path, const struct cred *c, struct error *err)
{
	char pub[2 * crypto_sign_PUBLICKEYBYTES + 1], sec[2 * crypto_sign_SECRETKEYBYTES + 1], *tmp = xasprintf("%s.new", path);
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), rc = 0;
	sodium_bin2hex(pub, sizeof pub, c->public_key[0], sizeof c->public_key[0]);
	sodium_bin2hex(sec, sizeof sec, c->secret, sizeof c->secret);
	char *line = xasprintf("%08x %s %s\n", c->id[0], pub, sec);
	if (fd < 0 || fchmod(fd, 0600) || write(fd, line, strlen(line)) != (ssize_t)strlen(line) || fsync(fd) || rename(tmp, path))
		rc = error_set(err, errno, "cannot write %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	sodium_memzero(sec, sizeof sec);
	sodium_memzero(line, strlen(line));
	free(line);
	free(tmp);
	return rc;
}

static int key_make(const char *path, struct cred *c, struct error *err)
{
	uint8_t hash[32];
	crypto_sign_keypair(c->public_key[0], c->secret);
	wire_hash(c->public_key[0], sizeof c->public_key[0], hash);
	memcpy(&c->id[0], hash, sizeof c->id[0]);
	c->keys = 1;
	return key_write(path, c, err);
}

static bool key_parse(struct cred *c, const char *line, size_t n)
{
	char pub[2 * crypto_sign_PUBLICKEYBYTES + 1], sec[2 * crypto_sign_SECRETKEYBYTES + 1];
	uint8_t secret[crypto_sign_SECRETKEYBYTES];
	size_t len;
	if (sscanf(line, "%8x %64s %128s", &c->id[n], pub, sec) != 3)
		return false;
	if (sodium_hex2bin(c->public_key[n], sizeof c->public_key[n], pub, strlen(pub), NULL, &len, NULL) || len != sizeof c->public_key[n] ||
	    sodium_hex2bin(secret, sizeof secret, sec, strlen(sec), NULL, &len, NULL) || len != sizeof secret)
		return false;
	if (!n)
		memcpy(c->secret, secret, sizeof secret);
	return true;
}

static int key_read(FILE *f, const char *path, struct cred *c, struct error *err)
{
	char line[512];
	struct stat st;
	if (fstat(fileno(f), &st) || (st.st_mode & 077)) {
		error_set(err, EPERM, "%s can be read by others than its owner", path);
		error_hint(err, "chmod 600 %s; remove it if it may have been read: a new one is made", path);
		return -EPERM;
	}
	while (c->keys < KEYS_MAX && fgets(line, sizeof line, f)) {
		if (!key_parse(c, line, c->keys))
			return error_set(err, EBADMSG, "%s, line %zu: not a signing key", path, c->keys + 1);
		c->keys++;
	}
	return c->keys ? 0 : error_set(err, EBADMSG, "%s is empty", path);
}

int cred_open(const char *state_dir, struct cred **ret, struct error *err)
{
	struct cred *c = xcalloc(1, sizeof *c);
	char *path = xasprintf("%s/cred.key", state_dir);
	FILE *f = fopen(path, "re");
	int rc = sodium_init() < 0 ? error_set(err, EIO, "libsodium does not start") : 0;
	if (!rc && f)
		rc = key_read(f, path, c, err);
	else if (!rc)
		rc = errno == ENOENT ? key_make(path, c, err) : error_set(err, errno, "cannot read %s: %s", path, strerror(errno));
	if (f)
		fclose(f);
	free(path);
	if (rc) {
		cred_close(c);
		return rc;
	}
	for (size_t i = 0; i < c->keys; i++) {
		pb__cred_key__init(&c->msg[i]);
		c->msg[i].id = c->id[i];
		c->msg[i].key = (ProtobufCBinaryData){ sizeof c->public_key[i], c->public_key[i] };
		c->list[i] = &c->msg[i];
	}
	*ret = c;
	return 0;
}

void cred_close(struct cred *c)
{
	if (!c)
		return;
	sodium_memzero(c->secret, sizeof c->secret);
	free(c);
}

size_t cred_keys(const struct cred *c, Pb__CredKey *const **ret)
{
	*ret = c->list;
	return c->keys;
}

/* Borrows everything it is given. */
static void cred_fill(struct ctld *d, Pb__StepCred *m, const Pb__JobRecord *job, uint32_t step_id, uint8_t nonce[16])
{
	const struct ident *id = ident_now(d, job->uid);
	pb__step_cred__init(m);
	m->job_id = job->job_id;
	m->step_id = step_id;
	m->uid = job->uid;
	m->gid = job->gid;
	m->n_gids = id->gid_count;
	m->gids = id->gids;
	m->user = id->user;
	m->home = id->home;
	m->shell = id->shell;
	m->job_alloc = job->alloc;
	m->expires = ctld_now_ms() / 1000 + EXPIRE_SEC;
	randombytes_buf(nonce, 16);
	m->nonce = (ProtobufCBinaryData){ 16, nonce };
	m->job = (Pb__JobRecord *)job;
	m->has_key_id = true;
	m->key_id = d->cred->id[0];
}

Pb__SignedCred *cred_step(struct ctld *d, const Pb__JobRecord *job, uint32_t step_id, const Pb__StepLayout *layout, const Pb__StepDesc *desc)
{
	Pb__StepCred m;
	uint8_t nonce[16];
	if (!job->alloc)
		return NULL;
	cred_fill(d, &m, job, step_id, nonce);
	m.layout = (Pb__StepLayout *)layout;
	m.desc = (Pb__StepDesc *)desc;
	Pb__SignedCred *s = xmalloc(sizeof *s);
	pb__signed_cred__init(s);
	s->cred.len = pb__step_cred__get_packed_size(&m);
	s->cred.data = xmalloc(s->cred.len);
	pb__step_cred__pack(&m, s->cred.data);
	s->signature.len = crypto_sign_BYTES;
	s->signature.data = xmalloc(crypto_sign_BYTES);
	sign_make(SIGN_CRED, s->cred.data, s->cred.len, d->cred->secret, s->signature.data);
	return s;
}

void cred_free(Pb__SignedCred *s)
{
	if (s)
		pb__signed_cred__free_unpacked(s, NULL);
}

/* A batch script is one task on the first node, with all the job has there. */
static void batch_layout(struct ctld *d, const Pb__JobRecord *job, Pb__StepLayout *l, Pb__StepNode *n, Pb__StepNode **list, const char *host, uint32_t *rank)
{
	const Pb__NodeAlloc *part = job->alloc->n_part ? job->alloc->part[0] : NULL;
	int at = core_node_find(d->core, host);
	uint16_t port = 0;
	pb__step_layout__init(l);
	pb__step_node__init(n);
	n->name = (char *)host;
	n->addr = (char *)(at >= 0 ? core_node_addr(d->core, (uint32_t)at, &port) : host);
	n->port = port;
	if (part) {
		n->cpus = part->cpus;
		n->cpu_ids = n->job_cpu_ids = part->cpu_ids;
		n->mem = n->job_mem = part->mem;
		n->has_job_mem = true;
		n->n_gres = n->n_job_gres = part->n_gres;
		n->gres = n->job_gres = part->gres;
	}
	*rank = 0;
	n->n_task_ids = 1;
	n->task_ids = rank;
	*list = n;
	l->nodes = (char *)host;
	l->num_tasks = 1;
	l->n_node = 1;
	l->node = list;
	l->tasks_per_node = (char *)"1";
}

Pb__SignedBatch *cred_batch(struct ctld *d, const Pb__JobRecord *job, const struct cred_node *at, const void *script, size_t len)
{
	Pb__ScriptRsp *s = pb__script_rsp__unpack(NULL, len, script);
	Pb__BatchLaunch b = PB__BATCH_LAUNCH__INIT;
	Pb__StepCred m;
	Pb__StepLayout layout;
	Pb__StepNode node, *list;
	uint8_t nonce[16];
	uint32_t rank;
	if (!s || !job->alloc || !job->alloc->batch_host) {
		if (s)
			pb__script_rsp__free_unpacked(s, NULL);
		return NULL;
	}
	cred_fill(d, &m, job, STEP_ID_BATCH, nonce);
	batch_layout(d, job, &layout, &node, &list, job->alloc->batch_host, &rank);
	m.layout = &layout;
	b.cred = &m;
	b.has_boot_time = b.has_slurmd_start_time = true;
	b.boot_time = at->boot_time;
	b.slurmd_start_time = at->slurmd_start_time;
	b.n_het = reply_components(d, job->job_id, &b.het);
	b.script = s->script;
	b.n_env = s->n_env;
	b.env = s->env;
	Pb__SignedBatch *r = xmalloc(sizeof *r);
	pb__signed_batch__init(r);
	r->batch.len = pb__batch_launch__get_packed_size(&b);
	r->batch.data = xmalloc(r->batch.len);
	pb__batch_launch__pack(&b, r->batch.data);
	r->signature.len = crypto_sign_BYTES;
	r->signature.data = xmalloc(crypto_sign_BYTES);
	sign_make(SIGN_BATCH, r->batch.data, r->batch.len, d->cred->secret, r->signature.data);
	pb__script_rsp__free_unpacked(s, NULL);
	for (size_t i = 0; i < b.n_het; i++)
		pb__job_record__free_unpacked(b.het[i], NULL);
	free(b.het);
	return r;
}
