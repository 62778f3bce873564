/* conf.c - reading configuration files into one immutable object (see conf.h)
 *
 * load: read slurm.conf and its includes line by line (scan.c); each pair is checked against its row (rows.c); global keys fill value[], NodeName lines
 * become records at once (nodes.c), PartitionName and DownNodes lines wait until all nodes are known. Then cgroup.conf and gres.conf, then the merge.
 * The first fault ends the load: nothing half read is ever handed out. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "conf/internal.h"

#define FILE_MAX_LEN (64u << 20)

static int file_parse(struct conf *c, enum conf_section s, size_t file, int depth, struct error *err);

/* --- small things --------------------------------------------------------------------------------- */
enum conf_key conf_section_first(enum conf_section s)
{
	switch (s) {
	case SEC_NODE: return CONF_Node_NodeName;
	case SEC_DOWN: return CONF_Down_DownNodes;
	case SEC_NODESET: return CONF_NodeSet_NodeSet;
	case SEC_PART: return CONF_Part_PartitionName;
	case SEC_POWER: return CONF_Power_PowerAction;
	case SEC_JOBC: return CONF_Jobc_AutoBasePath;
	case SEC_TOPO: return CONF_Topo_SwitchName;
	default: return CONF_Gres_NodeName;
	}
}

const char *conf_line_get(const struct conf_line *l, enum conf_key k) { return l->value[k - conf_section_first(l->section)]; }

uint64_t conf_line_num(const struct conf_line *l, enum conf_key k)
{
	const char *v = conf_line_get(l, k);
	if (!v)
		v = conf_row(k)->def;
	return *v ? conf_value_num(k, v) : UINT64_MAX;
}

bool conf_line_bool(const struct conf_line *l, enum conf_key k) { return conf_line_num(l, k) == 1; }

int conf_line_error(const struct conf_line *l, enum conf_key k, int code, struct error *err, const char *fmt, ...)
{
	char text[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	uint32_t col = l->at[k - conf_section_first(l->section)];
	return error_set(err, code, "%s:%u:%u: %s", l->file, l->row, col ? col : l->col, text);
}

const char *conf_keep(struct conf *c, const char *text)
{
	c->string = xgrow(c->string, &c->string_cap, c->string_n + 1, sizeof *c->string);
	return c->string[c->string_n++] = xstrdup(text);
}

static void warn_pair(const struct scan *s, const struct scan_pair *p, const char *what, const char *doc)
{
	log_error("%s:%u:%u: %s %s%s%s", s->file, p->line, p->col, p->key, what, *doc ? ": " : "", doc);
}

/* --- one pair ------------------------------------------------------------------------------------- */
static int pair_unknown(const struct scan *s, enum conf_section sec, const struct scan_pair *p, struct error *err)
{
	const char *near = conf_row_nearest(sec, p->key);
	return error_set(err, EINVAL, "%s:%u:%u: \"%s\" is not a key of %s%s%s%s", s->file, p->line, p->col, p->key, conf_section_name(sec),
			 near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

struct warn_at { const struct scan *s; const struct scan_pair *p; };

static void warn_word(const char *word, size_t len, enum word_doubt doubt, const char *values, void *arg)
{
	const struct warn_at *at = arg;
	if (doubt == WORD_BAD_VALUE) {
		log_error("%s:%u:%u: %s: \"%.*s\" is ignored: its values are %s", at->s->file, at->p->value_line, at->p->value_col, at->p->key, (int)len, word, values);
		return;
	}
	log_error("%s:%u:%u: %s: \"%.*s\" is %s", at->s->file, at->p->value_line, at->p->value_col, at->p->key, (int)len, word,
		  doubt == WORD_IDLE ? "accepted but does nothing yet" : "unknown and ignored");
}

/* Checks name and value; returns the key, or a negative code. */
static int pair_check(const struct conf *c, const struct scan *s, enum conf_section sec, const struct scan_pair *p, uint64_t *ret_num, struct error *err)
{
	struct error inner = { 0 };
	int k = conf_row_find(sec, p->key, p->key_len);
	if (k < 0)
		return pair_unknown(s, sec, p, err);
	const struct conf_row *r = conf_row((enum conf_key)k);
	if (r->status == STATUS_TODO && !c->client && *p->value && strcasecmp(p->value, "NONE") && strcasecmp(p->value, r->def))
		return error_set(err, ESLURM_NOT_SUPPORTED, "%s:%u:%u: %s does not work yet (%s): leave it out", s->file, p->line, p->col, r->name, r->doc);
	int rc = *p->value || r->type == CT_STR ? conf_value_check((enum conf_key)k, p->value, ret_num, &inner) : 0;
	if (rc == -ESLURM_NOT_SUPPORTED && c->client)
		rc = 0;
	if (rc)
		return error_set(err, rc, "%s:%u:%u: %s", s->file, p->value_line, p->value_col, inner.line);
	if (c->client || c->in_memory)
		return k;
	if (r->apply == APPLY_OLD)
		warn_pair(s, p, "is obsolete", r->doc);
	else if (r->status == STATUS_WARN)
		warn_pair(s, p, "is accepted but does nothing yet", r->doc);
	conf_words_doubt((enum conf_key)k, p->value, warn_word, &(struct warn_at){ s, p });
	return k;
}

static int global_set(struct conf *c, const struct scan *s, enum conf_section sec, const struct scan_pair *p, struct error *err)
{
	uint64_t num = 0;
	int k = pair_check(c, s, sec, p, &num, err);
	if (k < 0)
		return k;
	struct conf_value *v = &c->value[k];
	if (conf_row((enum conf_key)k)->type == CT_LIST) {
		v->list = xgrow(v->list, &v->list_cap, v->list_n + 1, sizeof *v->list);
		v->list[v->list_n++] = xstrdup(p->value);
	}
	if (!v->set || conf_row((enum conf_key)k)->type != CT_LIST)
		xstr_set(&v->text, p->value);
	v->num = num;
	v->set = true;
	return 0;
}

static int line_fill(struct conf *c, const struct scan *s, enum conf_section sec, struct conf_line *l, struct error *err)
{
	*l = (struct conf_line){ .section = sec, .file = s->file, .row = s->pair[0].line, .col = s->pair[0].col };
	for (size_t i = 0; i < s->pair_n; i++) {
		uint64_t num;
		int k = pair_check(c, s, sec, &s->pair[i], &num, err);
		if (k < 0)
			return k;
		unsigned at = (unsigned)k - conf_section_first(sec);
		l->value[at] = conf_keep(c, s->pair[i].value);
		l->at[at] = s->pair[i].value_col;
	}
	return 0;
}

static void line_keep(struct conf_line **list, size_t *n, size_t *cap, const struct conf_line *l)
{
	*list = xgrow(*list, cap, *n + 1, sizeof **list);
	(*list)[(*n)++] = *l;
}

static void line_default(struct conf_line *l, const struct conf_line *def)
{
	for (size_t i = 1; i < LINE_KEYS; i++)
		if (!l->value[i])
			l->value[i] = def->value[i];
}

/* A line whose first key names its kind. */
static int object_line(struct conf *c, const struct scan *s, enum conf_section sec, struct error *err)
{
	struct conf_line l;
	int rc = line_fill(c, s, sec, &l, err);
	if (rc)
		return rc;
	if (sec == SEC_NODE || sec == SEC_PART) {
		struct conf_line *def = sec == SEC_NODE ? &c->node_default : &c->part_default;
		line_default(&l, def);
		if (!strcasecmp(l.value[0], "DEFAULT")) {
			*def = l;
			return 0;
		}
	}
	if (sec == SEC_NODE)
		return conf_node_line(c, &l, err);
	if (sec == SEC_NODESET)
		return conf_nodeset_line(c, &l, err);
	if (sec == SEC_PART || sec == SEC_DOWN)
		line_keep(&c->later, &c->later_n, &c->later_cap, &l);
	if (sec == SEC_GRES)
		line_keep(&c->gres, &c->gres_n, &c->gres_cap, &l);
	if (sec == SEC_JOBC)
		line_keep(&c->jobc, &c->jobc_n, &c->jobc_cap, &l);
	if (sec == SEC_TOPO)
		line_keep(&c->topo_line, &c->topo_line_n, &c->topo_line_cap, &l);
	return 0;
}

static enum conf_section line_section(enum conf_section file, const char *key)
{
	static const struct { const char *key; enum conf_section section; } starts[] = {
		{ "NodeName", SEC_NODE }, { "PartitionName", SEC_PART }, { "DownNodes", SEC_DOWN }, { "NodeSet", SEC_NODESET }, { "PowerAction", SEC_POWER },
	};
	for (size_t i = 0; file == SEC_SLURM && i < sizeof starts / sizeof *starts; i++)
		if (!strcasecmp(key, starts[i].key))
			return starts[i].section;
	return file;
}

/* --- files ----------------------------------------------------------------------------------------- */
static int file_add(struct conf *c, const char *name, char *data, size_t len, struct error *err)
{
	if (c->file_n >= CONF_FILES_MAX) {
		free(data);
		return error_set(err, EMFILE, "%s: more than %d configuration files", name, CONF_FILES_MAX);
	}
	c->file = xgrow(c->file, &c->file_cap, c->file_n + 1, sizeof *c->file);
	c->file[c->file_n++] = (struct conf_text){ xstrdup(name), data, len };
	return 0;
}

static char *path_of(const struct conf *c, const char *name) { return *name == '/' ? xstrdup(name) : xasprintf("%s/%s", c->dir, name); }

static int file_read(struct conf *c, const char *name, struct error *err)
{
	char *path = path_of(c, name), *data = NULL;
	struct stat st;
	int rc = 0, fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		rc = error_set(err, errno, "cannot read configuration file %s: %s", path, strerror(errno));
		goto out;
	}
	if (!S_ISREG(st.st_mode) && st.st_size == 0 && !S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode)) {
		rc = error_set(err, EINVAL, "configuration file %s is not a file", path);
		goto out;
	}
	size_t cap = (size_t)st.st_size + 1, len = 0;
	ssize_t n;
	data = xmalloc(cap);
	while ((n = read(fd, data + len, cap - len)) > 0) {
		len += (size_t)n;
		if (len > FILE_MAX_LEN) {
			rc = error_set(err, EFBIG, "configuration file %s is larger than 64 MiB", path);
			goto out;
		}
		if (len == cap)
			data = xrealloc(data, cap *= 2);
	}
	if (n < 0)
		rc = error_set(err, errno, "cannot read configuration file %s: %s", path, strerror(errno));
	else
		rc = file_add(c, name, data, len, err), data = NULL;
out:
	free(data);
	if (fd >= 0)
		close(fd);
	free(path);
	return rc;
}

/* %c in the name of an included file is the cluster's name. */
static char *include_name(const struct conf *c, const char *name)
{
	struct str s = STR_INIT;
	const char *cluster = conf_str(c, CONF_ClusterName);
	for (; *name; name++) {
		if (name[0] == '%' && name[1] == 'c') {
			str_add(&s, cluster ? cluster : "");
			name++;
		} else {
			str_add_c(&s, *name);
		}
	}
	return str_take(&s);
}

static int include_glob(struct conf *c, enum conf_section sec, const char *name, int depth, struct error *err)
{
	char *pattern = path_of(c, name);
	glob_t g;
	int rc = 0, got = glob(pattern, GLOB_NOSORT * 0, NULL, &g);
	free(pattern);
	if (got)
		return 0;                    /* no match: as an empty file */
	for (size_t i = 0; !rc && i < g.gl_pathc; i++) {
		size_t skip = *name != '/' && str_starts(g.gl_pathv[i], c->dir) ? strlen(c->dir) + 1 : 0;
		rc = file_read(c, g.gl_pathv[i] + skip, err);
		if (!rc)
			rc = file_parse(c, sec, c->file_n - 1, depth + 1, err);
	}
	globfree(&g);
	return rc;
}

static int include_file(struct conf *c, enum conf_section sec, const struct scan *s, const char *raw, int depth, struct error *err)
{
	char *name = include_name(c, raw);
	struct error inner = { 0 };
	int rc = 0;
	size_t i = c->file_n;
	if (depth >= CONF_DEPTH_MAX) {
		rc = error_set(err, ELOOP, "%s:%u:1: Include of %s is nested more than %d deep", s->file, s->line - 1, name, CONF_DEPTH_MAX);
	} else if (c->in_memory) {
		for (i = 0; i < c->file_n && strcmp(c->file[i].name, name); i++)
			;
		if (i < c->file_n)
			rc = file_parse(c, sec, i, depth + 1, err);
		else if (!strpbrk(name, "*?["))
			rc = error_set(err, ENOENT, "%s:%u:1: included file %s is not there", s->file, s->line - 1, name);
	} else if (strpbrk(name, "*?[")) {
		rc = include_glob(c, sec, name, depth, err);
	} else if ((rc = file_read(c, name, &inner))) {
		rc = error_set(err, rc, "%s:%u:1: %s", s->file, s->line - 1, inner.line);
	} else {
		rc = file_parse(c, sec, c->file_n - 1, depth + 1, err);
	}
	free(name);
	return rc;
}

static int line_parse(struct conf *c, enum conf_section file_sec, struct scan *s, int depth, struct error *err)
{
	if (s->include)
		return include_file(c, file_sec, s, s->include, depth, err);
	enum conf_section sec = line_section(file_sec, s->pair[0].key);
	if ((sec != file_sec && file_sec == SEC_SLURM) || sec == SEC_GRES || sec == SEC_JOBC || sec == SEC_TOPO)
		return object_line(c, s, sec, err);
	for (size_t i = 0; i < s->pair_n; i++) {
		int rc = global_set(c, s, sec, &s->pair[i], err);
		if (rc)
			return rc;
	}
	return 0;
}

static int file_parse(struct conf *c, enum conf_section sec, size_t file, int depth, struct error *err)
{
	static const char *const client_skip[] = { "NodeName", "PartitionName", "DownNodes", "NodeSet", "PowerAction", NULL };
	struct scan s;
	int rc;
	const char *kept = conf_keep(c, c->file[file].name);
	const char *shown = kept;
	if (!c->in_memory && *kept != '/') {
		char *path = path_of(c, kept);
		shown = conf_keep(c, path);
		free(path);
	}
	scan_init(&s, shown, c->file[file].data, c->file[file].len);
	while ((rc = scan_next_skip(&s, c->client ? client_skip : NULL, err)) > 0) {
		rc = line_parse(c, sec, &s, depth, err);
		if (rc)
			break;
	}
	scan_fini(&s);
	return rc;
}

/* --- controllers --------------------------------------------------------------------------------- */
static void controller_add(struct conf *c, const char *host, size_t host_len, const char *addr, size_t addr_len)
{
	c->controller = xgrow(c->controller, &c->controller_cap, c->controller_n + 1, sizeof *c->controller);
	c->controller[c->controller_n++] = (struct conf_controller){ xstrndup(host, host_len), addr_len ? xstrndup(addr, addr_len) : xstrndup(host, host_len) };
}

static int controllers_read(struct conf *c, struct error *err)
{
	const char *const *list;
	size_t n = conf_list(c, CONF_SlurmctldHost, &list);
	for (size_t i = 0; i < n; i++) {
		size_t host = strcspn(list[i], "("), len = strlen(list[i]);
		bool parens = list[i][host] == '(';
		if (!host || (parens && list[i][len - 1] != ')'))
			return error_set(err, EINVAL, "%s: SlurmctldHost=%s: expected name or name(address)", c->path, list[i]);
		controller_add(c, list[i], host, list[i] + host + 1, parens ? len - host - 2 : 0);
	}
	static const enum conf_key old[2][2] = { { CONF_ControlMachine, CONF_ControlAddr }, { CONF_BackupController, CONF_BackupAddr } };
	for (int i = 0; !n && i < 2; i++) {
		const char *host = conf_str(c, old[i][0]), *addr = conf_str(c, old[i][1]);
		if (host)
			controller_add(c, host, strlen(host), addr ? addr : host, strlen(addr ? addr : host));
	}
	return c->controller_n ? 0 : error_set(err, EINVAL, "%s: SlurmctldHost is missing", c->path);
}

/* --- loading -------------------------------------------------------------------------------------- */
static struct conf *conf_create(const char *path)
{
	struct conf *c = xcalloc(1, sizeof *c);
	char *copy = xstrdup(path);
	c->path = xstrdup(path);
	c->dir = xstrdup(dirname(copy));
	c->node_default.section = SEC_NODE;
	c->part_default.section = SEC_PART;
	free(copy);
	return c;
}

static const char *default_path(const char *path)
{
	const char *env = getenv("SLURM_CONF");
	return path ? path : env && *env ? env : "/etc/slurm/slurm.conf";
}

static int later_lines(struct conf *c, struct error *err)
{
	for (size_t i = 0; i < c->later_n; i++) {
		const struct conf_line *l = &c->later[i];
		int rc = l->section == SEC_PART ? conf_part_line(c, l, err) : conf_down_line(c, l, err);
		if (rc)
			return rc;
	}
	return 0;
}

static void hash_files(struct conf *c)
{
	uint64_t h = 14695981039346656037ull;
	for (size_t i = 0; i < c->file_n; i++) {
		for (const char *p = c->file[i].name; *p; p++)
			h = (h ^ (unsigned char)*p) * 1099511628211ull;
		for (size_t j = 0; j < c->file[i].len; j++)
			h = (h ^ (unsigned char)c->file[i].data[j]) * 1099511628211ull;
	}
	c->hash = h;
}

/* PreemptMode against PreemptType and against itself (slurm.conf(5)). */
static int preempt_check(const struct conf *c, struct error *err)
{
	const char *mode = conf_str(c, CONF_PreemptMode), *type = conf_str(c, CONF_PreemptType);
	int ways = conf_has(c, CONF_PreemptMode, "CANCEL") + conf_has(c, CONF_PreemptMode, "REQUEUE") + conf_has(c, CONF_PreemptMode, "SUSPEND") + conf_has(c, CONF_PreemptMode, "OFF");
	bool some = type && !str_eq_nocase(type, "preempt/none"), off = !mode || !ways || conf_has(c, CONF_PreemptMode, "OFF");
	if (ways > 1)
		return error_set(err, EINVAL, "%s: PreemptMode=%s: only one of OFF, CANCEL, REQUEUE and SUSPEND can be", c->path, mode);
	if (conf_has(c, CONF_PreemptMode, "SUSPEND") && !conf_has(c, CONF_PreemptMode, "GANG"))
		return error_set(err, EINVAL, "%s: PreemptMode=SUSPEND requires GANG too: PreemptMode=SUSPEND,GANG", c->path);
	if (some && off)
		return error_set(err, EINVAL, "%s: PreemptType=%s needs a PreemptMode of CANCEL, REQUEUE or SUSPEND,GANG", c->path, type);
	if (conf_has(c, CONF_PreemptMode, "SUSPEND") && str_eq_nocase(type, "preempt/qos"))
		return error_set(err, ENOTSUP, "%s: PreemptMode=SUSPEND is not supported with PreemptType=preempt/qos; REQUEUE and CANCEL are", c->path);
	if (conf_has(c, CONF_PreemptMode, "WITHIN") && !str_eq_nocase(type, "preempt/qos"))
		return error_set(err, EINVAL, "%s: PreemptMode=WITHIN needs PreemptType=preempt/qos", c->path);
	if (!some && !off)
		return error_set(err, EINVAL, "%s: PreemptMode=%s needs PreemptType=preempt/partition_prio", c->path, mode);
	return 0;
}

static int checks(struct conf *c, struct error *err)
{
	const char *name = conf_str(c, CONF_ClusterName);
	if (!name || !*name)
		return error_set(err, EINVAL, "%s: ClusterName is missing", c->path);
	if (strlen(name) > 40)
		return error_set(err, EINVAL, "%s: ClusterName is longer than 40 characters", c->path);
	if (preempt_check(c, err) < 0)
		return -EINVAL;
	return controllers_read(c, err);
}

/* A friend of slurm.conf in the same folder: its place in c->file; where it is not, *ret is past the end. */
static int friend_read(struct conf *c, const char *name, size_t *ret, struct error *err)
{
	if (c->in_memory) {
		for (*ret = 0; *ret < c->file_n && strcmp(c->file[*ret].name, name); ++*ret)
			;
		return 0;
	}
	char *path = path_of(c, name);
	bool there = access(path, F_OK) == 0;
	free(path);
	*ret = c->file_n;
	return there ? file_read(c, name, err) : 0;
}

static int friend_load(struct conf *c, enum conf_section sec, const char *name, struct error *err)
{
	size_t i;
	int rc = friend_read(c, name, &i, err);
	return rc || i >= c->file_n ? rc : file_parse(c, sec, i, 0, err);
}

/* topology.yaml, or else topology.conf where the plugin wants it. */
static int topology_load(struct conf *c, struct error *err)
{
	size_t i;
	int rc = friend_read(c, "topology.yaml", &i, err);
	if (rc || i < c->file_n)
		return rc ? rc : conf_topology_yaml(c, &c->file[i], err);
	const char *plugin = conf_str(c, CONF_TopologyPlugin);
	if (plugin && (!strcasecmp(plugin, "topology/tree") || !strcasecmp(plugin, "topology/block")))
		rc = friend_load(c, SEC_TOPO, "topology.conf", err);
	return rc ? rc : conf_topology_lines(c, err);
}

/* Topology= of a partition names one there is. */
static int topology_named(const struct conf *c, struct error *err)
{
	for (size_t i = 0; i < c->part_n; i++) {
		const char *name = c->part[i]->topology;
		if (name && name[0] && !conf_topology(c, name))
			return error_set(err, EINVAL, "%s: PartitionName=%s: there is no topology \"%s\"", c->path, c->part[i]->name, name);
	}
	return 0;
}

static int finish(struct conf *c, int rc, struct conf **ret, struct error *err)
{
	if (!rc && !c->client) {
		rc = later_lines(c, err);
		if (!rc)
			rc = friend_load(c, SEC_CGROUP, "cgroup.conf", err);
		if (!rc)
			rc = friend_load(c, SEC_OCI, "oci.conf", err);
		if (!rc)
			rc = friend_load(c, SEC_MPI, "mpi.conf", err);
		if (!rc)
			rc = friend_load(c, SEC_GRES, "gres.conf", err);
		if (!rc && conf_namespace_on(c))
			rc = friend_load(c, SEC_JOBC, "job_container.conf", err);
		if (!rc)
			rc = conf_gres_merge(c, err);
		if (!rc)
			rc = topology_load(c, err);
		if (!rc)
			rc = topology_named(c, err);
	}
	if (!rc)
		rc = checks(c, err);
	if (rc) {
		conf_destroy(c);
		return rc;
	}
	hash_files(c);
	*ret = c;
	return 0;
}

static int load(const char *path, bool client, struct conf **ret, struct error *err)
{
	struct conf *c = conf_create(default_path(path));
	const char *slash = strrchr(c->path, '/');
	c->client = client;
	int rc = file_read(c, slash ? slash + 1 : c->path, err);
	if (!rc)
		rc = file_parse(c, SEC_SLURM, 0, 0, err);
	return finish(c, rc, ret, err);
}

int conf_load(const char *path, struct conf **ret, struct error *err) { return load(path, false, ret, err); }
int conf_load_client(const char *path, struct conf **ret, struct error *err) { return load(path, true, ret, err); }

int conf_load_text(const struct conf_text *file, size_t n, struct conf **ret, struct error *err)
{
	struct conf *c = conf_create(n ? file[0].name : "slurm.conf");
	int rc = n ? 0 : error_set(err, EINVAL, "no configuration file");
	c->in_memory = true;
	for (size_t i = 0; !rc && i < n; i++)
		rc = file_add(c, file[i].name, xmemdup(file[i].data, file[i].len), file[i].len, err);
	if (!rc)
		rc = file_parse(c, SEC_SLURM, 0, 0, err);
	return finish(c, rc, ret, err);
}

int conf_load_dbd(const char *path, struct conf **ret, struct error *err)
{
	char *made = NULL;
	if (!path) {
		char *copy = xstrdup(default_path(NULL));
		made = xasprintf("%s/slurmdbd.conf", dirname(copy));
		free(copy);
	}
	struct conf *c = conf_create(path ? path : made);
	free(made);
	const char *slash = strrchr(c->path, '/');
	int rc = file_read(c, slash ? slash + 1 : c->path, err);
	if (!rc)
		rc = file_parse(c, SEC_DBD, 0, 0, err);
	if (rc) {
		conf_destroy(c);
		return rc;
	}
	hash_files(c);
	*ret = c;
	return 0;
}

void conf_destroy(struct conf *c)
{
	if (!c)
		return;
	for (size_t k = 0; k < CONF_KEYS; k++) {
		for (size_t i = 0; i < c->value[k].list_n; i++)
			free(c->value[k].list[i]);
		free(c->value[k].list);
		free(c->value[k].text);
	}
	for (size_t i = 0; i < c->file_n; i++) {
		free((char *)(uintptr_t)c->file[i].name);
		free((char *)(uintptr_t)c->file[i].data);
	}
	for (size_t i = 0; i < c->string_n; i++)
		free(c->string[i]);
	for (size_t i = 0; i < c->controller_n; i++) {
		free(c->controller[i].host);
		free(c->controller[i].addr);
	}
	for (size_t i = 0; i < c->node_n; i++)
		pb__node_record__free_unpacked(c->node[i], NULL);
	for (size_t i = 0; i < c->part_n; i++)
		pb__partition_record__free_unpacked(c->part[i], NULL);
	free(c->file);
	free(c->string);
	free(c->controller);
	free(c->later);
	free(c->nodeset);
	free(c->node);
	free(c->node_index);
	free(c->part);
	free(c->gres);
	free(c->jobc);
	for (size_t i = 0; i < c->topo_n; i++)
		pb__topology_record__free_unpacked(c->topo[i], NULL);
	free(c->topo);
	free(c->topo_line);
	free(c->path);
	free(c->dir);
	free(c);
}
