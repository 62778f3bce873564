/* gpus.c - AutoDetect of gres.conf (see gpus.h) */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bitset.h"
#include "base/log.h"
#include "base/str.h"
#include "model/hostlist.h"
#include "model/idset.h"
#include "noded/gpus.h"
#include "noded/noded.h"
#include "noded/nvml.h"

#define PATIENCE_MS 30000
#define NVLINKS_MAX 18
#define WORD_BITS (8 * sizeof(unsigned long))

/* --- NVML ---------------------------------------------------------------------------------------------- */

/* "NVIDIA H100 80GB" becomes nvidia_h100_80gb. */
static void type_set(struct gpu *g, const char *name)
{
	size_t n = 0;
	for (; name[n] && n < sizeof g->type - 1; n++)
		g->type[n] = name[n] == ' ' ? '_' : (char)tolower((unsigned char)name[n]);
	g->type[n] = 0;
}

struct card { struct gpu gpu; nvml_device dev; struct nvml_pci pci; };

/* Of card `self`, to each of them in their order. */
static void links_set(const struct nvml *v, struct card *all, size_t n, size_t self)
{
	unsigned count[GPUS_MAX] = { 0 };
	struct str out = STR_INIT;
	for (unsigned k = 0; k < NVLINKS_MAX; k++) {
		struct nvml_pci far;
		int active = 0;
		if (v->link_state(all[self].dev, k, &active) || !active || v->link_pci(all[self].dev, k, &far))
			continue;
		for (size_t i = 0; i < n; i++)
			count[i] += far.domain == all[i].pci.domain && far.bus == all[i].pci.bus && far.device == all[i].pci.device;
	}
	for (size_t i = 0; i < n; i++)
		str_addf(&out, "%s%d", i ? "," : "", i == self ? -1 : (int)count[i]);
	snprintf(all[self].gpu.links, sizeof all[self].gpu.links, "%s", out.data);
	str_fini(&out);
}

static int by_minor(const void *a, const void *b)
{
	const struct gpu *x = a, *y = b;               /* also the first member of a card */
	return x->minor < y->minor ? -1 : x->minor > y->minor;
}

static size_t from_nvml(struct gpu *ret, size_t max)
{
	static struct card card[GPUS_MAX];
	struct nvml v = { 0 };
	unsigned count = 0;
	size_t n = 0;
	if (!nvml_open(&v) || v.count(&count))
		return 0;
	for (unsigned i = 0; i < count && n < max; i++) {
		struct card *k = &card[n];
		char name[96] = "";
		*k = (struct card){ 0 };
		if (v.at(i, &k->dev) || v.minor(k->dev, &k->gpu.minor) || v.pci(k->dev, &k->pci) || v.name(k->dev, name, sizeof name))
			continue;          /* a device that has failed is not there */
		type_set(&k->gpu, name);
		if (v.affinity(k->dev, GPUS_CPU_WORDS, k->gpu.cpus))
			memset(k->gpu.cpus, 0, sizeof k->gpu.cpus);
		n++;
	}
	qsort(card, n, sizeof *card, by_minor);
	for (size_t i = 0; i < n; i++) {
		links_set(&v, card, n, i);
		ret[i] = card[i].gpu;
	}
	return n;
}

/* --- the kernel's driver --------------------------------------------------------------------------------- */

static char *line_after(FILE *f, const char *word)
{
	static char line[256];
	rewind(f);
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, word, strlen(word))) {
			char *at = line + strlen(word);
			at += strspn(at, " \t");
			at[strcspn(at, "\n")] = 0;
			return at;
		}
	return NULL;
}

static void cpus_near(const char *root, const char *bus, struct gpu *g)
{
	char path[512], text[1024] = "";
	struct bitset *near = NULL;
	snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/local_cpulist", root, bus);
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(text, sizeof text, f);
	if (f)
		fclose(f);
	text[strcspn(text, "\n")] = 0;
	if (!ok || idset_parse(text, GPUS_CPU_WORDS * WORD_BITS, &near, NULL) < 0)
		return;
	bitset_for(near, i)
		g->cpus[i / WORD_BITS] |= 1ul << i % WORD_BITS;
	bitset_destroy(near);
}

size_t gpus_from_driver(const char *root, struct gpu *ret, size_t max)
{
	char path[512];
	size_t n = 0;
	snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus", root);
	DIR *dir = opendir(path);
	for (struct dirent *e; dir && n < max && (e = readdir(dir));) {
		const char *model, *minor;
		snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus/%.64s/information", root, e->d_name);
		FILE *f = *e->d_name == '.' ? NULL : fopen(path, "re");
		if (!f)
			continue;
		ret[n] = (struct gpu){ 0 };
		if ((model = line_after(f, "Model:")))
			type_set(&ret[n], model);
		unsigned long long number;
		if (model && (minor = line_after(f, "Device Minor:")) && !str_to_u64(minor, 0, 255, &number)) {
			ret[n].minor = (uint32_t)number;
			cpus_near(root, e->d_name, &ret[n++]);
		}
		fclose(f);
	}
	if (dir)
		closedir(dir);
	qsort(ret, n, sizeof *ret, by_minor);
	return n;
}

/* --- asking ------------------------------------------------------------------------------------------------ */

static size_t ask(const char *how, struct gpu *ret, size_t max)
{
	size_t n = str_eq_nocase(how, "nvidia") ? 0 : from_nvml(ret, max);
	return n || str_eq_nocase(how, "nvml") ? n : gpus_from_driver("", ret, max);
}

/* Bytes until the other end is closed; -1: it takes too long. */
static ssize_t read_all(int fd, void *buf, size_t max)
{
	size_t len = 0;
	for (ssize_t n = 1; n > 0; len += n > 0 ? (size_t)n : 0) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		if (poll(&p, 1, PATIENCE_MS) <= 0)
			return -1;
		n = read(fd, (char *)buf + len, max - len);
	}
	return (ssize_t)len;
}

int gpus_detect(const char *how, struct gpu *ret, size_t max, char **ret_problem)
{
	int end[2];
	max = max < GPUS_MAX ? max : GPUS_MAX;
	if (pipe(end) < 0) {
		*ret_problem = xasprintf("AutoDetect=%s: %s", how, strerror(errno));
		return -1;
	}
	pid_t pid = fork();
	if (!pid) {
		size_t n = ask(how, ret, max);
		for (const char *at = (const char *)ret, *stop = (const char *)(ret + n); at < stop;) {
			ssize_t k = write(end[1], at, (size_t)(stop - at));
			if (k <= 0)
				_exit(1);
			at += k;
		}
		_exit(0);
	}
	close(end[1]);
	ssize_t len = pid < 0 ? -1 : read_all(end[0], ret, max * sizeof *ret);
	close(end[0]);
	if (len < 0 && pid > 0)
		kill(pid, SIGKILL);
	if (pid > 0 && len >= 0)
		(void)waitpid(pid, NULL, 0);        /* one that hangs in the driver may not die: nobody waits for it */
	if (len <= 0)
		*ret_problem = xasprintf(len < 0 ? "AutoDetect=%s: the driver of the GPUs does not answer" : "AutoDetect=%s: no GPU was found", how);
	return len <= 0 ? -1 : (int)((size_t)len / sizeof *ret);
}

/* --- what the node has -------------------------------------------------------------------------------------- */

static Pb__NodeGres *entry_add(struct gpus_list *l, const Pb__NodeGres *like)
{
	Pb__NodeGres *e = xcalloc(1, sizeof *e);
	pb__node_gres__init(e);
	e->name = xstrdup(like->name);
	e->type = xstrdup_null(like->type);
	e->count = like->count;
	e->files = xstrdup_null(like->files);
	e->cores = xstrdup_null(like->cores);
	e->links = xstrdup_null(like->links);
	e->sockets = xstrdup_null(like->sockets);
	e->has_first_index = like->has_first_index;
	e->first_index = like->first_index;
	e->has_count_only = like->has_count_only;
	e->count_only = like->count_only;
	e->flags = xstrdup_null(like->flags);
	e->has_of_gpu = like->has_of_gpu;
	e->of_gpu = like->of_gpu;
	e->has_detected = like->has_detected;
	e->detected = like->detected;
	l->entry = xrealloc(l->entry, (l->n + 1) * sizeof *l->entry);
	l->entry[l->n++] = e;
	return e;
}

/* Cores near it as the node numbers them; NULL: unknown, or all. */
static char *cores_text(const struct gpu *g, const char *cpu_map, uint32_t threads)
{
	struct bitset *cores = bitset_create(GPUS_CPU_WORDS * WORD_BITS);
	size_t near = 0, all = 0;
	for (const char *at = cpu_map; at && *at; all++) {
		char *end;
		unsigned long cpu = strtoul(at, &end, 10);
		if (cpu < GPUS_CPU_WORDS * WORD_BITS && g->cpus[cpu / WORD_BITS] >> cpu % WORD_BITS & 1) {
			bitset_set(cores, (uint32_t)(all / (threads ? threads : 1)));
			near++;
		}
		at = *end == ',' ? end + 1 : end;
	}
	char *text = near && near < all ? idset_format(cores) : NULL;
	bitset_destroy(cores);
	return text;
}

/* A device written in gres.conf is one that was found. */
static bool is_found(const char *file, const struct gpu *found, size_t n, bool *taken)
{
	char path[32];
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof path, "/dev/nvidia%u", found[i].minor);
		if (strcmp(path, file))
			continue;
		taken[i] = true;
		return true;
	}
	return false;
}

static void files_check(const Pb__NodeGres *e, const struct gpu *found, size_t n, bool *taken, char **ret_problem)
{
	struct hostlist files = HOSTLIST_INIT;
	(void)hostlist_add(&files, e->files, NULL);
	for (size_t i = 0; i < files.count && !*ret_problem; i++)
		if (!is_found(files.name[i], found, n, taken))
			*ret_problem = xasprintf("gres/gpu: File=%s of gres.conf is not among the %zu GPUs detected", files.name[i], n);
	hostlist_fini(&files);
}

/* The first device that fits an entry which waits for one. */
static bool entry_fill(Pb__NodeGres *e, const struct gpu *found, size_t n, bool *taken, const struct hardware *hw)
{
	size_t k = 0;
	while (k < n && (taken[k] || (e->type && !strcasestr(found[k].type, e->type))))
		k++;
	if (k == n)
		return false;
	taken[k] = true;
	e->files = xasprintf("/dev/nvidia%u", found[k].minor);
	e->cores = e->cores ? e->cores : cores_text(&found[k], hw->cpu_map, hw->threads);
	e->links = e->links || !*found[k].links ? e->links : xstrdup(found[k].links);
	e->flags = e->flags ? e->flags : xstrdup("nvidia_gpu_env");
	return true;
}

/* "; detected and of another type: nvidia_a100_3g.39gb": what the type of an entry that got no device may have meant. Malloc'd. */
static char *others_text(const struct gpu *found, size_t n, const bool *taken)
{
	struct str out = STR_INIT;
	for (size_t i = 0; i < n; i++) {
		size_t before = 0;
		while (before < i && (taken[before] || strcmp(found[before].type, found[i].type)))
			before++;
		if (!taken[i] && before == i)      /* each type once */
			str_addf(&out, "%s%s", out.len ? ", " : "; detected and of another type: ", found[i].type);
	}
	return str_take(&out);
}

void gpus_merge(const Pb__NodeRecord *self, const struct gpu *found, size_t n, const struct hardware *hw, struct gpus_list *ret, char **ret_problem)
{
	bool taken[GPUS_MAX] = { false };
	uint64_t want = 0, got = 0;
	const char *missing = NULL;
	*ret = (struct gpus_list){ 0 };
	*ret_problem = NULL;
	for (size_t i = 0; i < self->n_gres_list && n; i++)        /* those with devices first: they are not for the others */
		if (!strcmp(self->gres_list[i]->name, "gpu") && self->gres_list[i]->files && !*ret_problem)
			files_check(self->gres_list[i], found, n, taken, ret_problem);
	for (size_t i = 0; i < self->n_gres_list; i++) {
		Pb__NodeGres *e = entry_add(ret, self->gres_list[i]);
		want += e->detected;
		if (e->detected && entry_fill(e, found, n, taken, hw))
			got++;
		else if (e->detected && !missing)
			missing = e->type ? e->type : "";
	}
	if (!missing || *ret_problem)
		return;
	char *others = others_text(found, n, taken);
	*ret_problem = xasprintf("gres/gpu%s%s count reported lower than configured (%llu < %llu)%s", *missing ? ":" : "", missing, (unsigned long long)got,
				 (unsigned long long)want, others ? others : "");
	free(others);
}

void gpus_list_free(struct gpus_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		pb__node_gres__free_unpacked(l->entry[i], NULL);
	free(l->entry);
	*l = (struct gpus_list){ 0 };
}
