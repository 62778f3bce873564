/* plugins.c - SPANK in slurmd (see plugins.h) */
#include <errno.h>

#include "model/envlist.h"
#include "noded/place.h"
#include "noded/plugins.h"
#include "spank/stack.h"

static bool loaded;

int plugins_start(struct noded *n, struct error *err)
{
	char path[4096];
	if (loaded || !conf_plugstack(n->conf, path, sizeof path))
		return 0;
	loaded = true;
	if (spank_stack_load(path, conf_str(n->conf, CONF_PluginDir), S_CTX_SLURMD) < 0)
		return error_set(err, EIO, "a required SPANK plugin of %s cannot be loaded", path);
	if (spank_stack_call(SPANK_INIT) < 0)
		return error_set(err, EIO, "a required SPANK plugin of %s failed in slurmd", path);
	return 0;
}

void plugins_stop(void)
{
	if (loaded)
		(void)spank_stack_call(SPANK_SLURMD_EXIT);
}

bool plugins_have(enum conf_key key)
{
	if (key != CONF_Prolog && key != CONF_Epilog)
		return false;
	return spank_stack_has(key == CONF_Prolog ? SPANK_JOB_PROLOG : SPANK_JOB_EPILOG);
}

void plugins_script_env(const struct noded *n, enum conf_key key, struct envlist *e)
{
	char path[4096];
	if (!conf_plugstack(n->conf, path, sizeof path))
		return;
	envlist_set(e, "BERTH_SPANK_SCRIPT", key == CONF_Prolog ? "prolog" : "epilog");
	envlist_set(e, "BERTH_SPANK_STACK", path);
	if (conf_str(n->conf, CONF_PluginDir))
		envlist_set(e, "BERTH_SPANK_DIR", conf_str(n->conf, CONF_PluginDir));
}
