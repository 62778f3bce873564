/* rlimits.c - resource limits of tasks (see rlimits.h) */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "stepd/rlimits.h"
#include "stepd/step.h"

static const struct { const char *name; int resource; } names[] = {
	{ "CPU", RLIMIT_CPU }, { "FSIZE", RLIMIT_FSIZE }, { "DATA", RLIMIT_DATA }, { "STACK", RLIMIT_STACK }, { "CORE", RLIMIT_CORE },
	{ "RSS", RLIMIT_RSS }, { "NPROC", RLIMIT_NPROC }, { "NOFILE", RLIMIT_NOFILE }, { "MEMLOCK", RLIMIT_MEMLOCK }, { "AS", RLIMIT_AS },
};

static void limit_set(int resource, const Pb__Rlimit *want)
{
	struct rlimit have, lim;
	if (getrlimit(resource, &have) < 0)
		return;
	lim.rlim_cur = want->soft == UINT64_MAX ? RLIM_INFINITY : want->soft;
	lim.rlim_max = have.rlim_max;
	if (lim.rlim_max != RLIM_INFINITY && (lim.rlim_cur == RLIM_INFINITY || lim.rlim_cur > lim.rlim_max))
		lim.rlim_cur = lim.rlim_max;       /* never above what this node allows */
	if (setrlimit(resource, &lim) < 0)
		log_debug("cannot set the limit %s: %s", want->name, strerror(errno));
}

/* A unit of systemd may spare slurmd, and with it slurmstepd, when memory runs out; what users run is not spared. */
static void oom_score_reset(void)
{
	char now = 0;
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	if (read(fd, &now, 1) == 1 && now == '-' && pwrite(fd, "0", 1, 0) != 1)
		log_error("tasks keep the oom_score_adj of slurmd: %s", strerror(errno));
	close(fd);
}

void limits_apply(const struct step *s)
{
	const Pb__JobDesc *d = s->cred->job->desc;
	Pb__Rlimit **list = s->spec ? s->spec->rlimits : d ? d->rlimits : NULL;
	size_t n = s->spec ? s->spec->n_rlimits : d ? d->n_rlimits : 0;
	oom_score_reset();
	if (s->nofile.rlim_max)
		setrlimit(RLIMIT_NOFILE, &s->nofile);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof names / sizeof *names; k++)
			if (!strcmp(list[i]->name, names[k].name))
				limit_set(names[k].resource, list[i]);
	if (s->spec && s->spec->has_nice && s->spec->nice)
		if (setpriority(PRIO_PROCESS, 0, s->spec->nice) < 0)
			log_debug("cannot set nice value %d: %s", s->spec->nice, strerror(errno));
}
