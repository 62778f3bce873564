/* jobpath.c - where a job's output goes, as shown: the pattern as given, or expanded to the path
 * What depends on a step, task or node shows its first value, as the reference does. */
#include <stdlib.h>

#include "base/alloc.h"
#include "cli/jobview.h"
#include "model/fname.h"

#define NO_TASK 4294967294u   /* what the reference prints for the index of an array as a whole */

static char *path_expand(struct jobview *v, const char *pattern)
{
	const struct msgview *d = jobview_desc(v);
	char *user = slice_dup(msgview_text(&v->rec, PB_JobRecord_user)), *name = slice_dup(msgview_text(d, PB_JobDesc_name));
	char *node = slice_dup(msgview_text(jobview_alloc(v), PB_Alloc_batch_host)), *dir = slice_dup(msgview_text(d, PB_JobDesc_work_dir));
	char *sluid = slice_dup(msgview_text(&v->rec, PB_JobRecord_sluid));
	struct fname_ctx ctx = {
		.job_id = (uint32_t)jobview_num(v, PB_JobRecord_job_id, 0),
		.array_job_id = (uint32_t)jobview_num(v, PB_JobRecord_array_job_id, 0),
		.array_task_id = v->task >= 0 ? (uint32_t)v->task : (uint32_t)jobview_num(v, PB_JobRecord_array_task_id, NO_TASK),
		.node = node, .user = user, .name = name, .sluid = sluid, .restarts = (uint32_t)jobview_num(v, PB_JobRecord_restarts, 0),
	};
	ctx.has_task = ctx.array_job_id != 0;
	char *path = fname_path(pattern, dir ? dir : "/", &ctx);
	free(sluid);
	free(user);
	free(name);
	free(node);
	free(dir);
	return path;
}

void put_std_path(struct str *out, struct jobview *v, unsigned which, bool expand)
{
	const struct msgview *d = jobview_desc(v);
	struct slice given = msgview_text(d, which);
	char *pattern = slice_dup(given);
	size_t from = out->len;
	if (!pattern && msgview_num(d, PB_JobDesc_batch, 0)) {
		if (which == PB_JobDesc_std_in)
			pattern = xstrdup("/dev/null");
		else if (which == PB_JobDesc_std_out)
			pattern = xstrdup(fname_default(msgview_has(&v->rec, PB_JobRecord_array_job_id)));
	}
	if (pattern && expand) {
		char *path = path_expand(v, pattern);
		str_add(out, path);
		free(path);
	} else if (pattern && given.p) {
		char *dir = slice_dup(msgview_text(d, PB_JobDesc_work_dir)), *path = fname_absolute(pattern, dir ? dir : "/");
		str_add(out, path);
		free(path);
		free(dir);
	} else if (pattern) {
		str_add(out, pattern);
	} else if (!expand) {
		str_add(out, "(null)");
	}
	str_mask_controls(out, from);
	free(pattern);
}
