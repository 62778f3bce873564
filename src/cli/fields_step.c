/* fields_step.c - getters and sort keys behind tables/fields_step.def */
#include "cli/fields_job.h"
#include "model/states.h"
#include "model/stepid.h"
#include "model/timespec.h"

#define GET(fn) static void fn(struct str *out, void *row, const struct field *f)
#define KEY(fn) static int64_t fn(void *row, const struct field *f)
#define STEP ((const struct msgview *)row)

void put_step_id(struct str *out, const struct msgview *step)
{
	struct slice array = msgview_text(step, PB_StepRecord_array_id);
	if (array.n)
		str_add_n(out, array.p, array.n);
	else
		put_u64(out, msgview_num(step, PB_StepRecord_job_id, 0));
	str_add_c(out, '.');
	stepid_add(out, (uint32_t)msgview_num(step, PB_StepRecord_step_id, 0));
}

uint64_t step_run_sec(const struct msgview *step)
{
	uint64_t start = msgview_num(step, PB_StepRecord_start_time, 0), end = msgview_num(step, PB_StepRecord_end_time, 0);
	if (!end)
		end = show_env.now;
	return start && end > start ? end - start : 0;
}

GET(step_fixed) { str_add(out, f->absent); }
GET(step_cluster) { put_text(out, show_env.cluster, f->absent); }
GET(step_text) { put_slice_set(out, msgview_text(STEP, f->arg), f->absent); }
GET(step_num) { put_u64(out, msgview_num(STEP, f->arg, 0)); }
KEY(step_key) { return (int64_t)msgview_num(STEP, f->arg, 0); }
GET(step_time) { put_when(out, msgview_num(STEP, f->arg, 0), f->absent); }
GET(step_limit)
{
	if (msgview_num(STEP, f->arg, 0))
		put_limit_short(out, msgview_num(STEP, f->arg, 0));
	else
		str_add(out, f->absent);
}
GET(step_id) { put_step_id(out, STEP); }
KEY(step_key_id) { return (int64_t)(msgview_num(STEP, PB_StepRecord_job_id, 0) << 32 | msgview_num(STEP, PB_StepRecord_step_id, 0)); }
GET(step_state) { str_add(out, job_state_name((uint32_t)msgview_num(STEP, PB_StepRecord_state, 0), 0)); }
KEY(step_key_state) { return (int64_t)msgview_num(STEP, PB_StepRecord_state, 0); }
KEY(step_key_used) { return (int64_t)step_run_sec(STEP); }
GET(step_used) { put_secs_short(out, step_run_sec(STEP)); }
GET(step_user) { put_user(out, msgview_text(STEP, PB_StepRecord_user), msgview_num(STEP, PB_StepRecord_uid, 0)); }

static struct slice array_part(const struct msgview *step, bool task)
{
	struct slice s = msgview_text(step, PB_StepRecord_array_id);
	size_t job = 0;
	while (job < s.n && s.p[job] != '_')
		job++;
	if (!s.n || job == s.n)
		return (struct slice){ 0 };
	return task ? (struct slice){ s.p + job + 1, s.n - job - 1 } : (struct slice){ s.p, job };
}
GET(step_array_job) { put_slice(out, array_part(STEP, false), f->absent); }
GET(step_array_task) { put_slice(out, array_part(STEP, true), f->absent); }

#define FIELD(letter, name, header, get, arg, absent, key) { letter, name, header, get, arg, absent, key, 0 },
#define FIELD_HIDDEN(letter, name, header, get, arg, absent, key) { letter, name, header, get, arg, absent, key, FIELD_HIDDEN },
#define FIELD_SPAN(letter, name, header, get, arg, absent, key) { letter, name, header, get, arg, absent, key, FIELD_SPAN },
#define FIELD_TODO(letter, name, header) { letter, name, header, NULL, 0, NULL, NULL, FIELD_TODO },
const struct field step_fields[] = {
#include "tables/fields_step.def"
};
const size_t step_fields_n = sizeof(step_fields) / sizeof(step_fields[0]);
