/* share.c - openb */
#include "sim/run.h"
#include <errno.h>
int share_run(const struct share_setup *s, struct error *err)
{
	return error_set(err, ENOTSUP, "%s: not yet", s->pods);
}
