/* used.c - records of what must not be used again (see used.h) */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "noded/cred.h"
#include "noded/jobs.h"
#include "noded/used.h"

#define SWITCH_BYTES (64u << 10)   /* a file takes so much before the other is looked at */
#define OVER_SEC 600               /* longer than a credential lives */

enum kind { KIND_NONCE = 1, KIND_OVER = 2 };
struct record { uint32_t kind, job_id, restarts, zero; uint64_t expires; uint8_t nonce[16]; };
_Static_assert(sizeof(struct record) == 40, "records are read as they are written");

static struct { int fd[2]; uint64_t last_expires[2]; size_t bytes; unsigned at; } used = { .fd = { -1, -1 } };

static void file_load(struct noded *n, unsigned i, uint64_t now)
{
	char path[3072];
	struct record r;
	ssize_t got;
	snprintf(path, sizeof path, "%s/used.%u", n->spool, i);
	used.fd[i] = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (used.fd[i] < 0) {
		log_error("cannot open %s: %s; steps cannot be launched", path, strerror(errno));
		return;
	}
	while ((got = read(used.fd[i], &r, sizeof r)) == sizeof r) {
		if (r.expires > used.last_expires[i])
			used.last_expires[i] = r.expires;
		if (r.expires < now)
			continue;
		if (r.kind == KIND_NONCE)
			cred_was_used(n->creds, r.nonce, r.expires);
		else if (r.kind == KIND_OVER)
			jobs_were_over(r.job_id, r.restarts);
	}
	off_t end = lseek(used.fd[i], 0, SEEK_END);
	if (got > 0 && ftruncate(used.fd[i], end - got) < 0)   /* cut off by a full disk */
		log_error("%s: %s", path, strerror(errno));
}

void used_load(struct noded *n)
{
	uint64_t now = (uint64_t)time(NULL);
	file_load(n, 0, now);
	file_load(n, 1, now);
	used.bytes = SWITCH_BYTES;     /* the first record chooses */
}

static int note(const struct noded *n, const struct record *r)
{
	unsigned other = !used.at;
	if (used.bytes >= SWITCH_BYTES && used.fd[other] >= 0 && used.last_expires[other] < (uint64_t)time(NULL) && !ftruncate(used.fd[other], 0)) {
		used.at = other;
		used.bytes = 0;
		used.last_expires[other] = 0;
	}
	if (used.fd[used.at] < 0)
		return -EBADF;
	ssize_t done = write(used.fd[used.at], r, sizeof *r);
	if (done != sizeof *r) {
		int rc = done < 0 ? -errno : -ENOSPC;
		if (done > 0 && ftruncate(used.fd[used.at], lseek(used.fd[used.at], 0, SEEK_END) - done) < 0)
			log_error("%s/used.%u: %s", n->spool, used.at, strerror(errno));
		return rc;
	}
	used.bytes += sizeof *r;
	if (r->expires > used.last_expires[used.at])
		used.last_expires[used.at] = r->expires;
	return 0;
}

int used_nonce(const struct noded *n, const uint8_t nonce[16], uint64_t expires)
{
	struct record r = { .kind = KIND_NONCE, .expires = expires };
	memcpy(r.nonce, nonce, sizeof r.nonce);
	return note(n, &r);
}

void used_over(const struct noded *n, uint32_t job_id, uint32_t restarts)
{
	struct record r = { .kind = KIND_OVER, .job_id = job_id, .restarts = restarts, .expires = (uint64_t)time(NULL) + OVER_SEC };
	int rc = note(n, &r);
	if (rc < 0)
		log_error("cannot note in %s that job %u is over: %s", n->spool, job_id, strerror(-rc));
}
