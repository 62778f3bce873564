/* showcmd.c - what the commands that show things share (see showcmd.h) */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/showcmd.h"

/* show_call looks at one number for all lists. */
_Static_assert(PB_JobListRsp_code == 3 && PB_StepListRsp_code == 3 && PB_NodeListRsp_code == 3 && PB_PartListRsp_code == 3, "code is field 3 of each list");

static const char *show_prog = "";
void show_start(const char *prog)
{
	show_prog = prog;
	log_init(prog, LOG_L_INFO);
	show_env_init();
}

int show_fail(const struct error *err)
{
	log_error("%s", err->line[0] ? err->line : error_text(err->code));
	if (err->hint[0])
		log_error("%s", err->hint);
	return 1;
}

int show_bad_option(const char *prog, const struct error *err)
{
	fprintf(stderr, "%s: %s\nTry \"%s --help\" for more information\n", prog, err->line, prog);
	return 1;
}

int show_parse_fail(const char *prog, const struct error *err)
{
	static const char *const getopts[] = { "option '", "invalid option", "option requires", "unrecognized option" };
	for (size_t i = 0; i < sizeof(getopts) / sizeof(getopts[0]); i++)
		if (str_starts(err->line, getopts[i]))
			return show_bad_option(prog, err);
	return show_fail(err);
}

void put_cluster_line(struct str *out)
{
	if (show_env.clusters)
		str_addf(out, "CLUSTER: %s\n", show_env.cluster);
}

struct client *show_open(void)
{
	struct client *c;
	struct error err = { 0 };
	if (client_open(&c, &err) < 0)
		exit(show_fail(&err));
	show_env.cluster = conf_str(client_conf(c), CONF_ClusterName);
	if (show_env.clusters && !opt_clusters(show_prog, show_env.clusters, show_env.cluster)) {
		fprintf(stderr, "%s: fatal: Could not get cluster information\n", show_prog);
		exit(1);
	}
	const char *preempt = conf_str(client_conf(c), CONF_PreemptType);
	show_env.preempt = preempt && !strstr(preempt, "none");
	uint64_t exempt = conf_num(client_conf(c), CONF_PreemptExemptTime);
	show_env.preempt_exempt_sec = exempt < UINT32_MAX ? exempt : 0;
	return c;
}

int show_call(struct client *c, enum rpc rpc, const ProtobufCMessage *req, unsigned now_field, uint8_t **ret, size_t *len, struct error *err)
{
	int rc = client_call_raw(c, rpc, req, 0, ret, len, err);
	if (rc < 0 || !now_field)
		return rc;
	/* `now` comes after the long list in most replies: look at tags only. */
	struct wire_skim skim;
	struct wire_field f;
	uint64_t code = 0;
	wire_skim_start(&skim, *ret, *len);
	while (wire_skim_next(&skim, &f)) {
		if (f.number == now_field)
			show_env.now = f.value;
		else if (f.number == PB_JobListRsp_code && f.type == 0)
			code = f.value;
	}
	if (!skim.bad && !code)
		return 0;
	free(*ret);
	*ret = NULL;
	return skim.bad ? error_set(err, ESLURM_PROTOCOL, "The controller's answer is malformed") : error_set(err, (int)code, "%s", error_text((int)code));
}

void show_walk_start(struct show_walk *w, const uint8_t *data, size_t len, unsigned field)
{
	w->field = field;
	wire_skim_start(&w->skim, data, len);
}

bool show_walk_next(struct show_walk *w, const uint8_t **ret, size_t *ret_len)
{
	struct wire_field f;
	while (wire_skim_next(&w->skim, &f))
		if (f.number == w->field) {
			*ret = f.data;
			*ret_len = f.len;
			return true;
		}
	return false;
}

void put_date_line(struct str *out)
{
	char buf[64];
	time_t now = time(NULL);
	struct tm tm;
	localtime_r(&now, &tm);
	strftime(buf, sizeof(buf), "%a %b %d %T %Y\n", &tm);
	str_add(out, buf);
}

int show_iterate_parse(const char *text, unsigned *ret)
{
	unsigned long long v;
	if (str_to_u64(text, 1, 86400ULL * 366, &v) < 0)
		return -EINVAL;
	*ret = (unsigned)v;
	return 0;
}

void list_add(char **list, const char *more)
{
	char *joined = *list && **list ? xasprintf("%s,%s", *list, more) : xstrdup(more);
	free(*list);
	*list = joined;
}

const char *const *show_argv_keep(int argc, char **argv)
{
	return xmemdup(argv, ((size_t)argc + 1) * sizeof(*argv));
}
