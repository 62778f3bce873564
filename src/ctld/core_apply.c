/* core_apply.c - a configuration becomes the core's (see core_config.h) */
#include <stdlib.h>

#include "conf/localzone.h"
#include "ctld/core_config.h"
#include "ctld/turn.h"

/* The local time from a year ago for twenty years on; read anew at each reconfigure. */
static struct zone_change *zone_params(struct core_params *p)
{
	struct zone_change *change;
	int64_t now = (int64_t)(ctld_now_ms() / 1000);
	p->zone.n = localzone_load(now - 366 * 86400, now + 20ll * 366 * 86400, &change);
	p->zone.change = change;
	return change;
}

static void taken(struct ctld *d, struct call *c, const ProtobufCMessage *msg)
{
	const Pb__Result *r = (const Pb__Result *)msg;
	if (r->code)
		error_set(c->arg, (int)r->code, "%s", r->detail ? r->detail : error_text((int)r->code));
}

int core_config_apply(struct ctld *d, const struct conf *conf, struct error *err)
{
	struct core_params params;
	struct core_event ev = { .type = EV_CONFIG };
	struct error said = { 0 };
	struct call *c = call_create(d, NULL, taken);
	Pb__NodeRecord *const *nodes;
	Pb__PartitionRecord *const *parts;
	core_config_params(conf, &params);
	struct zone_change *zone = zone_params(&params);
	ev.config.params = &params;
	ev.config.nodes = conf_nodes(conf, &nodes);
	ev.config.node = (Pb__NodeRecord **)nodes;
	ev.config.parts = conf_parts(conf, &parts);
	ev.config.part = (Pb__PartitionRecord **)parts;
	Pb__TopologyRecord *const *topo;
	ev.config.topos = conf_topologies(conf, &topo);
	ev.config.topo = (Pb__TopologyRecord **)topo;
	ev.token = c->token;
	c->arg = &said;
	turn_step(d, &ev);
	call_forget(d, ev.token);
	free(zone);
	if (said.code && err)
		*err = said;
	return said.code;
}
