/* srun_watch.c - is the job still there, while slurmstepds are waited for?
 *
 * A node whose prolog runs connects late, and where that fails never: the end of the job is then all that can be heard. It is asked for with one long call on a
 * connection of its own, and only when a node has not come within a second, so that a step that starts at once pays nothing. */
#include <string.h>
#include <sys/epoll.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/srun.h"

#define LATE_MS 1000
#define PING_MS 500

struct job_watch { struct watch watch; struct srun *s; struct client *client; };

static bool awaited(const struct node_info *n) { return !n->is_ended && !n->conn; }

static bool any_awaited(const struct srun *s)
{
	for (size_t i = 0; i < s->node_count; i++)
		if (awaited(&s->node[i]))
			return true;
	return false;
}

static void watch_end(struct job_watch *w)
{
	watch_set(w->s, &w->watch, 0);
	client_close(w->client);
	w->watch.fd = -1;
	w->client = NULL;
	w->s->late_ms = clock_mono_ms() + LATE_MS;
}

static void answered(struct watch *watch, uint32_t events)
{
	struct job_watch *w = (struct job_watch *)watch;
	struct srun *s = w->s;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	int rc = client_take(w->client, &msg, &err);
	watch_end(w);
	if (rc < 0)
		return;                    /* slurmctld is restarted, say: asked again */
	const Pb__WaitRsp *m = (const Pb__WaitRsp *)msg;
	for (size_t i = 0; i < s->node_count; i++)
		if (awaited(&s->node[i]))
			node_lost(s, &s->node[i], m->detail && *m->detail ? m->detail : "the job has ended");
	protobuf_c_message_free_unpacked(msg, NULL);
}

uint64_t job_watch_due(const struct srun *s) { return s->is_attached || (s->job_watch && s->job_watch->client) || !any_awaited(s) ? UINT64_MAX : s->late_ms; }

void job_watch_check(struct srun *s, uint64_t now)
{
	Pb__WaitReq req = PB__WAIT_REQ__INIT;
	Pb__Empty ping = PB__EMPTY__INIT;
	ProtobufCMessage *rsp = NULL;
	struct error err = { 0 };
	if (!s->late_ms)
		s->late_ms = now + LATE_MS;
	if (now < job_watch_due(s))
		return;
	struct job_watch *w = s->job_watch = s->job_watch ? s->job_watch : xcalloc(1, sizeof(*w));
	w->s = s;
	w->watch = (struct watch){ .ready = answered, .fd = -1 };
	req.job_id = s->job_id;
	req.until_end = true;
	/* A ping is not repeated: while slurmctld is away nothing here waits for it. */
	if (client_open(&w->client, &err) < 0 || client_call(w->client, RPC_PING, &ping.base, PING_MS, &rsp, &err) < 0 || client_begin(w->client, RPC_WAIT, &req.base, &err) < 0) {
		watch_end(w);
	} else {
		w->watch.fd = client_fd(w->client);
		watch_set(s, &w->watch, EPOLLIN);
	}
	if (rsp)
		protobuf_c_message_free_unpacked(rsp, NULL);
}
