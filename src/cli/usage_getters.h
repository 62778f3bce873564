/* usage_getters.h - get_ave_cpu and its like: what sacct and sstat both print of a step's StepUsage
 *
 * Included once by each, after it has said what its row is and how it prints:
 *   GETTER(fn)              the head of get_<fn>(struct str *out, row *r)
 *   USAGE(r), VIEW(r)       the row's Pb__StepUsage (may be NULL) and struct usageview
 *   PUT_DISK(out, r, v)     an amount read or written, in bytes */
#include "cli/usageview.h"

#define PUT_SECONDS(out, r, v) usageview_hms(out, (v) / 1000000)
#define PUT_BYTES(out, r, v) usageview_bytes(out, VIEW(r), v)
#define PUT_NUMBER(out, r, v) str_addf(out, "%llu", (unsigned long long)(v))

#define VALUE(fn, kind, part, put) GETTER(fn) { uint64_t v; if (usageview_value(USAGE(r), USAGE_##kind, USAGEVIEW_##part, &v)) put(out, r, v); }
#define VALUE_WHERE(fn, kind, part, put) VALUE(fn, kind, part, put) \
	GETTER(fn##_node) { usageview_node(out, USAGE(r), USAGE_##kind, USAGEVIEW_##part); } \
	GETTER(fn##_task) { usageview_task(out, USAGE(r), USAGE_##kind, USAGEVIEW_##part); }
#define TRES(fn, in, part) GETTER(fn) { usageview_tres(out, VIEW(r), USAGE(r), in, USAGEVIEW_##part); }
#define TRES_WHERE(fn, in, part) TRES(fn, in, part) \
	GETTER(fn##_node) { usageview_tres_nodes(out, USAGE(r), in, USAGEVIEW_##part); } \
	GETTER(fn##_task) { usageview_tres_tasks(out, USAGE(r), in, USAGEVIEW_##part); }

VALUE(ave_cpu, CPU, AVERAGE, PUT_SECONDS)
VALUE(ave_rss, RSS, AVERAGE, PUT_BYTES)
VALUE(ave_vmsize, VSIZE, AVERAGE, PUT_BYTES)
VALUE(ave_pages, PAGES, AVERAGE, PUT_NUMBER)
VALUE(ave_disk_read, READ, AVERAGE, PUT_DISK)
VALUE(ave_disk_write, WRITTEN, AVERAGE, PUT_DISK)
VALUE_WHERE(max_disk_read, READ, MAX, PUT_DISK)
VALUE_WHERE(max_disk_write, WRITTEN, MAX, PUT_DISK)
VALUE_WHERE(max_pages, PAGES, MAX, PUT_NUMBER)
VALUE_WHERE(max_rss, RSS, MAX, PUT_BYTES)
VALUE_WHERE(max_vmsize, VSIZE, MAX, PUT_BYTES)
VALUE_WHERE(min_cpu, CPU, MIN, PUT_SECONDS)
TRES(tresusage_in_ave, true, AVERAGE)
TRES_WHERE(tresusage_in_max, true, MAX)
TRES_WHERE(tresusage_in_min, true, MIN)
TRES(tresusage_in_tot, true, TOTAL)
TRES(tresusage_out_ave, false, AVERAGE)
TRES_WHERE(tresusage_out_max, false, MAX)
TRES_WHERE(tresusage_out_min, false, MIN)
TRES(tresusage_out_tot, false, TOTAL)

#undef VALUE
#undef VALUE_WHERE
#undef TRES
#undef TRES_WHERE
