/* wire_test.c - proves that calls pass between a real server, blocking clients and links, and that what is forged, malformed,
 * oversized, replayed, expired, reordered or not allowed is refused while the server goes on */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <netinet/in.h>
#include <unistd.h>
#include <sodium.h>

#include "base/alloc.h"
#include "proto/controller.pb-c.h"
#include "wire/auth.h"
#include "wire/rpc.h"

/* --- a server on its own thread -------------------------------------------------------------- */

static char dir[64], key_path[128], sack_path[128];
static struct {
	pthread_t thread;
	uv_loop_t loop;
	uv_async_t stop;
	struct wire_auth *auth;
	struct wire_server *server;
	struct sack *sack;
	uint16_t port;
	struct wire_req *held;
	int gone;
} srv;
static struct wire_auth *auth;      /* the clients' */

static bool policy(const struct wire_identity *id, enum rpc_who who, void *arg)
{
	return who == RPC_WHO_OPER;
}

static void on_gone(struct wire_req *r, void *arg)
{
	__atomic_add_fetch(&srv.gone, 1, __ATOMIC_SEQ_CST);
	wire_reply_error(r, -ECANCELED, NULL);
}

static void release(void *arg)
{
	free(arg);
}

/* PING answers; SCRIPT answers with a big body made of pieces; WAIT is never answered; the rest is an error. */
static void handler(struct wire_req *r, void *arg)
{
	if (wire_req_rpc(r) == RPC_PING) {
		Pb__PingRsp rsp = PB__PING_RSP__INIT;
		rsp.host = (char *)wire_req_peer(r);
		rsp.now = wire_req_identity(r)->known ? wire_req_identity(r)->uid : UINT32_MAX;
		wire_reply(r, &rsp.base);
	} else if (wire_req_rpc(r) == RPC_JOB_LIST) {
		size_t n = 5000, len = 4096;
		uint8_t *record = xcalloc(1, len + 8);
		struct wire_piece *piece = xcalloc(n, sizeof *piece);
		for (size_t i = 0; i < n; i++)
			piece[i] = (struct wire_piece){ record, len };
		record[0] = (15 << 3) | 2;      /* one unknown field each, bytes */
		record[1] = 0xfd;
		record[2] = 0x1f;               /* 4093 */
		wire_reply_pieces(r, piece, n, release, record);
		free(piece);
	} else if (wire_req_rpc(r) == RPC_WAIT) {
		wire_req_on_gone(r, on_gone, NULL);
	} else {
		wire_reply_error(r, -ESLURM_INVALID_JOB_ID, "not here");
	}
}

static void on_stop(uv_async_t *a)
{
	wire_server_stop(srv.server);
	sack_stop(srv.sack);
	uv_close((uv_handle_t *)a, NULL);
}

static void *serve(void *arg)
{
	uv_run(&srv.loop, UV_RUN_DEFAULT);
	return NULL;
}

static int group_up(void **state)
{
	uint8_t key[64];
	snprintf(dir, sizeof dir, "/tmp/wire_test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(key_path, sizeof key_path, "%s/slurm.key", dir);
	snprintf(sack_path, sizeof sack_path, "%s/sack.socket", dir);
	int fd = open(key_path, O_CREAT | O_WRONLY, 0600);
	randombytes_buf(key, sizeof key);
	assert_int_equal(write(fd, key, sizeof key), sizeof key);
	close(fd);
	struct error err = { 0 };
	struct wire_auth_params p = { .cluster = "test", .key_path = key_path };
	assert_int_equal(wire_auth_create(&p, &srv.auth, &err), 0);
	usleep(2000);   /* tokens older than the server are refused: be a later millisecond */
	p = (struct wire_auth_params){ .cluster = "test", .sack_path = sack_path };
	assert_int_equal(wire_auth_create(&p, &auth, &err), 0);
	uv_loop_init(&srv.loop);
	uv_async_init(&srv.loop, &srv.stop, on_stop);
	assert_int_equal(wire_server_start(&srv.loop, srv.auth, "127.0.0.1", 0, handler, policy, NULL, &srv.server, &err), 0);
	assert_int_equal(sack_start(&srv.loop, srv.auth, sack_path, &srv.sack, &err), 0);
	srv.port = wire_server_port(srv.server);
	return pthread_create(&srv.thread, NULL, serve, NULL);
}

static int group_down(void **state)
{
	uv_async_send(&srv.stop);
	pthread_join(srv.thread, NULL);
	assert_int_equal(uv_loop_close(&srv.loop), 0);
	assert_int_equal(access(sack_path, F_OK), -1);   /* it tidies up */
	wire_auth_destroy(srv.auth);
	wire_auth_destroy(auth);
	unlink(key_path);
	return rmdir(dir);
}

static struct wire_client *client_new(struct wire_auth *a)
{
	struct error err = { 0 };
	struct wire_client *c = NULL;
	int rc = wire_client_open(a, "127.0.0.1", srv.port, 5000, NULL, &c, &err);
	if (rc)
		fail_msg("%s", err.line);
	return c;
}

static const Pb__Empty empty = PB__EMPTY__INIT;

static int ping(struct wire_client *c, uint64_t *ret_uid)
{
	ProtobufCMessage *rsp = NULL;
	struct error err = { 0 };
	int rc = wire_call(c, RPC_PING, &empty.base, 5000, &rsp, &err);
	if (!rc) {
		if (ret_uid)
			*ret_uid = ((Pb__PingRsp *)rsp)->now;
		protobuf_c_message_free_unpacked(rsp, NULL);
	}
	return rc;
}

/* --- what works ------------------------------------------------------------------------------ */

static void test_calls(void **state)
{
	uint64_t uid = 1;
	struct wire_client *c = client_new(auth);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ping(c, &uid), 0);
	assert_int_equal(uid, geteuid());
	wire_client_close(c);
	c = client_new(NULL);                 /* nobody: only OPEN calls */
	assert_int_equal(ping(c, &uid), 0);
	assert_int_equal(uid, UINT32_MAX);
	wire_client_close(c);
}

static void test_big_answer(void **state)
{
	struct error err = { 0 };
	Pb__JobListReq req = PB__JOB_LIST_REQ__INIT;
	struct wire_client *c = client_new(auth);
	uint8_t *body = NULL;
	size_t len = 0;
	assert_int_equal(wire_call_raw(c, RPC_JOB_LIST, &req.base, 20000, &body, &len, &err), 0);
	assert_int_equal(len, 5000 * 4096);
	struct wire_skim s;
	struct wire_field f;
	size_t n = 0;
	wire_skim_start(&s, body, len);
	while (wire_skim_next(&s, &f))
		n += f.number == 15 && f.len == 4093;
	assert_false(s.bad);
	assert_int_equal(n, 5000);
	free(body);
	wire_client_close(c);
}

static void test_pipeline(void **state)
{
	struct error err = { 0 };
	struct wire_client *c = client_new(auth);
	uint32_t seq = 0, got = 0;
	int code = 0;
	for (int i = 0; i < 20000; i++)
		assert_int_equal(wire_send(c, RPC_PING, &empty.base, &seq, &err), 0);
	for (int i = 0; i < 20000; i++) {
		ProtobufCMessage *rsp = NULL;
		assert_int_equal(wire_recv(c, 5000, &got, &code, &rsp, &err), 0);
		assert_int_equal(code, 0);
		assert_int_equal(got, i + 1);
		protobuf_c_message_free_unpacked(rsp, NULL);
	}
	wire_client_close(c);
}

static void test_errors_and_policy(void **state)
{
	struct error err = { 0 };
	ProtobufCMessage *rsp = NULL;
	struct wire_client *c = client_new(auth);
	Pb__ScriptReq script = PB__SCRIPT_REQ__INIT;
	Pb__NodeUpdateReq oper = PB__NODE_UPDATE_REQ__INIT;
	oper.nodes = "n1";
	assert_int_equal(wire_call(c, RPC_SCRIPT, &script.base, 5000, &rsp, &err), -ESLURM_INVALID_JOB_ID);
	assert_string_equal(err.line, "not here");
	assert_int_equal(wire_call(c, RPC_NODE_UPDATE, &oper.base, 5000, &rsp, &err), -ESLURM_INVALID_JOB_ID);   /* allowed: reaches the handler */
	assert_int_equal(wire_call(c, RPC_RECONFIGURE, &empty.base, 5000, &rsp, &err), -ESLURM_ACCESS_DENIED);
	assert_int_equal(ping(c, NULL), 0);
	wire_client_close(c);
	c = client_new(NULL);
	assert_int_equal(wire_call(c, RPC_SCRIPT, &script.base, 5000, &rsp, &err), -ESLURM_AUTH);
	wire_client_close(c);
}

static void test_gone(void **state)
{
	struct error err = { 0 };
	struct wire_client *c = client_new(auth);
	Pb__WaitReq req = PB__WAIT_REQ__INIT;
	ProtobufCMessage *rsp = NULL;
	assert_int_equal(wire_call(c, RPC_WAIT, &req.base, 50, &rsp, &err), -ESLURM_SOCKET_TIMEOUT);
	assert_int_equal(ping(c, NULL), 0);   /* a call that waits does not stop others */
	wire_client_close(c);
	for (int i = 0; i < 500 && !__atomic_load_n(&srv.gone, __ATOMIC_SEQ_CST); i++)
		usleep(10000);
	assert_int_equal(srv.gone, 1);
}

/* --- what is refused: frames made by hand ---------------------------------------------------- */

struct raw { int fd; struct frame_channel ch; struct token t; uint32_t seq; };

static struct raw raw_open(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(srv.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct raw r = { .fd = socket(AF_INET, SOCK_STREAM, 0), .ch.keyed = true };
	struct timeval wait = { .tv_sec = 5 };
	struct error err = { 0 };
	assert_int_equal(connect(r.fd, (struct sockaddr *)&a, sizeof a), 0);
	setsockopt(r.fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
	assert_int_equal(auth_token_make(auth, NULL, r.ch.key, &r.t, &err), 0);
	return r;
}

/* A PING frame into `out`; returns its length. */
static size_t raw_frame(struct raw *r, uint8_t *out)
{
	struct frame_head h = { .kind = FRAME_CALL, .rpc = RPC_PING, .seq = ++r->seq, .token_len = r->t.len };
	struct frame_part part = { r->t.data, r->t.len };
	frame_head_write(&h, out);
	frame_seal(&r->ch, out, &part, 1);
	memcpy(out + FRAME_HEAD, r->t.data, r->t.len);
	size_t n = FRAME_HEAD + r->t.len;
	r->t.len = 0;
	return n;
}

/* Sends and reads one head: 0 for an answer, the code of an error, -1 for the end. */
static int raw_talk(struct raw *r, const uint8_t *data, size_t len)
{
	uint8_t head[FRAME_HEAD], body[4096];
	struct frame_head h;
	if (len && send(r->fd, data, len, MSG_NOSIGNAL) != (ssize_t)len)
		return -1;
	if (recv(r->fd, head, sizeof head, MSG_WAITALL) != sizeof head || frame_head_read(head, &h))
		return -1;
	assert_true(h.body_len <= sizeof body);
	if (h.body_len)
		assert_int_equal(recv(r->fd, body, h.body_len, MSG_WAITALL), h.body_len);
	return h.kind == FRAME_ERROR ? (int)h.code : 0;
}

static void alive(void)
{
	struct wire_client *c = client_new(auth);
	assert_int_equal(ping(c, NULL), 0);
	wire_client_close(c);
}

static void test_forged(void **state)
{
	uint8_t f[8192];
	for (size_t bit = 0; bit < 200 * 8; bit += 37) {   /* flip a bit anywhere in a first frame */
		struct raw r = raw_open();
		size_t n = raw_frame(&r, f);
		if (bit / 8 >= n) {
			close(r.fd);
			break;
		}
		f[bit / 8] ^= 1 << bit % 8;
		shutdown(r.fd, 0);
		send(r.fd, f, n, MSG_NOSIGNAL);
		shutdown(r.fd, SHUT_WR);
		close(r.fd);
	}
	struct raw r = raw_open();
	size_t n = raw_frame(&r, f);
	f[30] ^= 1;                                        /* in the MAC */
	assert_int_equal(raw_talk(&r, f, n), ESLURM_AUTH);
	assert_int_equal(raw_talk(&r, NULL, 0), -1);
	close(r.fd);
	r = raw_open();
	n = raw_frame(&r, f);
	f[FRAME_HEAD + 60] ^= 1;                           /* in the token */
	assert_int_equal(raw_talk(&r, f, n), ESLURM_AUTH);
	close(r.fd);
	alive();
}

static void test_malformed(void **state)
{
	uint8_t junk[256] = "GET / HTTP/1.1\r\nHost: nothing of ours here, and some more text\r\n\r\n";
	struct raw r = raw_open();
	assert_int_equal(raw_talk(&r, junk, sizeof junk), ESLURM_PROTOCOL);
	close(r.fd);
	r = raw_open();
	uint8_t f[8192];
	size_t n = raw_frame(&r, f);
	f[4] = 9;
	assert_int_equal(raw_talk(&r, f, n), ESLURM_PROTOCOL_VERSION);
	close(r.fd);
	r = raw_open();                                    /* an answer where calls are taken */
	n = raw_frame(&r, f);
	f[5] = FRAME_REPLY;
	f[12] = f[13] = 0;
	assert_int_equal(raw_talk(&r, f, n), ESLURM_PROTOCOL);
	close(r.fd);
	r = raw_open();                                    /* right frame, body that is no message */
	struct frame_head h = { .kind = FRAME_CALL, .rpc = RPC_SUBMIT, .seq = 1, .token_len = r.t.len, .body_len = 3 };
	struct frame_part part[2] = { { r.t.data, r.t.len }, { "\xff\xff\xff", 3 } };
	frame_head_write(&h, f);
	frame_seal(&r.ch, f, part, 2);
	memcpy(f + FRAME_HEAD, r.t.data, r.t.len);
	memcpy(f + FRAME_HEAD + r.t.len, "\xff\xff\xff", 3);
	assert_int_equal(raw_talk(&r, f, FRAME_HEAD + r.t.len + 3), ESLURM_PROTOCOL);
	r.t.len = 0;                                       /* a call that no table knows; the connection lives on */
	h = (struct frame_head){ .kind = FRAME_CALL, .rpc = 9999, .seq = 2 };
	frame_head_write(&h, f);
	frame_seal(&r.ch, f, NULL, 0);
	assert_int_equal(raw_talk(&r, f, FRAME_HEAD), ESLURM_NOT_SUPPORTED);
	n = raw_frame(&r, f);
	assert_int_equal(raw_talk(&r, f, n), 0);
	close(r.fd);
	alive();
}

static void test_oversized(void **state)
{
	uint8_t f[8192];
	struct raw r = raw_open();
	struct frame_head h = { .kind = FRAME_CALL, .rpc = RPC_PING, .seq = 1, .token_len = r.t.len, .body_len = 1u << 30 };
	frame_head_write(&h, f);
	assert_int_equal(raw_talk(&r, f, FRAME_HEAD), ESLURM_TOO_LARGE);   /* on the head alone */
	close(r.fd);
	alive();
}

static void test_unauthenticated(void **state)
{
	uint8_t f[FRAME_HEAD];
	struct raw r = raw_open();
	struct frame_head h = { .kind = FRAME_CALL, .rpc = RPC_SUBMIT, .seq = 1, .body_len = 4u << 20 };
	frame_head_write(&h, f);
	assert_int_equal(raw_talk(&r, f, sizeof f), ESLURM_AUTH);          /* before it sends megabytes */
	close(r.fd);
}

static void test_replayed(void **state)
{
	uint8_t first[8192], second[8192];
	struct raw r = raw_open();
	size_t n = raw_frame(&r, first);
	assert_int_equal(raw_talk(&r, first, n), 0);
	size_t m = raw_frame(&r, second);
	assert_int_equal(raw_talk(&r, second, m), 0);
	assert_int_equal(raw_talk(&r, second, m), ESLURM_AUTH);            /* the same frame again */
	close(r.fd);
	struct raw again = raw_open();
	assert_int_equal(raw_talk(&again, first, n), ESLURM_AUTH);         /* the whole connection again */
	close(again.fd);
}

static void test_reordered(void **state)
{
	uint8_t f[8192], a[FRAME_HEAD], b[FRAME_HEAD];
	struct raw r = raw_open();
	assert_int_equal(raw_talk(&r, f, raw_frame(&r, f)), 0);
	raw_frame(&r, a);
	raw_frame(&r, b);
	assert_int_equal(raw_talk(&r, b, sizeof b), ESLURM_AUTH);
	close(r.fd);
	alive();
}

static void test_token_times(void **state)
{
	struct error err = { 0 };
	struct token_facts f = { .uid = 1 }, got;
	struct token t;
	uint8_t key[TOKEN_KEY], text[64] = { 0 };
	int fd = open(key_path, O_RDONLY);
	assert_int_equal(read(fd, text, sizeof text), sizeof text);
	close(fd);
	crypto_generichash(key, sizeof key, text, sizeof text, (const uint8_t *)"berth cluster key", 17);
	uint64_t now = auth_now_ms();
	snprintf(f.cluster, sizeof f.cluster, "%s", "test");
	static const struct { int64_t issued, expires; int code; const char *text; } cases[] = {
		{ 0, 60000, 0, "" }, { -70000, -10000, -ESLURM_AUTH, "expired" }, { 100000, 160000, -ESLURM_AUTH, "future" },
		{ 0, 86400000, -ESLURM_AUTH, "future" }, { -3600000, 60000, -EAGAIN, "older than this daemon" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		f.issued_ms = now + cases[i].issued;
		f.expires_ms = now + cases[i].expires;
		token_seal(key, &f, &t);
		assert_int_equal(auth_token_open(srv.auth, t.data, t.len, &got, &err), cases[i].code);
		if (cases[i].code)
			assert_non_null(strstr(err.line, cases[i].text));
	}
	f.issued_ms = now, f.expires_ms = now + 1000;
	snprintf(f.cluster, sizeof f.cluster, "%s", "other");
	token_seal(key, &f, &t);
	assert_int_equal(auth_token_open(srv.auth, t.data, t.len, &got, &err), -ESLURM_AUTH);
	key[0] ^= 1;
	snprintf(f.cluster, sizeof f.cluster, "%s", "test");
	token_seal(key, &f, &t);
	assert_int_equal(auth_token_open(srv.auth, t.data, t.len, &got, &err), -ESLURM_AUTH);
}

static void test_nonces(void **state)
{
	uint8_t id[TOKEN_ID] = { 0 };
	struct nonce_cache *c = nonce_cache_create(1000, 10000);
	assert_int_equal(nonce_cache_add(c, id, 1), -EEXIST);
	for (uint32_t i = 1; i <= 10000; i++) {
		memcpy(id, &i, sizeof i);
		assert_int_equal(nonce_cache_add(c, id, 5000), 0);
		assert_int_equal(nonce_cache_add(c, id, 5000), -EEXIST);
	}
	id[9] = 1;
	assert_int_equal(nonce_cache_add(c, id, 5000), -ENOSPC);
	id[9] = 0;
	assert_int_equal(nonce_cache_add(c, id, 6500), -EEXIST);   /* still known after 1.5 times its time */
	assert_int_equal(nonce_cache_add(c, id, 9000), 0);
	nonce_cache_destroy(c);
}

static void test_key_mode(void **state)
{
	struct error err = { 0 };
	struct wire_auth *a = NULL;
	struct wire_auth_params p = { .cluster = "test", .key_path = key_path };
	assert_int_equal(chmod(key_path, 0644), 0);
	assert_int_equal(wire_auth_create(&p, &a, &err), -EPERM);
	assert_non_null(strstr(err.hint, "chmod 600"));
	assert_int_equal(chmod(key_path, 0600), 0);
	p.key_path = "/nonexistent/slurm.key";
	assert_int_equal(wire_auth_create(&p, &a, &err), -ENOENT);
}

static void test_skim_malformed(void **state)
{
	static const struct { const char *data; size_t len; } bad[] = {
		{ "\x0a\x05" "ab", 4 }, { "\x08", 1 }, { "\x00\x00", 2 }, { "\x0b", 1 }, { "\x0d\x01\x02", 3 },
		{ "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11 }, { "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },
	};
	struct wire_skim s;
	struct wire_field f;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		wire_skim_start(&s, (const uint8_t *)bad[i].data, bad[i].len);
		assert_false(wire_skim_next(&s, &f));
		assert_true(s.bad);
	}
}

/* --- links ----------------------------------------------------------------------------------- */

struct link_world { uv_loop_t loop; struct wire_link *link; int done, codes[64]; };

static void on_done(int code, const ProtobufCMessage *rsp, const char *detail, void *arg)
{
	struct link_world *w = arg;
	if (!code)
		assert_non_null(rsp);
	w->codes[w->done++ % 64] = code;
}

static void run_until(struct link_world *w, int n)
{
	while (w->done < n)
		uv_run(&w->loop, UV_RUN_ONCE);
}

static void test_link(void **state)
{
	struct link_world w = { 0 };
	uv_loop_init(&w.loop);
	w.link = wire_link_create(&w.loop, srv.auth, "127.0.0.1", srv.port);
	for (int i = 0; i < 50; i++)
		wire_link_call(w.link, RPC_PING, &empty.base, 5000, on_done, &w);
	assert_int_equal(w.done, 0);
	run_until(&w, 50);
	for (int i = 0; i < 50; i++)
		assert_int_equal(w.codes[i], 0);
	Pb__WaitReq wait = PB__WAIT_REQ__INIT;
	wire_link_call(w.link, RPC_WAIT, &wait.base, 30, on_done, &w);
	run_until(&w, 51);
	assert_int_equal(w.codes[50], -ESLURM_SOCKET_TIMEOUT);
	wire_link_call(w.link, RPC_RECONFIGURE, &empty.base, 5000, on_done, &w);
	run_until(&w, 52);
	assert_int_equal(w.codes[51], -ESLURM_ACCESS_DENIED);
	wire_link_set_addr(w.link, "127.0.0.1", 1);        /* nobody listens there */
	wire_link_call(w.link, RPC_PING, &empty.base, 5000, on_done, &w);
	run_until(&w, 53);
	assert_int_equal(w.codes[52], -ESLURM_COMM);
	/* By name (where any resolves: a minimal system has no hosts file), and back again. */
	struct addrinfo *list = NULL;
	bool named = !getaddrinfo("localhost", NULL, NULL, &list);
	if (named)
		freeaddrinfo(list);
	wire_link_set_addr(w.link, named ? "localhost" : "127.0.0.1", srv.port);
	wire_link_call(w.link, RPC_PING, &empty.base, 5000, on_done, &w);
	run_until(&w, 54);
	assert_int_equal(w.codes[53], 0);
	wire_link_call(w.link, RPC_WAIT, &wait.base, -1, on_done, &w);
	wire_link_destroy(w.link);
	assert_int_equal(w.done, 55);
	assert_int_equal(w.codes[54], -ECANCELED);
	uv_run(&w.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w.loop), 0);
}

static void test_bound(void **state)
{
	struct error err = { 0 };
	uint8_t hash[32], session[FRAME_KEY];
	struct token t;
	struct token_facts f;
	wire_hash("what", 4, hash);
	assert_int_equal(auth_token_make(auth, hash, session, &t, &err), 0);
	assert_int_equal(auth_token_open(srv.auth, t.data, t.len, &f, &err), 0);
	assert_memory_equal(f.bound, hash, 32);
	assert_memory_equal(f.session, session, FRAME_KEY);
	assert_int_equal(f.uid, geteuid());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls), cmocka_unit_test(test_big_answer), cmocka_unit_test(test_pipeline),
		cmocka_unit_test(test_errors_and_policy), cmocka_unit_test(test_gone), cmocka_unit_test(test_forged),
		cmocka_unit_test(test_malformed), cmocka_unit_test(test_oversized), cmocka_unit_test(test_unauthenticated),
		cmocka_unit_test(test_replayed), cmocka_unit_test(test_reordered), cmocka_unit_test(test_token_times),
		cmocka_unit_test(test_nonces), cmocka_unit_test(test_key_mode), cmocka_unit_test(test_skim_malformed),
		cmocka_unit_test(test_bound), cmocka_unit_test(test_link),
	};
	return cmocka_run_group_tests(tests, group_up, group_down);
}
