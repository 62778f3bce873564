/* scontrol_debug.c - keywords that change what daemons log until they read their configuration again: setdebug, setdebugflags, schedloglevel;
 * and those that only the prompt and other features need: cluster, power */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/scontrol.h"
#include "conf/rows.h"
#include "model/hostlist.h"

#define NODE_MS 10000

static const char *refusal(int rc) { return rc == -ESLURM_ACCESS_DENIED ? "Permission denied" : error_text(rc); }

static void ctld_set(struct scontrol *s, const Pb__LogSetReq *req, const char *what)
{
	struct error err = { 0 };
	ProtobufCMessage *msg = NULL;
	int rc = client_call(scontrol_client(s), RPC_LOG_SET, &req->base, 0, &msg, &err);
	if (rc >= 0) {
		rc = -(int)((const Pb__Result *)msg)->code;
		protobuf_c_message_free_unpacked(msg, NULL);
	}
	if (rc < 0)
		scontrol_fail(s, "%s error:%s", what, refusal(rc));
}

static int node_set(struct scontrol *s, const struct conf *conf, const char *name, const Pb__LogSetReq *req, struct error *err)
{
	const Pb__NodeRecord *node = conf_node(conf, name);
	struct wire_client *c = NULL;
	ProtobufCMessage *msg = NULL;
	if (!node)
		return error_set(err, ESLURM_INVALID_NODE_NAME, "%s has no NodeName line for it", conf_path(conf));
	int rc = client_node_open(scontrol_client(s), node, NODE_MS, &c, err);
	if (!rc)
		rc = wire_call(c, RPC_D_LOG_SET, &req->base, NODE_MS, &msg, err);
	wire_client_close(c);
	if (rc < 0)
		return rc;
	rc = -(int)((const Pb__Result *)msg)->code;
	protobuf_c_message_free_unpacked(msg, NULL);
	return rc;
}

/* All nodes are told; each that could not be is named. */
static void nodes_set(struct scontrol *s, const char *nodes, const Pb__LogSetReq *req)
{
	struct hostlist hosts = HOSTLIST_INIT;
	struct error err = { 0 };
	struct conf *conf = NULL;
	bool failed = false;
	if (hostlist_add(&hosts, nodes, &err) < 0 || conf_load(NULL, &conf, &err) < 0) {
		scontrol_fail(s, "scontrol: error: %s", err.line);
		hostlist_fini(&hosts);
		return;
	}
	for (size_t i = 0; i < hosts.count; i++) {
		struct error why = { 0 };
		int rc = node_set(s, conf, hosts.name[i], req, &why);
		failed = failed || rc < 0;
		if (rc < 0)
			scontrol_fail(s, "scontrol: error: node %s: %s", hosts.name[i], rc == -ESLURM_ACCESS_DENIED || !why.line[0] ? refusal(rc) : why.line);
	}
	if (failed)
		scontrol_fail(s, "Failed to change debug level on one or more nodes.");
	hostlist_fini(&hosts);
	conf_destroy(conf);
}

/* The list of "nodes=LIST" (or node=); NULL: another word. */
static const char *nodes_word(const char *word)
{
	const char *equals = strchr(word, '=');
	size_t n = equals ? (size_t)(equals - word) : 0;
	return n >= 4 && n <= 5 && !strncasecmp(word, "nodes", n) ? equals + 1 : NULL;
}

void scontrol_setdebug(struct scontrol *s, int argc, char **argv)
{
	Pb__LogSetReq req = PB__LOG_SET_REQ__INIT;
	enum log_level level;
	const char *nodes = argc == 3 ? nodes_word(argv[2]) : NULL;
	if (argc < 2 || argc > 3) {
		scontrol_fail(s, argc < 2 ? "too few arguments for keyword:%s" : "too many arguments for keyword:%s", argv[0]);
		return;
	}
	if (log_level_parse(argv[1], &level) < 0) {
		scontrol_fail(s, "invalid debug level: %s", argv[1]);
		return;
	}
	if (argc == 3 && !nodes) {
		scontrol_fail(s, "Invalid option: %s", argv[2]);
		return;
	}
	req.has_level = true;
	req.level = level;
	if (nodes)
		nodes_set(s, nodes, &req);
	else
		ctld_set(s, &req, "slurm_set_debug_level");
}

/* "+a,b" becomes "+a", "+b" of the request. false: said what is wrong. */
static bool flags_add(struct scontrol *s, Pb__LogSetReq *req, const char *word)
{
	char *copy = xstrdup(word + 1), *rest = copy, *at;
	bool good = *word == '+' || *word == '-';
	while (good && (at = str_next(&rest, ","))) {
		char *known = conf_words_canon(CONF_DebugFlags, at);
		if (!known) {
			scontrol_fail(s, "scontrol: error: Invalid DebugFlag: %s", at);
			good = false;
		} else {
			req->flag = xrealloc(req->flag, (req->n_flag + 1) * sizeof *req->flag);
			req->flag[req->n_flag++] = xasprintf("%c%s", *word, known);
		}
		free(known);
	}
	free(copy);
	if (!good)
		scontrol_fail(s, "invalid debug flag: %s", word);
	if (*word != '+' && *word != '-')
		scontrol_fail(s, "Usage: setdebugflags {+|-}NAME [{+|-}NAME] [nodes=<NODES>]");
	return good;
}

void scontrol_setdebugflags(struct scontrol *s, int argc, char **argv)
{
	Pb__LogSetReq req = PB__LOG_SET_REQ__INIT;
	const char *nodes = NULL;
	bool good = argc > 1;
	if (argc < 2)
		scontrol_fail(s, "too few arguments for keyword:%s", argv[0]);
	for (int i = 1; good && i < argc; i++)
		if (nodes_word(argv[i]))
			nodes = nodes_word(argv[i]);
		else
			good = flags_add(s, &req, argv[i]);
	if (good && req.n_flag && nodes)
		nodes_set(s, nodes, &req);
	else if (good && req.n_flag)
		ctld_set(s, &req, "slurm_set_debug_flags");
	for (size_t i = 0; i < req.n_flag; i++)
		free(req.flag[i]);
	free(req.flag);
}

/* There is no log of the scheduler beside that of slurmctld: the answer is that of a cluster without SlurmSchedLogFile. */
void scontrol_schedloglevel(struct scontrol *s, int argc, char **argv)
{
	static const char *const levels[] = { "0", "1", "disable", "enable" };
	bool known = false;
	if (argc != 2) {
		scontrol_fail(s, argc < 2 ? "too few arguments for keyword:%s" : "too many arguments for keyword:%s", argv[0]);
		return;
	}
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
		known = known || !strcasecmp(argv[1], levels[i]);
	if (!known)
		scontrol_fail(s, "invalid schedlog level: %s", argv[1]);
	else
		scontrol_fail(s, "slurm_set_schedlog_level error:%s", geteuid() ? "Permission denied" : error_text(-ESLURM_DISABLED));
}

/* Which cluster the next commands at the prompt ask: this one is the only one that can be asked. */
void scontrol_cluster(struct scontrol *s, int argc, char **argv)
{
	if (argc > 2)
		scontrol_fail(s, "too many arguments for keyword:%s", argv[0]);
	else if (argc == 2 && strcmp(argv[1], conf_str(client_conf(scontrol_client(s)), CONF_ClusterName)))
		scontrol_fail(s, "scontrol: error: No cluster '%s' known by database.", argv[1]);
}

/* Checked as the reference does; it fails for want of a program to do it, as there without SuspendProgram and ResumeProgram. */
void scontrol_power(struct scontrol *s, int argc, char **argv)
{
	if (argc < 3) {
		scontrol_fail(s, "too few arguments for keyword:%s", argv[0]);
		return;
	}
	bool up = !strcasecmp(argv[1], "up"), flag = !strcasecmp(argv[2], "asap") || !strcasecmp(argv[2], "force");
	if (!up && strcasecmp(argv[1], "down"))
		scontrol_fail(s, "unexpected argument: '%s'", argv[1]);
	else if (up && flag)
		scontrol_fail(s, "The '%s' argument is not valid for power up requests", argv[2]);
	else if (flag && argc < 4)
		scontrol_fail(s, "Mandatory argument {ALL|<NodeList>|<NodeSet>} missing");
	else if (geteuid())
		scontrol_fail(s, "scontrol_power_nodes error:%s", error_text(-ESLURM_INVALID_USER_ID));
	else
		scontrol_fail(s, "scontrol_power_nodes error:%s\nscontrol: error: power saving is not supported by this version", "Invalid power action");
}
