/* figures.c - GPUs in use, power of the node (see figures.h) */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/powercap.h"
#include "base/str.h"
#include "model/gpustate.h"
#include "noded/figures.h"
#include "noded/nvml.h"

#define EVERY_MS 1000
#define AGAIN_SECONDS 60       /* until a watcher that has ended is started again */
#define PROCESSES_MAX 1024     /* of one GPU */
#define CONTROL 3

/* --- the watcher: a process of its own ----------------------------------------------------------------- */

/* Percent of a GPU's time by process, since the time before; false: this GPU does not tell. */
static bool shares_get(const struct nvml *v, nvml_device dev, unsigned long long *since, struct nvml_sample *ret, unsigned *ret_n)
{
	*ret_n = PROCESSES_MAX;
	if (!v->samples || v->samples(dev, ret, ret_n, *since))
		return false;
	for (unsigned i = 0; i < *ret_n; i++)
		*since = ret[i].time > *since ? ret[i].time : *since;
	return true;
}

static unsigned share_of(unsigned pid, const struct nvml_sample *list, unsigned n)
{
	unsigned share = 0;
	unsigned long long newest = 0;
	for (unsigned i = 0; i < n; i++)
		if (list[i].pid == pid && list[i].time >= newest)
			newest = list[i].time, share = list[i].sm;
	return share <= 100 ? share : 0;
}

static void device_read(const struct nvml *v, nvml_device dev, unsigned long long *since, struct gpustate *g)
{
	static struct nvml_process process[PROCESSES_MAX];
	static struct nvml_sample sample[PROCESSES_MAX];
	int (*const lists[])(nvml_device, unsigned *, struct nvml_process *) = { v->compute, v->graphics };
	struct nvml_utilization whole = { 0, 0 };
	unsigned minor, samples;
	unsigned long long mj = 0;
	if (v->minor(dev, &minor))
		return;
	if (v->energy && v->energy(dev, &mj))
		mj = 0;
	gpustate_add(g, minor, mj);
	bool told = shares_get(v, dev, since, sample, &samples);
	if (!told && v->utilization)
		(void)v->utilization(dev, &whole);
	for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
		unsigned n = PROCESSES_MAX;
		if (!lists[k] || lists[k](dev, &n, process))
			continue;
		for (unsigned i = 0; i < n && i < PROCESSES_MAX; i++)
			gpustate_add_process(g, &(struct gpu_process){ process[i].pid, minor, told ? share_of(process[i].pid, sample, samples) : whole.gpu,
							process[i].memory == NVML_ALL_ONES ? 0 : process[i].memory });
	}
}

static void state_write(const struct nvml *v)
{
	static unsigned long long since[GPUS_MAX];
	struct gpustate g = { 0 };
	struct str text = STR_INIT;
	nvml_device dev;
	unsigned count = 0;
	if (v->count(&count))
		return;
	for (unsigned i = 0; i < count && i < GPUS_MAX; i++)
		if (!v->at(i, &dev))
			device_read(v, dev, &since[i], &g);
	gpustate_format(&g, &text);
	int fd = open(GPUSTATE_FILE ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd >= 0 && write(fd, text.data ? text.data : "", text.len) == (ssize_t)text.len)
		(void)rename(GPUSTATE_FILE ".new", GPUSTATE_FILE);
	if (fd >= 0)
		close(fd);
	gpustate_fini(&g);
	str_fini(&text);
}

/* Asked once a second; what has come together while the driver was slow is one question. */
static _Noreturn void watcher_run(const char *spool, int control)
{
	struct nvml v = { 0 };
	char asked[256];
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	prctl(PR_SET_NAME, "slurmd-gpus");
	if (dup2(control, CONTROL) < 0 || close_range(CONTROL + 1, ~0u, 0) < 0 || chdir(spool) < 0 || !nvml_open(&v))
		_exit(1);
	while (read(CONTROL, asked, sizeof asked) > 0)
		state_write(&v);
	(void)unlink(GPUSTATE_FILE);
	_exit(0);
}

/* --- slurmd's side ----------------------------------------------------------------------------------------- */

static struct {
	int control;               /* to the watcher; -1: there is none */
	uint64_t again;            /* loop time when it may be started again, ms */
	uv_timer_t timer, power_timer;
	struct powercap rapl;
	bool has_rapl, has_power, has_first;
	uint64_t first_mj, last_mj, first_ms, last_ms;
	uint32_t watts, ave_watts;
} figures = { .control = -1 };

static const char *energy_type(const struct noded *n)
{
	const char *type = conf_str(n->conf, CONF_AcctGatherEnergyType), *slash = type ? strchr(type, '/') : NULL;
	return slash ? slash + 1 : "none";
}

/* Has this node GPUs that NVML can be asked about, and is that wanted? */
static bool gpus_wanted(const struct noded *n)
{
	const char *how = conf_gres_autodetect(n->conf, n->name), *type = conf_str(n->conf, CONF_JobAcctGatherType);
	bool energy = !strcmp(energy_type(n), "gpu"), usage = type && *type && strcmp(type, "jobacct_gather/none");
	if (!how || (strcasecmp(how, "nvml") && strcasecmp(how, "full")) || (!energy && (!usage || conf_has(n->conf, CONF_JobAcctGatherParams, "DisableGPUAcct"))))
		return false;
	for (size_t i = 0; i < n->gres.n; i++)
		if (!strcmp(n->gres.entry[i]->name, "gpu") && n->gres.entry[i]->files)
			return true;
	return false;
}

static bool watcher_start(struct noded *n)
{
	int pair[2];
	if (uv_now(&n->loop) < figures.again || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	figures.again = uv_now(&n->loop) + AGAIN_SECONDS * 1000;
	pid_t pid = fork();
	if (!pid)
		watcher_run(n->spool, pair[1]);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return false;
	}
	log_debug("GPUs are watched by process %d", (int)pid);
	figures.control = pair[0];
	return true;
}

/* One that hangs in the driver does not read; that is no reason to wait for it. */
static void gpus_ask(struct noded *n)
{
	if (figures.control < 0 && !watcher_start(n))
		return;
	if (send(figures.control, "?", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN) {
		log_error("the process that asks NVML about GPUs has ended; another is started in %d s", AGAIN_SECONDS);
		close(figures.control);
		figures.control = -1;
	}
}

static void on_second(uv_timer_t *timer)
{
	struct noded *n = timer->data;
	if ((n->steps || figures.has_power) && gpus_wanted(n))
		gpus_ask(n);
}

/* mJ used so far; false: not known (yet). */
static bool energy_read(const struct noded *n, uint64_t *ret)
{
	char path[4096], text[8192];
	struct gpustate g;
	if (figures.has_rapl) {
		*ret = powercap_read(&figures.rapl);
		return true;
	}
	snprintf(path, sizeof path, "%s/%s", n->spool, GPUSTATE_FILE);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	gpustate_parse(text, &g);
	*ret = 0;
	for (size_t i = 0; i < g.gpus; i++)
		*ret += g.gpu[i].mj;
	gpustate_fini(&g);
	return true;
}

static uint32_t watts(uint64_t mj, uint64_t ms) { return ms ? (uint32_t)((mj + ms / 2) / ms) : 0; }

static void on_power(uv_timer_t *timer)
{
	const struct noded *n = timer->data;
	uint64_t mj, now = uv_now(timer->loop);
	if (!energy_read(n, &mj))
		return;
	if (figures.has_first && mj >= figures.last_mj && now > figures.last_ms) {
		figures.watts = watts(mj - figures.last_mj, now - figures.last_ms);
		figures.ave_watts = watts(mj - figures.first_mj, now - figures.first_ms);
	} else {
		figures.first_mj = mj;
		figures.first_ms = now;
	}
	figures.has_first = true;
	figures.last_mj = mj;
	figures.last_ms = now;
}

void figures_configure(struct noded *n)
{
	uint64_t every = conf_num(n->conf, CONF_AcctGatherNodeFreq) * 1000;
	if (!figures.timer.data)
		return;
	figures.has_power = every && (figures.has_rapl || !strcmp(energy_type(n), "gpu"));
	if (figures.has_power)
		uv_timer_start(&figures.power_timer, on_power, 0, every);
	else
		uv_timer_stop(&figures.power_timer);
}

void figures_start(struct noded *n)
{
	bool rapl = !strcmp(energy_type(n), "rapl");
	figures.has_rapl = rapl && powercap_open(&figures.rapl);
	if (rapl && !figures.has_rapl)
		log_error("AcctGatherEnergyType=acct_gather_energy/rapl: no counter of /sys/class/powercap can be read (intel-rapl:*/energy_uj): energy is not measured");
	if (!strcmp(energy_type(n), "gpu") && !gpus_wanted(n))
		log_error("AcctGatherEnergyType=acct_gather_energy/gpu: this node has no GPUs that AutoDetect=nvml of gres.conf finds: energy is not measured");
	uv_timer_init(&n->loop, &figures.timer);
	uv_timer_init(&n->loop, &figures.power_timer);
	figures.timer.data = figures.power_timer.data = n;
	uv_timer_start(&figures.timer, on_second, EVERY_MS, EVERY_MS);
	figures_configure(n);
}

void figures_fill(Pb__NodeRecord *ret)
{
	if (!figures.has_power || !figures.has_first)
		return;
	ret->has_current_watts = ret->has_ave_watts = ret->has_energy_joules = true;
	ret->current_watts = figures.watts;
	ret->ave_watts = figures.ave_watts;
	ret->energy_joules = (figures.last_mj - figures.first_mj) / 1000;
}
