/* powercap.c - counters of /sys/class/powercap (see powercap.h) */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/powercap.h"

static bool line_read(const char *dir, const char *name, char *ret, int size)
{
	char path[384];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(ret, size, f);
	if (f)
		fclose(f);
	if (ok)
		ret[strcspn(ret, "\n")] = 0;
	return ok;
}

static bool number_read(const char *dir, const char *name, uint64_t *ret)
{
	char text[32], *end;
	if (!line_read(dir, name, text, sizeof text))
		return false;
	*ret = strtoull(text, &end, 10);
	return end != text;
}

/* intel-rapl:0 is a package; intel-rapl:0:2 counts beside it if it is the memory's. */
static bool is_counted(const char *dir)
{
	char name[32];
	const char *first = strchr(strrchr(dir, '/'), ':');
	if (!first)
		return false;
	return !strchr(first + 1, ':') || (line_read(dir, "name", name, sizeof name) && !strcmp(name, "dram"));
}

bool powercap_open(struct powercap *ret)
{
	const char *root = getenv("BERTH_POWERCAP");
	char pattern[256];
	glob_t found;
	*ret = (struct powercap){ 0 };
	snprintf(pattern, sizeof pattern, "%.200s/intel-rapl:*", root && *root ? root : "/sys/class/powercap");
	if (glob(pattern, 0, NULL, &found))
		return false;
	for (size_t i = 0; i < found.gl_pathc && ret->zones < POWERCAP_ZONES; i++) {
		uint64_t now;
		if (strlen(found.gl_pathv[i]) >= sizeof ret->zone[0].dir || !is_counted(found.gl_pathv[i]) || !number_read(found.gl_pathv[i], "energy_uj", &now))
			continue;
		snprintf(ret->zone[ret->zones].dir, sizeof ret->zone[0].dir, "%s", found.gl_pathv[i]);
		ret->zone[ret->zones].last = now;
		if (!number_read(found.gl_pathv[i], "max_energy_range_uj", &ret->zone[ret->zones].range))
			ret->zone[ret->zones].range = 0;
		ret->zones++;
	}
	globfree(&found);
	return ret->zones > 0;
}

uint64_t powercap_read(struct powercap *p)
{
	for (unsigned i = 0; i < p->zones; i++) {
		uint64_t now, last = p->zone[i].last;
		if (!number_read(p->zone[i].dir, "energy_uj", &now))
			continue;
		if (now >= last)
			p->used_uj += now - last;
		else if (p->zone[i].range >= last)
			p->used_uj += p->zone[i].range - last + now;
		p->zone[i].last = now;
	}
	return p->used_uj / 1000;
}
