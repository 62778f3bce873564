/* hardware.c - what this machine has, by hwloc and the kernel (see hardware.h) */
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "model/hostlist.h"
#include "noded/hardware.h"

/* Kernel's numbers in core-major order: the order in which hwloc enumerates processing units. */
static char *cpu_map(hwloc_topology_t topo)
{
	struct str out = STR_INIT;
	for (hwloc_obj_t pu = NULL; (pu = hwloc_get_next_obj_by_type(topo, HWLOC_OBJ_PU, pu));)
		str_addf(&out, "%s%u", out.len ? "," : "", pu->os_index);
	return str_take(&out);
}

static void find_cpus(struct hardware *hw)
{
	hwloc_topology_t topo;
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	*hw = (struct hardware){ .cpus = online > 0 ? (uint32_t)online : 1, .boards = 1, .sockets = 1, .threads = 1 };
	hw->cores = hw->cpus;
	if (hwloc_topology_init(&topo) < 0)
		return;
	if (!hwloc_topology_load(topo)) {
		int sockets = hwloc_get_nbobjs_by_type(topo, HWLOC_OBJ_PACKAGE), cores = hwloc_get_nbobjs_by_type(topo, HWLOC_OBJ_CORE);
		int pus = hwloc_get_nbobjs_by_type(topo, HWLOC_OBJ_PU);
		hw->sockets = sockets > 0 ? (uint32_t)sockets : 1;
		hw->cpus = pus > 0 ? (uint32_t)pus : hw->cpus;
		cores = cores > 0 ? cores : (int)hw->cpus;
		hw->cores = (uint32_t)cores / hw->sockets;
		hw->threads = hw->cpus / (uint32_t)cores;
		hw->cpu_map = cpu_map(topo);
	}
	hwloc_topology_destroy(topo);
}

void hardware_find(struct hardware *hw, const char *tmp_fs)
{
	struct sysinfo info;
	struct utsname uts;
	struct statvfs fs;
	struct timespec now;
	find_cpus(hw);
	if (!sysinfo(&info))
		hw->memory_mb = (uint64_t)info.totalram * info.mem_unit >> 20;
	if (!statvfs(tmp_fs ? tmp_fs : "/tmp", &fs))
		hw->tmp_disk_mb = (uint64_t)fs.f_blocks * fs.f_frsize >> 20;
	clock_gettime(CLOCK_BOOTTIME, &now);
	hw->boot_time = (uint64_t)(time(NULL) - now.tv_sec);
	uname(&uts);
	hw->arch = xstrdup(uts.machine);
	hw->os = xasprintf("%s %s %s", uts.sysname, uts.release, uts.version);
}

void hardware_print(const struct hardware *hw)
{
	char host[256] = "localhost";
	gethostname(host, sizeof host - 1);
	host[strcspn(host, ".")] = 0;
	uint64_t up = (uint64_t)time(NULL) - hw->boot_time;
	printf("NodeName=%s CPUs=%u Boards=%u SocketsPerBoard=%u CoresPerSocket=%u ThreadsPerCore=%u RealMemory=%llu\n", host, hw->cpus, hw->boards,
	       hw->sockets, hw->cores, hw->threads, (unsigned long long)hw->memory_mb);
	printf("UpTime=%llu-%02llu:%02llu:%02llu\n", (unsigned long long)up / 86400, (unsigned long long)up / 3600 % 24,
	       (unsigned long long)up / 60 % 60, (unsigned long long)up % 60);
}

void hardware_load(uint32_t *ret_load, uint64_t *ret_free_mb)
{
	double load = 0;
	struct sysinfo info;
	if (getloadavg(&load, 1) == 1)
		*ret_load = (uint32_t)(load * 100);
	if (!sysinfo(&info))
		*ret_free_mb = (uint64_t)info.freeram * info.mem_unit >> 20;
}

/* What gres.conf promises and /dev does not have: malloc'd text that names the device; NULL: all is there. GPUs that AutoDetect has looked for are not looked at. */
static char *devices_problem(const Pb__NodeRecord *self, bool but_gpus)
{
	for (size_t i = 0; i < self->n_gres_list; i++) {
		const Pb__NodeGres *g = self->gres_list[i];
		struct hostlist files = HOSTLIST_INIT;
		struct stat st;
		char *problem = NULL;
		if (!g->files || (but_gpus && !strcmp(g->name, "gpu")) || hostlist_add(&files, g->files, NULL) < 0)
			continue;
		for (size_t k = 0; k < files.count && !problem; k++)
			if (stat(files.name[k], &st) < 0)
				problem = xasprintf("gres/%s: device %s is missing", g->name, files.name[k]);
		if (!problem && files.count < g->count)
			problem = xasprintf("gres/%s count reported lower than configured (%zu < %llu): %s", g->name, files.count,
					    (unsigned long long)g->count, g->files);
		hostlist_fini(&files);
		if (problem)
			return problem;
	}
	return NULL;
}

static bool has_gpus(const Pb__NodeRecord *self)
{
	for (size_t i = 0; i < self->n_gres_list; i++)
		if (!strcmp(self->gres_list[i]->name, "gpu"))
			return true;
	return false;
}

/* GPUs do not come and go while slurmd runs: they are looked for once. */
static size_t gpus_here(const char *how, struct gpu **ret, char **ret_problem)
{
	static struct gpu found[GPUS_MAX];
	static char *asked;
	static int n;
	if (!asked || strcmp(asked, how)) {
		xstr_set(&asked, how);
		n = gpus_detect(how, found, GPUS_MAX, ret_problem);
		log_info("AutoDetect=%s: %d GPUs", how, n > 0 ? n : 0);
	}
	*ret = found;
	return n > 0 ? (size_t)n : 0;
}

void hardware_gres_find(struct noded *n)
{
	const char *how = conf_gres_autodetect(n->conf, n->name);
	struct gpu *found = NULL;
	size_t count = 0;
	char *problem = NULL, *merged;
	free(n->gres_problem);
	if (how && strcasecmp(how, "off") && has_gpus(n->self))
		count = gpus_here(how, &found, &problem);
	else
		how = NULL;
	n->gres_problem = devices_problem(n->self, how != NULL);
	gpus_list_free(&n->gres);
	gpus_merge(n->self, found, count, &n->hw, &n->gres, &merged);
	problem = problem ? problem : merged;
	if (problem != merged)
		free(merged);
	if (n->gres_problem)
		free(problem);
	else
		n->gres_problem = problem;
	for (size_t i = 0; i < n->gres.n; i++)
		log_flag(GRES, "%s:%s:%llu File=%s Cores=%s", n->gres.entry[i]->name, n->gres.entry[i]->type ? n->gres.entry[i]->type : "", (unsigned long long)n->gres.entry[i]->count,
			 n->gres.entry[i]->files ? n->gres.entry[i]->files : "", n->gres.entry[i]->cores ? n->gres.entry[i]->cores : "");
	if (n->gres_problem)
		log_error("%s", n->gres_problem);
}

void hardware_gres_print(const struct noded *n)
{
	for (size_t i = 0; i < n->gres.n; i++) {
		const Pb__NodeGres *g = n->gres.entry[i];
		printf("Gres Name=%s", g->name);
		if (g->type)
			printf(" Type=%s", g->type);
		printf(" Count=%llu Index=%u", (unsigned long long)g->count, g->first_index);
		if (g->files)
			printf(" File=%s", g->files);
		if (g->cores)
			printf(" Cores=%s", g->cores);
		if (g->links)
			printf(" Links=%s", g->links);
		printf("%s%s\n", g->flags ? " Flags=" : "", g->flags ? g->flags : "");
	}
	if (n->gres_problem)
		printf("%s\n", n->gres_problem);
}
