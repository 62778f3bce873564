/* usageview.h - what sstat and sacct print of a StepUsage; a figure that was not measured prints nothing */
#pragma once
#include <stdbool.h>
#include "base/str.h"
#include "model/usage.h"

struct usageview {
	bool no_convert;
	char unit;                    /* --units: K M G T P; 0: as fits */
};
enum usageview_part { USAGEVIEW_MAX, USAGEVIEW_MIN, USAGEVIEW_TOTAL, USAGEVIEW_AVERAGE };

/* An amount in bytes: the largest unit that divides it, or the one asked for. */
void usageview_bytes(struct str *out, const struct usageview *v, uint64_t bytes);
/* Joules: "1.50K", or as they are. */
void usageview_energy(struct str *out, uint64_t joules, bool raw);
/* Seconds as hours:minutes:seconds. */
void usageview_hms(struct str *out, uint64_t secs);
/* One part of a figure, in its own unit (CPU: microseconds). false: it was not measured. */
bool usageview_value(const Pb__StepUsage *u, enum usage_kind kind, enum usageview_part part, uint64_t *ret);
/* "node-1", "3": where the most or the least was. */
void usageview_node(struct str *out, const Pb__StepUsage *u, enum usage_kind kind, enum usageview_part part);
void usageview_task(struct str *out, const Pb__StepUsage *u, enum usage_kind kind, enum usageview_part part);
/* TRESUsageIn* and TRESUsageOut* (`in` false): the values, and the nodes and tasks of the most and the least. */
void usageview_tres(struct str *out, const struct usageview *v, const Pb__StepUsage *u, bool in, enum usageview_part part);
void usageview_tres_nodes(struct str *out, const Pb__StepUsage *u, bool in, enum usageview_part part);
void usageview_tres_tasks(struct str *out, const Pb__StepUsage *u, bool in, enum usageview_part part);
