/* sstat_fields.c - what each field of sstat prints (rows: tables/fields_sstat.def) */
#include "cli/sstat.h"
#include "model/stepid.h"

void sstat_step_name(const Pb__StepRecord *s, struct str *out)
{
	str_addf(out, s->array_id && *s->array_id ? "%s." : "%s%u.", s->array_id && *s->array_id ? s->array_id : "", s->job_id);
	stepid_add(out, s->step_id);
}

#define GETTER(fn) static void get_##fn(struct str *out, const struct sstat_row *r)
#define VALUE(fn, kind, part, put) GETTER(fn) { uint64_t v; if (usageview_value(r->usage, USAGE_##kind, USAGEVIEW_##part, &v)) put(out, r, v); }
#define WHERE(fn, kind, part) \
	GETTER(fn##_node) { usageview_node(out, r->usage, USAGE_##kind, USAGEVIEW_##part); } \
	GETTER(fn##_task) { usageview_task(out, r->usage, USAGE_##kind, USAGEVIEW_##part); }
#define TRES(fn, in, part) GETTER(fn) { usageview_tres(out, &r->view, r->usage, in, USAGEVIEW_##part); }
#define TRES_WHERE(fn, in, part) \
	GETTER(fn##_node) { usageview_tres_nodes(out, r->usage, in, USAGEVIEW_##part); } \
	GETTER(fn##_task) { usageview_tres_tasks(out, r->usage, in, USAGEVIEW_##part); }

static void bytes(struct str *out, const struct sstat_row *r, uint64_t v) { usageview_bytes(out, &r->view, v); }
static void seconds(struct str *out, const struct sstat_row *r, uint64_t usec) { (void)r; usageview_hms(out, usec / 1000000); }
static void number(struct str *out, const struct sstat_row *r, uint64_t v) { (void)r; str_addf(out, "%llu", (unsigned long long)v); }

VALUE(ave_cpu, CPU, AVERAGE, seconds)
VALUE(ave_read, READ, AVERAGE, bytes)
VALUE(ave_written, WRITTEN, AVERAGE, bytes)
VALUE(ave_pages, PAGES, AVERAGE, number)
VALUE(ave_rss, RSS, AVERAGE, bytes)
VALUE(ave_vsize, VSIZE, AVERAGE, bytes)
VALUE(max_read, READ, MAX, bytes)
WHERE(max_read, READ, MAX)
VALUE(max_written, WRITTEN, MAX, bytes)
WHERE(max_written, WRITTEN, MAX)
VALUE(max_pages, PAGES, MAX, number)
WHERE(max_pages, PAGES, MAX)
VALUE(max_rss, RSS, MAX, bytes)
WHERE(max_rss, RSS, MAX)
VALUE(max_vsize, VSIZE, MAX, bytes)
WHERE(max_vsize, VSIZE, MAX)
VALUE(min_cpu, CPU, MIN, seconds)
WHERE(min_cpu, CPU, MIN)
TRES(tres_in_ave, true, AVERAGE)
TRES(tres_in_max, true, MAX)
TRES_WHERE(tres_in_max, true, MAX)
TRES(tres_in_min, true, MIN)
TRES_WHERE(tres_in_min, true, MIN)
TRES(tres_in_tot, true, TOTAL)
TRES(tres_out_ave, false, AVERAGE)
TRES(tres_out_max, false, MAX)
TRES_WHERE(tres_out_max, false, MAX)
TRES(tres_out_min, false, MIN)
TRES_WHERE(tres_out_min, false, MIN)
TRES(tres_out_tot, false, TOTAL)

GETTER(alloc_tres) { str_add(out, r->step->step_id != STEP_ID_BATCH && r->step->tres ? r->step->tres : ""); }
GETTER(job_id) { sstat_step_name(r->step, out); }
GETTER(nodes) { str_add(out, r->nodes); }
GETTER(pids) { str_add(out, r->pids); }
GETTER(sluid) { str_add(out, r->step->sluid ? r->step->sluid : ""); }
GETTER(tasks) { number(out, r, r->usage->tasks); }
GETTER(zero) { (void)r; str_add(out, "0"); }                /* frequencies and energy are not measured */
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
