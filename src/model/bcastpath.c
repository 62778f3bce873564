/* bcastpath.c - see bcastpath.h */
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/bcastpath.h"

char *bcast_path(const Pb__BcastSpec *b, uint32_t job_id, const char *node)
{
	size_t len = strlen(b->dest);
	if (!len || b->dest[len - 1] != '/')
		return xstrdup(b->dest);
	struct str path = STR_INIT;
	str_addf(&path, "%sslurm_bcast_%u.%u_%s", b->dest, job_id, b->step_id, node);
	return str_take(&path);
}
