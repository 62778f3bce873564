/* sstat_fields.c - what each field of sstat prints (rows: tables/fields_sstat.def) */
#include "cli/sstat.h"
#include "model/stepid.h"

void sstat_step_name(const Pb__StepRecord *s, struct str *out)
{
	str_addf(out, s->array_id && *s->array_id ? "%s." : "%s%u.", s->array_id && *s->array_id ? s->array_id : "", s->job_id);
	stepid_add(out, s->step_id);
}

#define GETTER(fn) static void get_##fn(struct str *out, const struct sstat_row *r)
#define USAGE(r) (r)->usage
#define VIEW(r) &(r)->view
#define PUT_DISK PUT_BYTES
#include "cli/usage_getters.h"

GETTER(alloc_tres) { str_add(out, r->step->step_id != STEP_ID_BATCH && r->step->tres ? r->step->tres : ""); }
GETTER(job_id) { sstat_step_name(r->step, out); }
GETTER(nodes) { str_add(out, r->nodes); }
GETTER(pids) { str_add(out, r->pids); }
GETTER(sluid) { str_add(out, r->step->sluid ? r->step->sluid : ""); }
GETTER(tasks) { PUT_NUMBER(out, r, r->usage->tasks); }
GETTER(zero) { (void)r; str_add(out, "0"); }                /* frequencies are not measured */
static uint64_t joules(const struct sstat_row *r)
{
	uint64_t v;
	return usageview_value(r->usage, USAGE_ENERGY, USAGEVIEW_TOTAL, &v) ? v : 0;
}
GETTER(consumed_energy) { usageview_energy(out, joules(r), r->view.no_convert); }
GETTER(consumed_energy_raw) { usageview_energy(out, joules(r), true); }
GETTER(req_freq) { str_add(out, r->step->step_id == STEP_ID_BATCH ? "0" : "Unknown"); }

const struct cells_field sstat_names[] = {
#define SSTAT(name, width, fn) { #name, width },
#include "tables/fields_sstat.def"
#undef SSTAT
};
const size_t sstat_names_n = sizeof sstat_names / sizeof *sstat_names;

static void (*const getters[])(struct str *out, const struct sstat_row *r) = {
#define SSTAT(name, width, fn) get_##fn,
#include "tables/fields_sstat.def"
#undef SSTAT
};
void sstat_get(struct str *out, size_t field, const struct sstat_row *r) { getters[field](out, r); }
