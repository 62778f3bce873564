/* figures.c - GPUs in use, energy (see figures.h) */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/powercap.h"
#include "base/str.h"
#include "model/gpustate.h"
#include "stepd/contain.h"
#include "stepd/figures.h"
#include "stepd/gpus.h"
#include "stepd/step.h"

#define STALE_SECONDS 60       /* a text that old tells nothing of what is done now */
#define MINORS_MAX 1024

static struct {
	bool gpus, rapl, gpu_energy, has_first;
	struct powercap counters;
	struct gpustate state;     /* of the last look */
	uint64_t first_mj, last_mj;
} figures;

void figures_start(struct step *s)
{
	const char *type = step_conf(s, "AcctGatherEnergyType");
	uint32_t minor[MINORS_MAX];
	bool has_gpus = gpus_minors(s, minor, MINORS_MAX) > 0;
	figures.gpus = has_gpus && !(step_conf(s, "JobAcctGatherParams") && strcasestr(step_conf(s, "JobAcctGatherParams"), "DisableGPUAcct"));
	figures.gpu_energy = has_gpus && type && !strcmp(type, "acct_gather_energy/gpu");
	figures.rapl = type && !strcmp(type, "acct_gather_energy/rapl") && powercap_open(&figures.counters);
	figures_read(s);
}

static bool is_fresh(void)
{
	struct stat st;
	return !stat(GPUSTATE_FILE, &st) && time(NULL) - st.st_mtime < STALE_SECONDS;
}

static void energy_add(const struct step *s)
{
	uint32_t minor[MINORS_MAX];
	size_t n = gpus_minors(s, minor, MINORS_MAX);
	uint64_t sum = 0;
	for (size_t i = 0; i < figures.state.gpus; i++)
		for (size_t k = 0; k < n; k++)
			sum += minor[k] == figures.state.gpu[i].minor ? figures.state.gpu[i].mj : 0;
	if (!figures.has_first || sum < figures.last_mj)       /* less: the driver was loaded anew */
		figures.first_mj = sum - (figures.has_first ? figures.last_mj - figures.first_mj : 0);
	figures.has_first = true;
	figures.last_mj = sum;
}

void figures_read(struct step *s)
{
	if (figures.rapl)
		figures.last_mj = powercap_read(&figures.counters);
	if (!figures.gpus && !figures.gpu_energy)
		return;
	char *text = is_fresh() ? contain_read(".", GPUSTATE_FILE) : NULL;
	gpustate_fini(&figures.state);
	if (text)
		gpustate_parse(text, &figures.state);
	if (text && figures.gpu_energy)
		energy_add(s);
	free(text);
}

bool figures_has_gpus(void) { return figures.gpus && figures.state.gpus; }

void figures_of(pid_t pid, uint64_t *ret_util, uint64_t *ret_memory)
{
	*ret_util = *ret_memory = 0;
	for (size_t i = 0; figures.gpus && i < figures.state.processes; i++)
		if (figures.state.process[i].pid == (uint32_t)pid) {
			*ret_util += figures.state.process[i].util;
			*ret_memory += figures.state.process[i].memory;
		}
}

bool figures_energy(uint64_t *ret)
{
	*ret = (figures.last_mj - figures.first_mj) / 1000;
	return figures.rapl || figures.has_first;
}
