/* srun_bcast.c - srun --bcast: the program is put on the nodes before the step starts */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/bcast.h"
#include "cli/srun.h"

char *srun_program_find(const char *name)
{
	const char *path = getenv("PATH");
	if (strchr(name, '/'))
		return xstrdup(name);
	char *copy = xstrdup(path ? path : "/usr/bin:/bin"), *cursor = copy, *dir, *found = NULL;
	while (!found && (dir = str_next(&cursor, ":"))) {
		found = xasprintf("%s/%s", *dir ? dir : ".", name);
		if (access(found, X_OK) < 0)
			xfree(found);
	}
	free(copy);
	return found;
}

int bcast_program(struct srun *s)
{
	static struct bcast b;
	if (!s->o.bcast)
		return 0;
	b.client = s->client;
	b.job_id = s->job_id;
	b.has_step = true;
	b.step_id = s->step_id;
	b.source = srun_program_find(s->argv[0]);
	if (!b.source) {
		log_error("Unable to find executable \"%s\" for --bcast", s->argv[0]);
		return srun_exit_code(2);
	}
	b.dest = bcast_dest(s->conf, *s->o.bcast ? s->o.bcast : NULL, s->o.desc->work_dir ? s->o.desc->work_dir : ".");
	b.force = b.preserve = true;
	b.compress = bcast_compress(s->conf, s->o.compress, s->o.compress != NULL);
	b.umask = jobopt_umask();
	int rc = bcast_send(&b);
	s->bcast_exec = rc ? NULL : &b.spec;
	return rc ? srun_exit_code(1) : 0;
}
