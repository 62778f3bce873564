/* plugins.c - see plugins.h
 *
 * slurm.conf says where plugstack.conf is, so it is read before the options are; the same reading then serves the client. A slurm.conf that cannot be read is no
 * error yet: --help works without, and the client will say what is wrong. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/jobopt_row.h"
#include "cli/plugins.h"
#include "conf/conf.h"
#include "spank/stack.h"

#define OPTIONS_MAX 512
extern char **environ;

static struct conf *loaded;   /* until the command takes it */

struct conf *plugins_conf(void)
{
	struct conf *c = loaded;
	loaded = NULL;
	return c;
}

static int take(size_t at, const char *value, struct error *err)
{
	struct spank_stack_option all[OPTIONS_MAX];
	if (at >= spank_stack_options(all, OPTIONS_MAX))
		return error_set(err, EINVAL, "unknown option");
	if (spank_stack_option_set(at, value, 0) == 0)
		return 0;
	return error_set(err, EINVAL, "Invalid --%s argument: %s", all[at].opt->name, value ? value : "");
}

/* An option of our own has that name: then it is not the plugin's. */
static bool is_taken(const struct jobopt *o, const struct spank_stack_option *option)
{
	struct opt_row own[JOBOPT_COUNT];
	size_t n = jobopt_rows_of(o->cmd, own);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(own[i].name, option->opt->name)) {
			log_error("Ignoring conflicting option \"%s\" in plugin \"%s\"", option->opt->name, option->plugin);
			return true;
		}
	return false;
}

static void rows_make(struct jobopt *o)
{
	struct spank_stack_option all[OPTIONS_MAX];
	size_t n = spank_stack_options(all, OPTIONS_MAX), kept = 0;
	struct opt_row *row = xcalloc(n + 1, sizeof(*row));
	for (size_t i = 0; i < n; i++)
		if (!is_taken(o, &all[i]))
			row[kept++] = (struct opt_row){ .name = all[i].opt->name, .arg = all[i].opt->has_arg == 1 ? OPT_REQUIRED : all[i].opt->has_arg ? OPT_OPTIONAL : OPT_NONE,
			.meta = all[i].opt->arginfo, .help = all[i].opt->usage, .id = (int)(JOBOPT_COUNT + i) };
	o->more = row;
	o->more_n = kept;
	o->more_take = take;
}

void plugins_load(struct jobopt *o)
{
	struct error none = { 0 };
	char path[4096];
	size_t n = 0;
	if (conf_load_client(NULL, &loaded, &none) < 0 || !conf_plugstack(loaded, path, sizeof path))
		return;
	spank_context_t context = o->cmd == JOBOPT_SRUN ? S_CTX_LOCAL : S_CTX_ALLOCATOR;
	spank_job.uid = getuid();
	spank_job.gid = getgid();
	if (spank_stack_load(path, conf_str(loaded, CONF_PluginDir), context) < 0 || spank_stack_call(SPANK_INIT) < 0) {
		log_error(context == S_CTX_LOCAL ? "Plug-in initialization failed" : "Failed to initialize plugin stack");
		exit(jobopt_exit_code("SLURM_EXIT_ERROR", 1));
	}
	while (environ[n])
		n++;
	if (spank_stack_options_in(environ, n) < 0)
		exit(jobopt_exit_code("SLURM_EXIT_ERROR", 1));
	rows_make(o);
}

/* For an srun in the allocation, and whoever looks. slurmstepd does it for batch scripts. */
static void child_env(const Pb__JobDesc *d)
{
	char **out;
	for (size_t i = 0; i < d->n_spank_env; i++)
		putenv(xasprintf("SLURM_%s", d->spank_env[i]));
	size_t n = spank_stack_options_out(&out, false);
	for (size_t i = 0; i < n; i++)
		putenv(out[i]);
	free(out);
}

int plugins_ready(struct jobopt *o)
{
	char **out;
	if (spank_stack_is_empty())
		return 0;
	if (spank_stack_call(SPANK_INIT_POST_OPT) < 0) {
		log_error("Plugin stack post-option processing failed%s", o->cmd == JOBOPT_SRUN ? "." : "");
		return jobopt_exit_code("SLURM_EXIT_ERROR", 1);
	}
	size_t n = spank_stack_options_out(&out, true), k = spank_job.control.count;
	Pb__JobDesc *d = o->desc;
	d->spank_env = xcalloc(n + k + 1, sizeof(*d->spank_env));
	for (size_t i = 0; i < k; i++)
		d->spank_env[d->n_spank_env++] = xstrdup(spank_job.control.var[i]);
	for (size_t i = 0; i < n; i++)
		d->spank_env[d->n_spank_env++] = out[i];
	free(out);
	if (o->cmd == JOBOPT_SALLOC)
		child_env(d);
	return 0;
}

int plugins_step(uint32_t job_id, uint32_t step_id, uint32_t nodes, uint32_t tasks, int argc, char **argv)
{
	if (spank_stack_is_empty())
		return 0;
	spank_job.job_id = job_id;
	spank_job.step_id = step_id;
	spank_job.nnodes = nodes;
	spank_job.total_tasks = tasks;
	spank_job.argc = argc;
	spank_job.argv = argv;
	if (spank_stack_call(SPANK_LOCAL_USER_INIT) == 0)
		return 0;
	log_error("Failure in local plugin stack");
	return jobopt_exit_code("SLURM_EXIT_ERROR", 1);
}

size_t plugins_options_out(char ***ret)
{
	*ret = NULL;
	return spank_stack_is_empty() ? 0 : spank_stack_options_out(ret, false);
}

void plugins_exit(void)
{
	if (!spank_stack_is_empty())
		(void)spank_stack_call(SPANK_EXIT);
}
