/* scontrol_show.c - "scontrol show ENTITY [ID]": asks the controller and prints records in the order they came
 * Records are printed straight from the reply's bytes. "ID" may stand alone, as "job=5" or as a comma list. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/fields_job.h"
#include "cli/json.h"
#include "cli/scontrol.h"
#include "model/hostlist.h"
#include "model/states.h"
#include "proto/controller.pb-c.h"

typedef void (*show_fn)(struct scontrol *s, const char *id);

static void *job_taken(const uint8_t *item, size_t len, void *arg)
{
	static struct jobview v;
	return jobview_read(&v, item, len) ? &v : NULL;
}

/* Records that are one message: those named (a struct hostlist), or all. */
struct pick { const struct hostlist *want; unsigned name_field; bool (*match)(const struct msgview *m, const char *id); const char *id; };
static void *record_taken(const uint8_t *item, size_t len, void *arg)
{
	static struct msgview m;
	const struct pick *p = arg;
	if (!msgview_read(&m, item, len) || (p->match && !p->match(&m, p->id)))
		return NULL;
	for (size_t i = 0; p->want && i < p->want->count; i++)
		if (slice_is(msgview_text(&m, p->name_field), p->want->name[i]))
			return &m;
	return p->want ? NULL : &m;
}

static void json_show(struct scontrol *s, struct json_reply r, const uint8_t *data, size_t len)
{
	r.data = data;
	r.len = len;
	json_reply_print(&r, s->yaml != NULL, s->argv, s->argc);
}

/* A comma list as an array of words; *text is cut in place. */
static size_t words_split(char *text, char ***ret)
{
	char **word = NULL, *cursor = *text ? text : NULL;
	size_t n = 0, cap = 0;
	for (char *piece; (piece = str_next(&cursor, ","));)
		if (*piece) {
			word = xgrow(word, &cap, n + 1, sizeof(*word));
			word[n++] = piece;
		}
	*ret = word;
	return n;
}

/* Is there a job (or an array) with the number that `id` begins with? */
static bool job_known(struct scontrol *s, const char *id)
{
	char *number = xstrndup(id, strspn(id, "0123456789"));
	Pb__JobListReq req = PB__JOB_LIST_REQ__INIT;
	struct error err = { 0 };
	uint8_t *reply = NULL;
	size_t len;
	req.n_selector = 1;
	req.selector = &number;
	req.has_with_finished = req.with_finished = true;
	bool known = *number && show_call(scontrol_client(s), RPC_JOB_LIST, &req.base, PB_JobListRsp_now, &reply, &len, &err) == 0;
	free(reply);
	free(number);
	return known;
}

static void show_job(struct scontrol *s, const char *id)
{
	static struct jobview v;
	Pb__JobListReq req = PB__JOB_LIST_REQ__INIT;
	struct error err = { 0 };
	uint8_t *reply;
	size_t len, item_len, shown = 0;
	char *text = xstrdup(id ? id : "");
	for (const char *p = text; *p; p++)
		if (*text != 's' && !strchr("0123456789_+,[]-", *p)) {
			scontrol_fail(s, "scontrol_print_job error: %s", error_text(ESLURM_INVALID_JOB_ID));
			free(text);
			return;
		}
	const char *task = id ? strchr(id, '_') : NULL;
	s->task = task && task[1] && !task[1 + strspn(task + 1, "0123456789")] ? task + 1 : NULL;
	req.n_selector = words_split(text, &req.selector);
	req.has_with_finished = req.with_finished = true;
	req.has_show_all = req.show_all = s->all || id;
	req.has_detail = req.detail = s->details;
	int rc = show_call(scontrol_client(s), RPC_JOB_LIST, &req.base, PB_JobListRsp_now, &reply, &len, &err);
	free(req.selector);
	free(text);
	if (rc == -ESLURM_INVALID_JOB_ID && id && strchr(id, '_') && !strchr(id, ',') && job_known(s, id)) {
		scontrol_fail(s, "Job %s not found", id);
		return;
	}
	if (rc < 0) {
		scontrol_fail(s, "slurm_load_jobs error: %s", error_text(rc));
		return;
	}
	if (s->json || s->yaml) {
		struct json_reply r = { .name = "jobs", .field = PB_JobListRsp_job, .source = json_job_source, .read = job_taken, .backfill = true, .none = "Zero jobs to dump" };
		r.rows = json_job_rows(&r.n_rows);
		json_show(s, r, reply, len);
		free(reply);
		return;
	}
	struct str out = STR_INIT;
	struct show_walk walk;
	const uint8_t *item;
	str_reserve(&out, OUT_CHUNK + 65536);
	show_walk_start(&walk, reply, len, PB_JobListRsp_job);
	for (; show_walk_next(&walk, &item, &item_len); shown++) {
		if (!jobview_read(&v, item, item_len))
			continue;
		put_job_record(&out, &v, s);
		if (out.len > OUT_CHUNK)
			out_flush(&out);
	}
	out_flush(&out);
	str_fini(&out);
	free(reply);
	if (!shown && id)
		scontrol_fail(s, "slurm_load_jobs error: %s", error_text(ESLURM_INVALID_JOB_ID));
	else if (!shown && !s->quiet)
		printf("No jobs in the system\n");
}

/* "12.3", "12.batch", "12_1.0": does the step's printed name match? */
static bool step_is(const struct msgview *m, const char *id)
{
	struct str name = STR_INIT;
	char number[24];
	put_step_id(&name, m);
	bool same = !strcmp(name.data, id) || (str_starts(name.data, id) && name.data[strlen(id)] == '.');
	snprintf(number, sizeof(number), "%llu", (unsigned long long)msgview_num(m, PB_StepRecord_job_id, 0));
	same = same || !strcmp(number, id);
	str_fini(&name);
	return same;
}

static bool step_matches(const struct msgview *m, const char *id)
{
	return !job_state_is_final((uint32_t)msgview_num(m, PB_StepRecord_state, 0)) && (!id || step_is(m, id));
}

static void show_step(struct scontrol *s, const char *id)
{
	static struct msgview m;
	Pb__StepListReq req = PB__STEP_LIST_REQ__INIT;
	struct error err = { 0 };
	uint8_t *reply;
	const uint8_t *item;
	size_t len, item_len, shown = 0;
	unsigned long job = id ? strtoul(id, NULL, 10) : 0;
	if (id && !job && *id != 's') {
		scontrol_fail(s, "scontrol: error: Invalid job step id \"%s\": it begins with a job id", id);
		return;
	}
	int rc = show_call(scontrol_client(s), RPC_STEP_LIST, &req.base, PB_StepListRsp_now, &reply, &len, &err);
	if (rc < 0) {
		scontrol_fail(s, "slurm_get_job_steps(%s) failed: %s", id ? id : "", error_text(rc));
		return;
	}
	if (s->json || s->yaml) {
		struct pick pick = { .match = step_matches, .id = id };
		struct json_reply r = { .name = "steps", .field = PB_StepListRsp_step, .source = json_plain_source, .read = record_taken, .arg = &pick, .none = "Zero steps to dump" };
		r.rows = json_step_rows(&r.n_rows);
		json_show(s, r, reply, len);
		free(reply);
		return;
	}
	struct str out = STR_INIT;
	struct show_walk walk;
	show_walk_start(&walk, reply, len, PB_StepListRsp_step);
	while (show_walk_next(&walk, &item, &item_len)) {
		if (!msgview_read(&m, item, item_len) || !step_matches(&m, id))
			continue;
		put_step_record(&out, &m, s);
		shown++;
	}
	out_flush(&out);
	str_fini(&out);
	free(reply);
	if (!shown && id && *id != 's' && !job_known(s, id))
		scontrol_fail(s, "scontrol: error: slurm_get_job_steps(%s) failed: %s", id, error_text(ESLURM_INVALID_JOB_ID));
	else if (!shown && id)
		scontrol_missing(s, "Job step %s not found", id);
	else if (!shown && !s->quiet)
		printf("No job steps in the system\n");
}

/* A reply's records kept as views' bytes so that a list of names can be shown in its own order. */
struct record { struct slice name; const uint8_t *data; size_t len; };
static size_t records_read(const uint8_t *reply, size_t len, unsigned list_field, unsigned name_field, struct record **ret)
{
	static struct msgview m;
	struct show_walk walk;
	struct record r, *all = NULL;
	size_t n = 0, cap = 0;
	show_walk_start(&walk, reply, len, list_field);
	while (show_walk_next(&walk, &r.data, &r.len))
		if (msgview_read(&m, r.data, r.len)) {
			r.name = msgview_text(&m, name_field);
			all = xgrow(all, &cap, n + 1, sizeof(*all));
			all[n++] = r;
		}
	*ret = all;
	return n;
}

typedef void (*put_fn)(struct str *out, const struct msgview *m, const struct scontrol *s);
static void record_put(struct str *out, const struct record *r, put_fn put, const struct scontrol *s)
{
	static struct msgview m;
	(void)msgview_read(&m, r->data, r->len);
	put(out, &m, s);
	if (out->len > OUT_CHUNK)
		out_flush(out);
}

/* All records, or those of `want` in its order; a name that is not there is reported and the rest goes on. */
static void records_show(struct scontrol *s, const uint8_t *reply, size_t len, unsigned list_field, unsigned name_field, put_fn put,
			 const struct hostlist *want, const char *what)
{
	struct record *all;
	struct str out = STR_INIT;
	size_t n = records_read(reply, len, list_field, name_field, &all);
	for (size_t i = 0; !want && i < n; i++)
		record_put(&out, &all[i], put, s);
	for (size_t w = 0; want && w < want->count; w++) {
		size_t i = 0;
		while (i < n && !slice_is(all[i].name, want->name[w]))
			i++;
		if (i < n)
			record_put(&out, &all[i], put, s);
		else {
			out_flush(&out);
			scontrol_missing(s, "%s %s not found", what, want->name[w]);
		}
	}
	out_flush(&out);
	str_fini(&out);
	free(all);
}

static void records_json(struct scontrol *s, const char *name, const uint8_t *reply, size_t len, unsigned field, unsigned name_field,
			 const struct json_row *rows, size_t n_rows, const struct hostlist *want)
{
	struct pick pick = { .want = want, .name_field = name_field };
	struct json_reply r = { .name = name, .field = field, .source = json_plain_source, .read = record_taken, .arg = &pick, .rows = rows, .n_rows = n_rows };
	json_show(s, r, reply, len);
}

static bool names_parse(struct scontrol *s, const char *id, struct hostlist *ret)
{
	struct error err = { 0 };
	if (!id || hostlist_add(ret, id, &err) >= 0)
		return true;
	scontrol_fail(s, "scontrol: error: %s", err.line);
	return false;
}

static void show_node(struct scontrol *s, const char *id)
{
	Pb__NodeListReq req = PB__NODE_LIST_REQ__INIT;
	struct hostlist want = HOSTLIST_INIT;
	struct error err = { 0 };
	uint8_t *reply;
	size_t len;
	bool all = !id || !strcmp(id, "ALL");
	if (!names_parse(s, all ? NULL : id, &want))
		return;
	req.has_show_all = req.show_all = s->all || id;
	int rc = show_call(scontrol_client(s), RPC_NODE_LIST, &req.base, PB_NodeListRsp_now, &reply, &len, &err);
	if (rc < 0) {
		scontrol_fail(s, "slurm_load_node error: %s", error_text(rc));
	} else {
		size_t n;
		const struct json_row *rows = json_node_rows(&n);
		if (s->json || s->yaml)
			records_json(s, "nodes", reply, len, PB_NodeListRsp_node, PB_NodeRecord_name, rows, n, all ? NULL : &want);
		else
			records_show(s, reply, len, PB_NodeListRsp_node, PB_NodeRecord_name, put_node_record, all ? NULL : &want, "Node");
		free(reply);
	}
	hostlist_fini(&want);
}

static void show_part(struct scontrol *s, const char *id)
{
	Pb__PartListReq req = PB__PART_LIST_REQ__INIT;
	struct hostlist want = HOSTLIST_INIT;
	struct error err = { 0 };
	uint8_t *reply;
	size_t len;
	char *copy = xstrdup(id ? id : ""), *cursor = copy;
	for (char *word; (word = str_next(&cursor, ","));)
		hostlist_push(&want, word);
	req.has_show_all = req.show_all = s->all || id;
	int rc = show_call(scontrol_client(s), RPC_PART_LIST, &req.base, PB_PartListRsp_now, &reply, &len, &err);
	if (rc < 0) {
		scontrol_fail(s, "slurm_load_partitions error: %s", error_text(rc));
	} else {
		size_t n;
		const struct json_row *rows = json_part_rows(&n);
		if (s->json || s->yaml)
			records_json(s, "partitions", reply, len, PB_PartListRsp_part, PB_PartitionRecord_name, rows, n, id ? &want : NULL);
		else
			records_show(s, reply, len, PB_PartListRsp_part, PB_PartitionRecord_name, put_part_record, id ? &want : NULL, "Partition");
		free(reply);
	}
	hostlist_fini(&want);
	free(copy);
}

static void show_config(struct scontrol *s, const char *id)
{
	struct error err = { 0 };
	ProtobufCMessage *msg;
	Pb__Empty req = PB__EMPTY__INIT;
	struct str out = STR_INIT;
	int rc = client_call(scontrol_client(s), RPC_CONFIG_SHOW, &req.base, 0, &msg, &err);
	if (rc < 0) {
		scontrol_fail(s, "slurm_load_ctl_conf error: %s", error_text(rc));
		return;
	}
	const Pb__ConfigRsp *rsp = (const Pb__ConfigRsp *)msg;
	str_add(&out, "Configuration data as of ");
	put_when(&out, rsp->now, "Unknown");
	str_add_c(&out, '\n');
	for (size_t i = 0; i < rsp->n_value; i++)
		str_addf(&out, "%-23s = %s\n", rsp->value[i]->key, rsp->value[i]->value ? rsp->value[i]->value : "(null)");
	if (rsp->n_cgroup)
		str_add(&out, "\nCgroup Support Configuration:\n");
	for (size_t i = 0; i < rsp->n_cgroup; i++)
		str_addf(&out, "%-23s = %s\n", rsp->cgroup[i]->key, rsp->cgroup[i]->value ? rsp->cgroup[i]->value : "(null)");
	str_add_c(&out, '\n');
	out_flush(&out);
	str_fini(&out);
	protobuf_c_message_free_unpacked(msg, NULL);
	scontrol_ping(s, 0, NULL);
}

/* The list itself, or the contents of a file ("/path", or "-" for stdin). */
static char *list_read(const char *id)
{
	if (*id != '/' && strcmp(id, "-"))
		return xstrdup(id);
	FILE *f = *id == '/' ? fopen(id, "r") : stdin;
	struct str text = STR_INIT;
	char buf[4096];
	for (size_t n; f && (n = fread(buf, 1, sizeof(buf), f)) > 0 && text.len < (64u << 20);)
		str_add_n(&text, buf, n);
	bool opened = f != NULL;
	if (f && f != stdin)
		fclose(f);
	for (size_t i = 0; i < text.len; i++)   /* one name a line; a message about it stays one line */
		if (text.data[i] == '\n')
			text.data[i] = ',';
	while (text.len && text.data[text.len - 1] == ',')
		text.data[--text.len] = 0;
	if (opened)
		return str_take(&text);
	str_fini(&text);
	return NULL;
}

static bool hosts_parse(struct scontrol *s, const char *id, struct hostlist *ret)
{
	struct error err = { 0 };
	char *text = list_read(id);
	if (!text) {
		scontrol_fail(s, "scontrol: error: unable to read the host list file %s: %s", id, strerror(errno));
		return false;
	}
	bool good = hostlist_add(ret, text, &err) >= 0;
	if (!good)
		scontrol_fail(s, "Invalid hostlist: %s\nscontrol: error: %s", text, err.line);
	free(text);
	return good;
}

static void show_hostnames(struct scontrol *s, const char *id)
{
	struct hostlist hosts = HOSTLIST_INIT;
	struct str out = STR_INIT;
	if (!id)
		id = getenv("SLURM_JOB_NODELIST");
	if (!id) {
		log_error("host list is empty");
		return;
	}
	if (hosts_parse(s, id, &hosts))
		for (size_t i = 0; i < hosts.count; i++) {
			str_add(&out, hosts.name[i]);
			str_add_c(&out, '\n');
		}
	out_flush(&out);
	str_fini(&out);
	hostlist_fini(&hosts);
}

static void hostlist_show(struct scontrol *s, const char *id, bool sorted)
{
	struct hostlist hosts = HOSTLIST_INIT;
	if (id && !*id) {
		putchar('\n');
		return;
	}
	if (!id) {
		scontrol_fail(s, "invalid encode argument: a host list or the path of a file with one is needed");
		return;
	}
	if (hosts_parse(s, id, &hosts)) {
		if (sorted)
			hostlist_sort(&hosts);
		char *text = hostlist_compact(&hosts);
		printf("%s\n", text);
		free(text);
	}
	hostlist_fini(&hosts);
}
static void show_hostlist(struct scontrol *s, const char *id) { hostlist_show(s, id, false); }
static void show_hostlist_sorted(struct scontrol *s, const char *id) { hostlist_show(s, id, true); }

static void show_aliases(struct scontrol *s, const char *id)
{
	struct conf *whole;
	struct error err = { 0 };
	Pb__NodeRecord *const *node;
	struct str out = STR_INIT;
	if (conf_load(NULL, &whole, &err) < 0) {
		scontrol_fail(s, "scontrol: error: %s", err.line);
		return;
	}
	size_t n = conf_nodes(whole, &node);
	for (size_t i = 0; i < n; i++)
		if (!id || (node[i]->hostname && !strcmp(node[i]->hostname, id)) || !strcmp(node[i]->name, id))
			str_add_sep(&out, " ", node[i]->name);
	str_add_c(&out, '\n');
	out_flush(&out);
	str_fini(&out);
	conf_destroy(whole);
}

static bool host_is_me(const char *name, const char *me) { return name && (!strcmp(name, me) || !strcmp(name, "localhost")); }

static void show_daemons(struct scontrol *s, const char *id)
{
	struct conf *whole;
	struct error err = { 0 };
	Pb__NodeRecord *const *node;
	char me[256] = "";
	const char *host, *addr;
	uint16_t port;
	bool ctld = false, noded = false;
	(void)gethostname(me, sizeof(me) - 1);
	me[strcspn(me, ".")] = 0;
	if (conf_load(NULL, &whole, &err) < 0) {
		scontrol_fail(s, "scontrol: error: %s", err.line);
		return;
	}
	for (size_t i = 0; conf_controller(whole, i, &host, &addr, &port); i++)
		ctld = ctld || host_is_me(host, me);
	size_t n = conf_nodes(whole, &node);
	for (size_t i = 0; i < n; i++)
		noded = noded || host_is_me(node[i]->name, me) || host_is_me(node[i]->hostname, me);
	if (ctld || noded)
		printf("%s%s%s\n", ctld ? "slurmctld" : "", ctld && noded ? " " : "", noded ? "slurmd" : "");
	conf_destroy(whole);
}

static void show_nothing(struct scontrol *s, const char *id) { }
static void show_topology(struct scontrol *s, const char *id) { } /* has arguments of its own */

/* Unique prefixes of at least `min` letters are accepted. `fn` NULL: known to the reference, not working yet. */
static const struct entity { const char *name; size_t min; show_fn fn; } entities[] = {
	{ "aliases", 1, show_aliases }, { "assoc_mgr", 2, NULL }, { "bbstat", 2, show_nothing }, { "burstbuffer", 2, show_nothing },
	{ "config", 1, show_config }, { "daemons", 2, show_daemons }, { "dwstat", 2, show_nothing }, { "federations", 1, show_nothing },
	{ "hostlistsorted", 9, show_hostlist_sorted }, { "hostlist", 5, show_hostlist }, { "hostnames", 5, show_hostnames },
	{ "jobs", 1, show_job }, { "jobid", 4, show_job }, { "licenses", 2, scontrol_licenses }, { "nodes", 1, show_node },
	{ "nodename", 5, show_node }, { "partitions", 1, show_part }, { "partitionname", 10, show_part }, { "reservations", 1, scontrol_resv_show },
	{ "reservationname", 12, scontrol_resv_show }, { "slurmd", 2, scontrol_show_slurmd }, { "steps", 2, show_step }, { "stepid", 5, show_step },
	{ "topology", 1, show_topology }, { "topoconf", 5, scontrol_topoconf },
};

static const struct entity *entity_find(const char *name)
{
	size_t n = strlen(name);
	for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++)
		if (n >= entities[i].min && n <= strlen(entities[i].name) && !strncasecmp(entities[i].name, name, n))
			return &entities[i];
	return NULL;
}

void scontrol_show(struct scontrol *s, int argc, char **argv)
{
	char *equals = argc > 1 ? strchr(argv[1], '=') : NULL;
	char *name = argc > 1 ? xstrndup(argv[1], equals ? (size_t)(equals - argv[1]) : strlen(argv[1])) : NULL;
	const struct entity *e = name ? entity_find(name) : NULL;
	const char *id = equals ? equals + 1 : argc > 2 ? argv[2] : NULL;
	if (!name)
		scontrol_fail(s, "too few arguments for keyword:%s", argv[0]);
	else if (e && e->fn == show_topology && !s->json && !s->yaml)
		scontrol_topology(s, argc - 2, argv + 2);
	else if (argc > (equals || (e && e->fn == show_daemons) ? 2 : 3))
		scontrol_fail(s, "too many arguments for keyword:%s", argv[0]);
	else if (!e)
		scontrol_fail(s, "invalid entity:%s for keyword:%s", name, argv[0]);
	else if (!e->fn)
		scontrol_fail(s, "scontrol: error: show %s is not supported yet", e->name);
	else if ((s->json || s->yaml) && e->fn != show_job && e->fn != show_node && e->fn != show_part && e->fn != show_step && e->fn != scontrol_resv_show && e->fn != scontrol_licenses)
		scontrol_fail(s, "scontrol: error: show %s with --json or --yaml is not supported yet", e->name);
	else
		e->fn(s, id);
	free(name);
}

void scontrol_completing(struct scontrol *s, int argc, char **argv)
{
	static struct jobview v;
	Pb__JobListReq req = PB__JOB_LIST_REQ__INIT;
	struct error err = { 0 };
	uint8_t *reply;
	const uint8_t *item;
	size_t len, item_len;
	req.has_with_finished = req.with_finished = true;
	req.has_show_all = req.show_all = true;
	int rc = show_call(scontrol_client(s), RPC_JOB_LIST, &req.base, PB_JobListRsp_now, &reply, &len, &err);
	if (rc < 0) {
		scontrol_fail(s, "slurm_load_jobs error: %s", error_text(rc));
		return;
	}
	struct show_walk walk;
	struct str out = STR_INIT;
	show_walk_start(&walk, reply, len, PB_JobListRsp_job);
	while (show_walk_next(&walk, &item, &item_len))
		if (jobview_read(&v, item, item_len) && (jobview_flags(&v) & JOBF_COMPLETING)) {
			uint64_t end = jobview_num(&v, PB_JobRecord_end_time, 0);
			str_addf(&out, "JobId=%llu EndTime=", (unsigned long long)jobview_num(&v, PB_JobRecord_job_id, 0));
			put_when(&out, end, "Unknown");
			str_add(&out, " CompletingTime=");
			put_secs(&out, end && show_env.now > end ? show_env.now - end : 0);
			str_add(&out, " Nodes(COMPLETING)=");
			put_slice(&out, msgview_text(jobview_alloc(&v), PB_Alloc_nodes), "");
			str_add_c(&out, '\n');
		}
	out_flush(&out);
	str_fini(&out);
	free(reply);
}
