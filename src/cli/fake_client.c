/* fake_client.c - for tests: src/client with canned replies, so that list commands run without a daemon
 * Each reply is a file of encoded bytes named after its call (JOB_LIST, NODE_LIST...) in $FAKE_REPLIES; fixture.c writes them.
 * JOB_LIST honours plain numeric selectors. Calls that change something print their request to stderr and answer from the file too. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/msgview.h"
#include "client/client.h"
#include "proto/controller.pb-c.h"

struct client { struct conf *conf; };

int client_open(struct client **ret, struct error *err)
{
	static const char text[] = "ClusterName=main\nSlurmctldHost=ctl(127.0.0.1)\nNodeName=node-[1-4] CPUs=8\nPartitionName=main Nodes=ALL Default=YES\nPreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n";
	const struct conf_text file = { "slurm.conf", text, sizeof(text) - 1 };
	struct client *c = xcalloc(1, sizeof(*c));
	int rc = conf_load_text(&file, 1, &c->conf, err);
	if (rc < 0) {
		free(c);
		return rc;
	}
	*ret = c;
	return 0;
}
const struct conf *client_conf(const struct client *c) { return c->conf; }
struct wire_auth *client_auth(const struct client *c) { return NULL; }
int client_node_open(const struct client *c, const Pb__NodeRecord *node, int timeout_ms, struct wire_client **ret, struct error *err)
{
	*ret = NULL;
	return error_set(err, ESLURM_COMM, "there are no nodes behind canned replies");
}
void client_close(struct client *c)
{
	conf_destroy(c->conf);
	free(c);
}

static bool item_selected(const Pb__JobListReq *req, const struct wire_field *item, bool *hit)
{
	struct msgview wrap, rec;
	if (!req->n_selector)
		return true;
	(void)msgview_read(&wrap, item->data, item->len);
	(void)msgview_read(&rec, wrap.f[PB_JobItem_record].data, wrap.f[PB_JobItem_record].len);
	for (size_t i = 0; i < req->n_selector; i++)
		if (strtoull(req->selector[i], NULL, 10) == msgview_num(&rec, PB_JobRecord_job_id, 0))
			return *hit = true;
	return false;
}

/* Keep the selected items, and what is no item. */
static int jobs_select(const Pb__JobListReq *req, uint8_t *data, size_t *len, struct error *err)
{
	struct wire_skim s;
	struct wire_field f;
	bool hit = !req->n_selector;
	uint8_t *to = data;
	wire_skim_start(&s, data, *len);
	for (const uint8_t *from = data; wire_skim_next(&s, &f); from = s.at)
		if (f.number != PB_JobListRsp_job || item_selected(req, &f, &hit)) {
			size_t n = (size_t)(s.at - from);
			memmove(to, from, n);
			to += n;
		}
	*len = (size_t)(to - data);
	return hit || req->n_selector > 1 ? 0 : error_set(err, ESLURM_INVALID_JOB_ID, "%s", error_text(ESLURM_INVALID_JOB_ID));
}

int client_call_raw(struct client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, uint8_t **ret, size_t *len, struct error *err)
{
	const char *dir = getenv("FAKE_REPLIES");
	char *path = xasprintf("%s/%s", dir ? dir : ".", rpc_row((uint16_t)rpc)->name);
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set(err, ESLURM_COMM, "%s", error_text(ESLURM_COMM));
	*ret = xmalloc((size_t)st.st_size + 1);
	*len = 0;
	for (ssize_t n; (n = read(fd, *ret + *len, (size_t)st.st_size - *len)) > 0;)
		*len += (size_t)n;
	close(fd);
	int rc = rpc == RPC_JOB_LIST ? jobs_select((const Pb__JobListReq *)req, *ret, len, err) : 0;
	if (rc < 0)
		free(*ret);
	return rc;
}

int client_call(struct client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, ProtobufCMessage **ret, struct error *err)
{
	uint8_t *data;
	size_t len;
	int rc = client_call_raw(c, rpc, req, timeout_ms, &data, &len, err);
	if (rc < 0)
		return rc;
	*ret = wire_unpack(rpc_row((uint16_t)rpc)->rsp, data, len);
	free(data);
	return *ret ? 0 : error_set(err, ESLURM_PROTOCOL, "malformed");
}
