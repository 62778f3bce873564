/* jobopt_desc.c - from parsed options to what is sent: the job's description, a step's request
 *
 * jobopt_to_desc adds what the process itself knows (place, host, limits, umask, command line). jobopt_to_step copies what a step may ask for
 * out of the same description, so that srun, salloc's shell and SLURM_ variables mean the same thing in both. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/jobopt.h"
#include "cli/jobopt_row.h"

static const struct { const char *name; int id; } limits[] = {
	{ "CPU", RLIMIT_CPU }, { "FSIZE", RLIMIT_FSIZE }, { "DATA", RLIMIT_DATA }, { "STACK", RLIMIT_STACK }, { "CORE", RLIMIT_CORE },
	{ "RSS", RLIMIT_RSS }, { "NPROC", RLIMIT_NPROC }, { "NOFILE", RLIMIT_NOFILE }, { "MEMLOCK", RLIMIT_MEMLOCK }, { "AS", RLIMIT_AS },
};
#define LIMITS (sizeof(limits) / sizeof(limits[0]))

static bool list_has(const char *list, const char *word)
{
	size_t len = strlen(word);
	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		if (!strncasecmp(at, "RLIMIT_", 7))
			at += 7;
		if (!strncasecmp(at, word, len) && (!at[len] || at[len] == ','))
			return true;
	}
	return false;
}

static bool limit_goes(const char *only, const char *except, const char *name)
{
	if (str_eq_nocase(only, "NONE") || str_eq_nocase(except, "ALL") || (except && list_has(except, name)))
		return false;
	return !only || str_eq_nocase(only, "ALL") || list_has(only, name);
}

size_t jobopt_limits(const char *only, const char *except, Pb__Rlimit ***ret)
{
	Pb__Rlimit **list = xcalloc(LIMITS, sizeof(*list));
	size_t n = 0;
	for (size_t i = 0; i < LIMITS; i++) {
		struct rlimit rl;
		if (!limit_goes(only, except, limits[i].name) || getrlimit(limits[i].id, &rl) < 0)
			continue;
		list[n] = xcalloc(1, sizeof(**list));
		pb__rlimit__init(list[n]);
		list[n]->name = xstrdup(limits[i].name);
		list[n]->soft = rl.rlim_cur == RLIM_INFINITY ? UINT64_MAX : rl.rlim_cur;
		list[n++]->hard = rl.rlim_max == RLIM_INFINITY ? UINT64_MAX : rl.rlim_max;
	}
	*ret = list;
	return n;
}

void jobopt_limits_keep(Pb__JobDesc *d, const char *only, const char *except)
{
	size_t n = 0;
	for (size_t i = 0; i < d->n_rlimits; i++)
		if (limit_goes(only, except, d->rlimits[i]->name))
			d->rlimits[n++] = d->rlimits[i];
		else
			pb__rlimit__free_unpacked(d->rlimits[i], NULL);
	d->n_rlimits = n;
}

uint32_t jobopt_umask(void)
{
	const char *text = getenv("SLURM_UMASK");
	char *end;
	unsigned long value = text ? strtoul(text, &end, 8) : 0;
	if (text && *text && !*end && value <= 0777)
		return (uint32_t)value;
	mode_t mask = umask(0);
	umask(mask);
	return mask;
}

static char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return xstrdup(slash ? slash + 1 : path);
}

int jobopt_to_desc(struct jobopt *o, const char *command, int argc, char **argv, struct error *err)
{
	Pb__JobDesc *d = o->desc;
	if (!d->name && command)
		d->name = base_name(command);
	if (!d->work_dir) {
		char *here = getcwd(NULL, 0);
		if (!here && o->cmd == JOBOPT_SALLOC) {
			o->before = xasprintf("salloc: error: getcwd failed: %s", strerror(errno));
			return jobopt_refuse(o, 1, err, "Job submit/allocate failed: Job cannot be submitted without the current working directory specified.");
		}
		if (!here)
			return jobopt_refuse(o, 255, err, "getcwd failed: %s", strerror(errno));
		d->work_dir = xstrdup(here);
		free(here);
	}
	xstr_set(&d->submit_line, o->submit_line);
	xstr_set(&d->command, command);
	struct utsname host;
	if (uname(&host) == 0) {
		host.nodename[strcspn(host.nodename, ".")] = 0;
		xstr_set(&d->alloc_node, host.nodename);
	}
	d->has_alloc_sid = true;
	d->alloc_sid = (uint32_t)getsid(0);
	d->has_umask = true;
	d->umask = jobopt_umask();
	d->n_rlimits = jobopt_limits(o->propagate, NULL, &d->rlimits);
	if (o->immediate_sec >= 0) {
		d->has_immediate_sec = true;
		d->immediate_sec = (uint32_t)o->immediate_sec;
	}
	if (str_eq(d->tres_per_node, "none"))
		xfree(d->tres_per_node);
	d->has_batch = o->cmd == JOBOPT_SBATCH;
	d->batch = o->cmd == JOBOPT_SBATCH;
	d->has_interactive = o->cmd != JOBOPT_SBATCH;
	d->interactive = o->cmd != JOBOPT_SBATCH;
	d->has_no_shell = o->no_shell;
	d->no_shell = o->no_shell;
	if (argc > 0) {
		d->args = xcalloc((size_t)argc, sizeof(*d->args));
		for (int i = 0; i < argc; i++)
			d->args[d->n_args++] = xstrdup(argv[i]);
	}
	return 0;
}

/* --- steps ----------------------------------------------------------------------------------------------------- */

#define COPY_NUM(f) (s->has_##f = d->has_##f, s->f = d->f)
#define COPY_STR(f) (s->f = xstrdup_null(d->f))

static void step_copy_sizes(Pb__StepDesc *s, const Pb__JobDesc *d)
{
	COPY_NUM(min_nodes);
	COPY_NUM(max_nodes);
	COPY_NUM(num_tasks);
	COPY_NUM(cpus_per_task);
	COPY_NUM(ntasks_per_node);
	COPY_NUM(ntasks_per_socket);
	COPY_NUM(ntasks_per_core);
	COPY_NUM(ntasks_per_tres);
	COPY_NUM(threads_per_core);
	COPY_NUM(mem_per_node);
	COPY_NUM(mem_per_cpu);
	COPY_NUM(plane_size);
	COPY_NUM(time_limit_min);
	COPY_NUM(overcommit);
	COPY_NUM(no_kill);
	COPY_STR(req_nodes);
	COPY_STR(exc_nodes);
	s->tres_per_step = xstrdup_null(d->tres_per_job);
	COPY_STR(tres_per_node);
	COPY_STR(tres_per_task);
	COPY_STR(tres_per_socket);
	COPY_STR(cpus_per_tres);
	COPY_STR(mem_per_tres);
	COPY_STR(tres_bind);
	COPY_STR(tres_freq);
	COPY_STR(distribution);
	COPY_STR(network);
	COPY_STR(cpu_freq);
	COPY_STR(acctg_freq);
	COPY_STR(container);
}

/* --external-launcher: a process on each node that sees all the job has there, beside other steps. */
static void step_for_launcher(Pb__StepDesc *s, const Pb__JobDesc *d)
{
	COPY_NUM(min_nodes);
	COPY_NUM(max_nodes);
	COPY_NUM(time_limit_min);
	COPY_STR(req_nodes);
	COPY_STR(exc_nodes);
	COPY_STR(container);
	s->has_overlap = s->overlap = s->has_num_tasks = s->has_ntasks_per_node = true;
	s->num_tasks = d->has_min_nodes && d->min_nodes ? d->min_nodes : 1;
	s->ntasks_per_node = 1;
}

/* srun --exclusive for a job of its own that counts neither tasks nor the CPUs of a GPU: its step is the whole allocation, even with --exact. */
static bool step_is_all(const struct jobopt *o)
{
	const Pb__JobDesc *d = o->desc;
	return o->exclusive && !o->jobid && !d->has_num_tasks && !d->has_ntasks_per_node && !d->has_ntasks_per_tres && !d->cpus_per_tres;
}

/* --tres-per-task=cpu:N of a step, as -c N. */
static bool tres_has_cpu(const struct jobopt *o)
{
	const char *at = o->from[JO_tres_per_task] >= JOBOPT_ENV ? o->desc->tres_per_task : NULL;
	while (at && !str_starts(at, "cpu=") && !str_starts(at, "cpu:"))
		at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
	return at != NULL;
}

#define SET_FLAG(f, value) (s->has_##f = (value), s->f = (value))

Pb__StepDesc *jobopt_to_step(const struct jobopt *o, uint32_t job_id, const char *command)
{
	Pb__StepDesc *s = xcalloc(1, sizeof(*s));
	pb__step_desc__init(s);
	if (o->external_launcher)
		step_for_launcher(s, o->desc);
	else
		step_copy_sizes(s, o->desc);
	if (!o->jobid && !o->arbitrary_hosts) /* a job of its own got what it could of these */
		xfree(s->req_nodes);
	s->job_id = job_id;
	s->name = o->desc->name ? xstrdup(o->desc->name) : command ? base_name(command) : NULL;
	s->submit_line = xstrdup_null(o->submit_line);
	s->has_relative = o->has_relative;
	s->relative = o->relative;
	SET_FLAG(overlap, o->overlap || o->external_launcher);
	bool all = step_is_all(o);
	SET_FLAG(exact, !o->external_launcher && !all && (o->exact || o->exclusive || jobopt_is_set(o, JO_cpus_per_task) || tres_has_cpu(o)));
	SET_FLAG(exclusive, o->exclusive && !all);
	SET_FLAG(interactive, o->interactive);
	SET_FLAG(async, o->async);
	s->arbitrary_hosts = xstrdup_null(o->arbitrary_hosts);
	SET_FLAG(whole, o->whole);
	if (o->immediate_sec >= 0) {
		s->has_immediate_sec = true;
		s->immediate_sec = (uint32_t)o->immediate_sec;
	}
	struct utsname host;
	if (uname(&host) == 0) {
		host.nodename[strcspn(host.nodename, ".")] = 0;
		s->srun_host = xstrdup(host.nodename);
	}
	s->has_srun_pid = true;
	s->srun_pid = (uint32_t)getpid();
	s->mpi_type = xstrdup_null(o->mpi);
	return s;
}
