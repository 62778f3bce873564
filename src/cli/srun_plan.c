/* srun_plan.c - where stdin, stdout and stderr of the tasks lead: here, nowhere, one task, a file here, files on the nodes
 *
 * srun(1), "IO Redirection". Patterns with %t, %n, %N or %s make files on the nodes, opened there by the user's own process; any other name is
 * one file, opened here. "If --error is not also specified, both stdout and stderr will be directed to the file". */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/srun.h"
#include "model/fname.h"

static struct plan plan_of(const struct srun *s, const char *text)
{
	unsigned long long task;
	if (!text || !*text || str_eq_nocase(text, "all") || !strcmp(text, "-"))
		return (struct plan){ .kind = PLAN_HERE };
	if (str_eq_nocase(text, "none"))
		return (struct plan){ .kind = PLAN_NONE, .pattern = "none" };
	if (str_to_u64(text, 0, s->task_count ? s->task_count - 1 : 0, &task) == 0)
		return (struct plan){ .kind = PLAN_TASK, .task = (uint32_t)task };
	if (fname_is_per_task(text) || fname_is_per_node(text))
		return (struct plan){ .kind = PLAN_NODE, .pattern = text };
	return (struct plan){ .kind = PLAN_FILE, .pattern = text };
}

static char *path_of(const struct srun *s, const char *pattern)
{
	const struct passwd *pw = strstr(pattern, "%u") ? getpwuid(getuid()) : NULL;
	struct fname_ctx ctx = { .job_id = s->job_id, .array_job_id = s->job ? s->job->array_job_id : 0, .has_step = true, .step_id = s->step_id,
		.user = pw ? pw->pw_name : NULL, .name = s->job && s->job->desc ? s->job->desc->name : NULL,
		.sluid = s->job ? s->job->sluid : NULL, .restarts = s->job ? s->job->restarts : 0 };
	if (s->job && s->job->has_array_task_id) {
		ctx.has_task = true;
		ctx.array_task_id = s->job->array_task_id;
	}
	return fname_path(pattern, s->o.desc->work_dir, &ctx);
}

/* Missing folders are made, as for batch output. */
static void folders_make(char *path)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		(void)mkdir(path, 0777);
		*at = '/';
	}
}

bool srun_appends(const struct srun *s)
{
	return s->o.desc->has_open_append ? s->o.desc->open_append : conf_num(s->conf, CONF_JobFileAppend) != 0;
}

static int file_open(struct srun *s, int which, const char *pattern)
{
	char *path = path_of(s, pattern);
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (srun_appends(s) ? O_APPEND : O_TRUNC);
	mode_t keep = umask((mode_t)jobopt_umask());
	int fd = open(path, flags, 0666);
	if (fd < 0 && errno == ENOENT) {
		folders_make(path);
		fd = open(path, flags, 0666);
	}
	umask(keep);
	if (fd < 0)
		log_error("Could not open %s file %s: %s", which ? "stderr" : "stdout", path, strerror(errno));
	free(path);
	if (fd < 0)
		return srun_exit_code(1);
	sink_init(s, &s->file[which], fd);
	s->to[which] = &s->file[which];
	return 0;
}

static int input_open(struct srun *s)
{
	s->in_watch.fd = 0;
	if (s->plan_in.kind != PLAN_FILE)
		return 0;
	char *path = path_of(s, s->plan_in.pattern);
	s->in_watch.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	free(path);
	if (s->in_watch.fd >= 0)
		return 0;
	log_error("Could not open stdin file: %s", strerror(errno));
	return srun_exit_code(1);
}

int plan_make(struct srun *s)
{
	s->plan_in = plan_of(s, s->text_in);
	s->plan_out = plan_of(s, s->text_out);
	s->plan_err = plan_of(s, s->text_err);
	sink_init(s, &s->std_out, 1);
	sink_init(s, &s->std_err, 2);
	s->to[0] = &s->std_out;
	s->to[1] = &s->std_err;
	if (s->o.pty) {
		s->plan_in = (struct plan){ .kind = PLAN_TASK, .task = 0 };
		s->plan_out = s->plan_err = (struct plan){ .kind = PLAN_HERE };
		return 0;
	}
	bool joins = !s->text_err && s->plan_out.kind != PLAN_HERE && s->plan_out.kind != PLAN_TASK;
	int rc = input_open(s);
	if (!rc && s->plan_out.kind == PLAN_FILE)
		rc = file_open(s, 0, s->plan_out.pattern);
	if (rc)
		return rc;
	if (joins) {
		s->plan_err = s->plan_out;
		s->to[1] = s->to[0];
	} else if (s->plan_err.kind == PLAN_FILE && s->plan_out.kind == PLAN_FILE && !strcmp(s->plan_err.pattern, s->plan_out.pattern)) {
		s->to[1] = s->to[0];
	} else if (s->plan_err.kind == PLAN_FILE) {
		rc = file_open(s, 1, s->plan_err.pattern);
	}
	return rc;
}
