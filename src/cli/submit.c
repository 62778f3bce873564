/* submit.c - see submit.h */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/opt.h"
#include "cli/submit.h"
#include "model/timespec.h"

extern char **environ;
enum { EXPORT_FILE_MAX = 1 << 20 };

/* --- environment ---------------------------------------------------------------------------------- */

static size_t vars_count(char *const *vars)
{
	size_t n = 0;
	while (vars[n])
		n++;
	return n;
}

/* End of the piece that starts at p: a comma outside quotes, or the end. */
static const char *piece_end(const char *p)
{
	char quote = '\0';
	for (; *p; p++) {
		if (quote)
			quote = *p == quote ? '\0' : quote;
		else if (*p == '"' || *p == '\'')
			quote = *p;
		else if (*p == ',')
			break;
	}
	return p;
}

/* "NAME" or "NAME=value" of an --export list. */
static void piece_export(const char *piece, size_t len, char *const *vars, struct envlist *ret)
{
	char *copy = xstrndup(piece, len);

	if (strchr(copy, '=')) {
		envlist_load(ret, &copy, 1);
	} else {
		for (char *const *v = vars; *v; v++)
			if (strncmp(*v, copy, len) == 0 && (*v)[len] == '=')
				envlist_load(ret, v, 1);
	}
	free(copy);
}

void submit_export(const char *spec, char *const *vars, struct envlist *ret)
{
	const char *p = spec;

	if (!spec) {
		envlist_load(ret, vars, vars_count(vars));
		return;
	}
	for (char *const *v = vars; *v; v++)
		if (str_starts(*v, "SLURM_") || str_starts(*v, "SPANK_"))
			envlist_load(ret, v, 1);
	while (*p) {
		const char *end = piece_end(p);
		size_t len = (size_t)(end - p);
		if (len == 3 && strncasecmp(p, "ALL", len) == 0)
			envlist_load(ret, vars, vars_count(vars));
		else if (!(len == 4 && strncasecmp(p, "NONE", len) == 0) && !(len == 3 && strncasecmp(p, "NIL", len) == 0) && len > 0)
			piece_export(p, len, vars, ret);
		p = end + (*end == ',');
	}
}

/* NAME=value pieces, each ended by a NUL, of a file or of a file descriptor's number. */
static int export_file(const char *file, struct envlist *ret, struct error *err)
{
	unsigned long long number;
	int fd = str_to_u64(file, 0, 1 << 20, &number) == 0 ? dup((int)number) : open(file, O_RDONLY | O_CLOEXEC);
	struct str text = STR_INIT;
	ssize_t n = 0;

	if (fd < 0)
		return error_set(err, errno, "--export-file: cannot open %s: %m", file);
	do {
		str_reserve(&text, 65536);
		n = read(fd, text.data + text.len, 65536);
		text.len += n > 0 ? (size_t)n : 0;
		text.data[text.len] = '\0';
	} while (n > 0 && text.len < EXPORT_FILE_MAX);
	close(fd);
	for (size_t at = 0; at < text.len; at += strlen(text.data + at) + 1) {
		char *piece = text.data + at;
		envlist_load(ret, &piece, 1);
	}
	str_fini(&text);
	return n < 0 ? error_set(err, EIO, "--export-file: cannot read %s", file) : 0;
}

void submit_env_gpus(const struct jobopt *o, struct envlist *ret)
{
	static const char *const word[] = { "HET", "PACK" };
	unsigned group = 0;
	for (const struct jobopt *p = o; p; p = p->next, group++) {
		const char *value = p->gpus_per_node;
		char name[64];
		if (!value)
			continue;
		value += str_starts(value, "gres/gpu:") ? 9 : 0;
		if (p == o)
			envlist_set(ret, "SLURM_GPUS_PER_NODE", value);
		for (size_t i = 0; i < 2 && o->next; i++) {
			snprintf(name, sizeof name, "SLURM_GPUS_PER_NODE_%s_GROUP_%u", word[i], group);
			envlist_set(ret, name, value);
		}
	}
}

int submit_env(struct jobopt *o, struct envlist *ret, struct error *err)
{
	const char *spec = o->desc->export_env;
	char *here = getcwd(NULL, 0);

	if (o->export_file) {
		int rc = export_file(o->export_file, ret, err);
		if (rc < 0) {
			free(here);
			return rc;
		}
	} else {
		submit_export(spec && strcasecmp(spec, "ALL") == 0 ? NULL : spec, environ, ret);
	}
	/* A user's token for this cluster is not for the job to keep. */
	envlist_unset(ret, "SLURM_JWT");
	envlist_unset(ret, "SLURM_UMASK");         /* it is the script's umask now */
	envlist_set(ret, "SLURM_SUBMIT_DIR", here ? here : "/");
	envlist_set(ret, "SLURM_SUBMIT_HOST", o->desc->alloc_node ? o->desc->alloc_node : "localhost");
	envlist_setf(ret, "SLURM_PRIO_PROCESS", "%d", getpriority(PRIO_PROCESS, 0));
	if (o->no_torch)                           /* the step's affair: srun reads it */
		envlist_set(ret, "SLURM_EXPORT_TORCH", "no");
	submit_env_gpus(o, ret);
	if (spec && strcasecmp(spec, "ALL") != 0 && strcasecmp(spec, "NIL") != 0)
		o->get_user_env = true;
	if (o->get_user_env) {
		envlist_set(ret, "SLURM_GET_USER_ENV", "1");
		o->desc->has_get_user_env = o->desc->get_user_env = true;
	}
	free(here);
	return 0;
}

/* --- the call ------------------------------------------------------------------------------------- */

size_t submit_limits(const struct jobopt *o, const struct conf *c, Pb__Rlimit ***ret)
{
	if (o->propagate)
		return jobopt_limits(o->propagate, NULL, ret);
	return jobopt_limits(conf_str(c, CONF_PropagateResourceLimits), conf_str(c, CONF_PropagateResourceLimitsExcept), ret);
}

/* Of the limits in the description those that the configuration, which is known now, hands on. */
static void limits_narrow(struct jobopt *o, const struct conf *c)
{
	if (!o->propagate)
		jobopt_limits_keep(o->desc, conf_str(c, CONF_PropagateResourceLimits), conf_str(c, CONF_PropagateResourceLimitsExcept));
}

/* --core-spec and --thread-spec count only where AllowSpecResourcesUsage lets them. */
static void spec_ignored(struct jobopt *o, const struct conf *c)
{
	Pb__JobDesc *d = o->desc;
	bool cores = d->has_core_spec, threads = d->has_thread_spec;
	if (conf_bool(c, CONF_AllowSpecResourcesUsage))
		return;
	if (cores || threads)
		fprintf(stderr, "%s: error: Ignoring %s since it's not allowed by configuration (AllowSpecResourcesUsage = No)\n", program_invocation_short_name, cores ? "-S" : "--thread-spec");
	d->has_core_spec = d->has_thread_spec = false;
	d->core_spec = d->thread_spec = 0;
}

int submit_send(struct client *c, struct jobopt *o, const struct script *script, const struct envlist *env, const struct submit_step *first,
		Pb__SubmitRsp **ret, struct error *err)
{
	Pb__SubmitReq req = PB__SUBMIT_REQ__INIT;
	ProtobufCMessage *rsp = NULL;
	uint8_t key[16];
	int rc;

	if (o->clusters && !opt_clusters(program_invocation_short_name, o->clusters, conf_str(client_conf(c), CONF_ClusterName)))
		exit(1);
	if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
		return error_set(err, errno, "no random bytes for the submission key: %m");
	for (struct jobopt *p = o; p; p = p->next)
		limits_narrow(p, client_conf(c)), spec_ignored(p, client_conf(c));
	req.desc = o->desc;
	req.idem_key.data = key;
	req.idem_key.len = sizeof(key);
	req.first_step = first ? first->desc : NULL;
	req.has_test_only = req.test_only = o->test_only;
	req.has_as_uid = o->has_as_uid;
	req.as_uid = o->as_uid;
	req.has_as_gid = o->has_as_gid;
	req.as_gid = o->as_gid;
	if (script) {
		req.has_script = true;
		req.script.data = (uint8_t *)script->data;
		req.script.len = script->len;
	}
	if (env) {
		req.env = env->var;
		req.n_env = env->count;
	}
	for (const struct jobopt *p = o->next; p; p = p->next) {
		req.more = xrealloc(req.more, (req.n_more + 1) * sizeof(*req.more));
		req.more[req.n_more++] = p->desc;
	}
	if (first)
		first->ready(&req, first->arg);
	rc = client_call(c, RPC_SUBMIT, &req.base, 0, &rsp, err);
	free(req.more);
	if (rc == 0)
		*ret = (Pb__SubmitRsp *)rsp;
	return rc;
}

int submit_refused(const char *cmd, const char *what, int code, const char *detail)
{
	const char *text = error_text(code);

	if (detail && *detail && !str_eq(detail, text))
		fprintf(stderr, "%s: error: %s\n", cmd, detail);
	fprintf(stderr, "%s: error: %s: %s\n", cmd, what, text);
	return 1;
}

int submit_estimate(const char *cmd, const Pb__SubmitRsp *rsp)
{
	char when[64];

	if (rsp->code) {
		fprintf(stderr, "allocation failure: %s\n", error_text((int)rsp->code));
		if (rsp->detail && !str_eq(rsp->detail, error_text((int)rsp->code)))
			fprintf(stderr, "%s: %s\n", cmd, rsp->detail);
		return 1;
	}
	if (!rsp->has_est_start) { /* it would wait for ever as things are */
		fprintf(stderr, "allocation failure: %s\n", error_text(ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE));
		return 1;
	}
	timespec_print_when((time_t)rsp->est_start, NULL, 0, when, sizeof(when));
	fprintf(stderr, "%s: Job %u to start at %s a using %u processors on nodes %s in partition %s\n", cmd, rsp->job_id, when, rsp->est_cpus,
		rsp->est_nodes ? rsp->est_nodes : "(null)", rsp->est_partition ? rsp->est_partition : "(null)");
	return 0;
}

void submit_user_msg(const char *cmd, const char *text)
{
	while (text && *text) {
		size_t n = strcspn(text, "\n");
		fprintf(stderr, "%s: %.*s\n", cmd, (int)n, text);
		text += n + (text[n] == '\n');
	}
}
