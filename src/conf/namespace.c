/* namespace.c - job_container.conf: which folders of a job are private on a node
 * Lines without NodeName hold for all nodes, those with it for the nodes they name; what a later line says counts. */
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "conf/internal.h"
#include "model/hostlist.h"

bool conf_namespace_on(const struct conf *c)
{
	const char *type = conf_str(c, CONF_NamespaceType), *old = conf_str(c, CONF_JobContainerType);
	return (type && !strcasecmp(type, "namespace/tmpfs")) || (old && !strcasecmp(old, "job_container/tmpfs"));
}

static bool line_is_for(const struct conf_line *l, const char *node)
{
	const char *nodes = conf_line_get(l, CONF_Jobc_NodeName);
	struct hostlist hl = HOSTLIST_INIT;
	bool ours = !nodes || (!hostlist_add(&hl, nodes, NULL) && hostlist_find(&hl, node) >= 0);
	hostlist_fini(&hl);
	return ours;
}

void conf_namespace(const struct conf *c, const char *node, struct conf_namespace *ret)
{
	*ret = (struct conf_namespace){ .dirs = "/tmp,/dev/shm" };
	for (size_t i = 0; conf_namespace_on(c) && i < c->jobc_n; i++) {
		const struct conf_line *l = &c->jobc[i];
		const char *base = conf_line_get(l, CONF_Jobc_BasePath), *dirs = conf_line_get(l, CONF_Jobc_Dirs);
		if (!line_is_for(l, node))
			continue;
		ret->base = base ? base : ret->base;
		ret->dirs = dirs ? dirs : ret->dirs;
		if (conf_line_get(l, CONF_Jobc_AutoBasePath))
			ret->auto_base = conf_line_bool(l, CONF_Jobc_AutoBasePath);
		if (conf_line_get(l, CONF_Jobc_Shared))
			ret->shared = conf_line_bool(l, CONF_Jobc_Shared);
	}
	if (ret->base && !strcasecmp(ret->base, "none"))
		ret->base = NULL;
}
