/* emulate_step.c - see emulate_step.h
 *
 * Ten thousand nodes get the same credential at once: it is checked and unpacked for the first of them and kept for the others. Lifetime of a step: from its launch until
 * its connection to srun is closed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sodium.h>
#include <uthash.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/log.h"
#include "base/str.h"
#include "noded/emulate.h"
#include "noded/emulate_step.h"
#include "wire/sign.h"
#include "wire/stepio.h"

#define PROOF_LEN 32

struct place { const Pb__StepNode *row; uint32_t index; UT_hash_handle hh; };
/* The credential that came last. */
struct known { uint8_t *bytes; size_t len; Pb__StepCred *cred; struct place *place, *by_name; };
struct emu_step {
	uv_tcp_t tcp;
	uv_connect_t connect;
	uv_timer_t timer;
	unsigned handles;
	char *node;
	uint32_t job_id, step_id, index, *task;
	size_t tasks;
	uint64_t run_ms;
	uint8_t key[PROOF_LEN], in[STEPIO_HEAD + PROOF_LEN];
	size_t in_len;
	bool proven, ended;
	struct emu_step **head, *next, *prev;
};
struct emu_steps { uv_loop_t *loop; struct cred_book *creds; struct known known; };
struct write { uv_write_t uv; uint8_t data[]; };

struct emu_steps *emu_steps_create(uv_loop_t *loop, struct cred_book *creds)
{
	struct emu_steps *e = xcalloc(1, sizeof *e);
	e->loop = loop;
	e->creds = creds;
	return e;
}

/* --- the connection --------------------------------------------------------------------------- */

static void step_closed(uv_handle_t *h)
{
	struct emu_step *s = h->data;
	if (--s->handles)
		return;
	if (s->next)
		s->next->prev = s->prev;
	*(s->prev ? &s->prev->next : s->head) = s->next;
	free(s->node);
	free(s->task);
	free(s);
}

static void step_close(struct emu_step *s)
{
	if (uv_is_closing((uv_handle_t *)&s->tcp))
		return;
	s->ended = true;
	uv_close((uv_handle_t *)&s->tcp, step_closed);
	uv_close((uv_handle_t *)&s->timer, step_closed);
}

static void proof(const struct emu_step *s, const char *who, uint8_t ret[PROOF_LEN])
{
	char text[512];
	int n = snprintf(text, sizeof text, "%s%u.%u %s", who, s->job_id, s->step_id, s->node);
	crypto_auth(ret, (const uint8_t *)text, (size_t)n, s->key);
}

static void written(uv_write_t *u, int status)
{
	struct emu_step *s = u->handle->data;
	free(u);
	if (status < 0 || s->ended)
		step_close(s);
}

static void frame_send(struct emu_step *s, uint8_t type, uint32_t task, const ProtobufCMessage *msg)
{
	size_t n = msg ? protobuf_c_message_get_packed_size(msg) : 0;
	struct write *w = xmalloc(sizeof *w + STEPIO_HEAD + n);
	w->data[0] = type;
	put_u32(w->data + 1, task);
	put_u32(w->data + 5, (uint32_t)n);
	if (msg)
		protobuf_c_message_pack(msg, w->data + STEPIO_HEAD);
	uv_buf_t buf = uv_buf_init((char *)w->data, (unsigned)(STEPIO_HEAD + n));
	if (uv_write(&w->uv, (uv_stream_t *)&s->tcp, &buf, 1, written) < 0) {
		free(w);
		step_close(s);
	}
}

/* All tasks have ended with the wait status. */
static void step_end(struct emu_step *s, uint32_t status)
{
	Pb__IoExit m = PB__IO_EXIT__INIT;
	if (!s->proven || s->ended) {
		step_close(s);
		return;
	}
	for (size_t i = 0; i < s->tasks; i++) {
		frame_send(s, STEPIO_STDOUT, s->task[i], NULL);
		frame_send(s, STEPIO_STDERR, s->task[i], NULL);
	}
	m.task = s->task;
	m.n_task = s->tasks;
	m.status = status;
	frame_send(s, STEPIO_EXIT, STEPIO_ALL, &m.base);
	s->ended = true;                   /* closed when all is written */
	frame_send(s, STEPIO_END, STEPIO_ALL, NULL);
}

static void on_run_over(uv_timer_t *t) { step_end(t->data, 0); }

static void begin(struct emu_step *s)
{
	Pb__IoStarted m = PB__IO_STARTED__INIT;
	uint32_t *pid = xcalloc(s->tasks + 1, sizeof *pid);
	for (size_t i = 0; i < s->tasks; i++)
		pid[i] = 1;
	m.task = s->task;
	m.pid = pid;
	m.n_task = m.n_pid = s->tasks;
	frame_send(s, STEPIO_STARTED, STEPIO_ALL, &m.base);
	free(pid);
	if (s->run_ms)
		uv_timer_start(&s->timer, on_run_over, s->run_ms, 0);
	else
		step_end(s, 0);
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *ret)
{
	static char rest[4096];
	struct emu_step *s = h->data;
	*ret = s->proven ? uv_buf_init(rest, sizeof rest) : uv_buf_init((char *)s->in + s->in_len, (unsigned)(sizeof s->in - s->in_len));
}

/* srun's proof; after it nothing that srun says is of interest. */
static void on_read(uv_stream_t *u, ssize_t n, const uv_buf_t *buf)
{
	struct emu_step *s = u->data;
	uint8_t want[PROOF_LEN];
	(void)buf;
	if (n < 0) {
		step_close(s);
		return;
	}
	if (s->proven || (s->in_len += (size_t)n) < sizeof s->in)
		return;
	proof(s, "srun ", want);
	s->proven = s->in[0] == STEPIO_PROOF && !sodium_memcmp(want, s->in + STEPIO_HEAD, sizeof want);
	if (s->proven)
		begin(s);
	else
		step_close(s);
}

static void on_connect(uv_connect_t *u, int status)
{
	struct emu_step *s = u->handle->data;
	Pb__IoHello m = PB__IO_HELLO__INIT;
	uint8_t mac[PROOF_LEN];
	if (status < 0 || s->ended) {
		log_debug("no connection to srun: %s", uv_strerror(status));
		step_close(s);
		return;
	}
	proof(s, "", mac);
	m.job_id = s->job_id;
	m.step_id = s->step_id;
	m.node = s->node;
	m.node_index = s->index;
	m.proof = (ProtobufCBinaryData){ sizeof mac, mac };
	frame_send(s, STEPIO_HELLO, STEPIO_ALL, &m.base);
	(void)uv_read_start((uv_stream_t *)&s->tcp, on_alloc, on_read);
}

/* --- launches --------------------------------------------------------------------------------- */

static int known_set(struct emu_steps *e, const Pb__SignedCred *sealed, struct error *err)
{
	struct known *k = &e->known;
	if (k->bytes && k->len == sealed->cred.len && !memcmp(k->bytes, sealed->cred.data, k->len))
		return 0;
	int rc = cred_check_signature(e->creds, SIGN_CRED, &sealed->cred, &sealed->signature, err);
	Pb__StepCred *cred = rc ? NULL : (Pb__StepCred *)(void *)wire_unpack(&pb__step_cred__descriptor, sealed->cred.data, sealed->cred.len);
	if (!cred)
		return rc ? rc : error_set(err, ESLURM_PROTOCOL, "malformed step credential");
	HASH_CLEAR(hh, k->by_name);
	free(k->place);
	free(k->bytes);
	if (k->cred)
		pb__step_cred__free_unpacked(k->cred, NULL);
	*k = (struct known){ .bytes = xmemdup(sealed->cred.data, sealed->cred.len), .len = sealed->cred.len, .cred = cred };
	k->place = xcalloc(cred->layout->n_node + 1, sizeof *k->place);
	for (size_t i = 0; i < cred->layout->n_node; i++) {
		k->place[i] = (struct place){ .row = cred->layout->node[i], .index = (uint32_t)i };
		HASH_ADD_KEYPTR(hh, k->by_name, k->place[i].row->name, strlen(k->place[i].row->name), &k->place[i]);
	}
	return 0;
}

static struct emu_step *step_find(struct emu_step *from, uint32_t job_id, const uint32_t *step_id)
{
	for (struct emu_step *s = from; s; s = s->next)
		if (!s->ended && s->job_id == job_id && (!step_id || s->step_id == *step_id))
			return s;
	return NULL;
}

static double sleep_sec(const Pb__LaunchSpec *spec)
{
	struct str line = STR_INIT;
	for (size_t i = 0; i < spec->n_argv; i++)
		str_addf(&line, "%s ", spec->argv[i]);
	double sec = line.data ? emulate_script_sleep(line.data, line.len) : 0;
	str_fini(&line);
	return sec;
}

int emu_step_launch(struct emu_steps *e, struct emu_step **head, const char *node, const Pb__LaunchSpec *spec, uint32_t uid, struct error *err)
{
	struct sockaddr_in to;
	struct place *p;
	int rc = known_set(e, spec->cred, err);
	if (rc)
		return rc;
	const Pb__StepCred *cred = e->known.cred;
	HASH_FIND_STR(e->known.by_name, node, p);
	if (!p || cred->expires < (uint64_t)time(NULL))
		return error_set(err, ESLURM_CRED, "the credential of step %u.%u is %s", cred->job_id, cred->step_id, p ? "too old" : "not for this node");
	if (uid != cred->uid)
		return error_set(err, ESLURM_ACCESS_DENIED, "step %u.%u belongs to uid %u, the launch comes from uid %u", cred->job_id, cred->step_id, cred->uid, uid);
	if (step_find(*head, cred->job_id, &cred->step_id))
		return error_set(err, EEXIST, "step %u.%u runs here already", cred->job_id, cred->step_id);
	if (!spec->io_host || uv_ip4_addr(spec->io_host, (int)spec->io_port, &to) || spec->io_key.len != PROOF_LEN)
		return error_set(err, ESLURM_NOT_SUPPORTED, "emulated nodes run steps of an srun at a numeric address only");
	struct emu_step *s = xcalloc(1, sizeof *s);
	*s = (struct emu_step){ .head = head, .handles = 2, .node = xstrdup(node), .job_id = cred->job_id, .step_id = cred->step_id, .index = p->index, .tasks = p->row->n_task_ids, .next = *head };
	s->task = xcalloc(s->tasks + 1, sizeof *s->task);
	for (size_t i = 0; i < s->tasks; i++)
		s->task[i] = p->row->task_ids[i];
	s->run_ms = (uint64_t)(sleep_sec(spec) * 1000);
	memcpy(s->key, spec->io_key.data, PROOF_LEN);
	if (s->next)
		s->next->prev = s;
	*head = s;
	uv_tcp_init(e->loop, &s->tcp);
	uv_timer_init(e->loop, &s->timer);
	s->tcp.data = s->timer.data = s;
	rc = uv_tcp_connect(&s->connect, &s->tcp, (struct sockaddr *)&to, on_connect);
	if (rc) {
		step_close(s);
		return error_set(err, -rc, "cannot connect to srun: %s", uv_strerror(rc));
	}
	return 0;
}

size_t emu_step_kill(struct emu_step *head, uint32_t job_id, const uint32_t *step_id, int signal)
{
	size_t n = 0;
	for (struct emu_step *s = step_find(head, job_id, step_id); s; s = step_find(s->next, job_id, step_id), n++)
		step_end(s, (uint32_t)signal);
	return n;
}
