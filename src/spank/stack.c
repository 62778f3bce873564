/* stack.c - loads and calls plugins (see stack.h) */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/full.h"
#include "base/log.h"
#include "base/str.h"
#include "spank/inside.h"

#define DEPTH_MAX 8
#define OPTIONS_MAX 512
#define NO_VALUE "(null)"       /* what scripts get of an option without a value, as from the reference */

const char *const spank_hook_name[SPANK_HOOKS] = { "slurm_spank_init", "slurm_spank_job_prolog", "slurm_spank_init_post_opt", "slurm_spank_local_user_init",
	"slurm_spank_user_init", "slurm_spank_task_init_privileged", "slurm_spank_task_init", "slurm_spank_task_post_fork", "slurm_spank_task_exit",
	"slurm_spank_job_epilog", "slurm_spank_slurmd_exit", "slurm_spank_exit" };

struct spank_job spank_job;
struct spank_inside spank_inside;

bool spank_stack_is_empty(void) { return !spank_inside.plugins; }
bool spank_stack_has(enum spank_hook hook)
{
	for (const struct spank_plugin *p = spank_inside.plugins; p; p = p->next)
		if (p->hook[hook])
			return true;
	return false;
}

bool spank_stack_blames_job(void) { return spank_inside.blames_job; }

/* --- plugstack.conf -------------------------------------------------------------------------------------- */

/* place: the file and line that ask for it. */
static void plugin_add(bool required, const char *path, const char *place, char **args, int n)
{
	struct spank_plugin *p = xcalloc(1, sizeof *p), **at = &spank_inside.plugins;
	unsigned int *version;
	full_needed();
	void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	const char *problem = lib ? NULL : dlerror();
	if (lib) {
		const char *type = dlsym(lib, "plugin_type");
		version = dlsym(lib, "plugin_version");
		p->name = dlsym(lib, "plugin_name");
		if (!type || !p->name || strcmp(type, "spank"))
			problem = "it is not a SPANK plugin";
		else if (!version || *version != SLURM_VERSION_NUMBER)
			problem = "Incompatible plugin version";
	}
	if (problem) {
		if (required) {
			log_error("spank: %s: %s", path, problem);
			log_error("spank: %s: Failed to load plugin %s. Aborting.", place, path);
			spank_inside.failed = true;
		} else {
			log_verbose("spank: %s: %s; it is optional and left out", path, problem);
		}
		free(p);
		return;
	}
	for (int i = 0; i < SPANK_HOOKS; i++)
		*(void **)&p->hook[i] = dlsym(lib, spank_hook_name[i]);
	const int *mode = dlsym(lib, "slurm_spank_init_failure_mode");
	p->blames_job = mode && *mode == ESPANK_JOB_FAILURE;
	p->table = dlsym(lib, "spank_options");
	p->required = required;
	p->file = xstrdup(strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	p->argc = n;
	p->argv = args;
	while (*at)
		at = &(*at)->next;
	*at = p;
	log_debug("spank: loaded %s from %s", p->name, path);
}

static void file_read(const char *path, const char *plugin_dir, int depth);

static void include(const char *pattern, const char *plugin_dir, int depth)
{
	glob_t g;
	if (depth >= DEPTH_MAX || glob(pattern, 0, NULL, &g))
		return;
	for (size_t i = 0; i < g.gl_pathc; i++)
		file_read(g.gl_pathv[i], plugin_dir, depth + 1);
	globfree(&g);
}

static void line_take(const char *path, int number, char *line, const char *plugin_dir, int depth)
{
	char *word[64], full[4096];
	int n = 0;
	line[strcspn(line, "#\n")] = 0;
	for (char *at = line; n < 63;) {
		at += strspn(at, " \t\r");
		if (!*at)
			break;
		word[n++] = at;
		at += strcspn(at, " \t\r");
		if (*at)
			*at++ = 0;
	}
	if (!n)
		return;
	bool required = !strcmp(word[0], "required"), include_line = !strcmp(word[0], "include"), known = required || include_line || !strcmp(word[0], "optional");
	if (!known)
		log_error("spank: Invalid option \"%s\". Must be required, optional or include", word[0]);
	if (!known || n < 2 || (include_line && n > 2)) {
		log_error("spank: %s:%d: Invalid line. Ignoring.", path, number);
		return;
	}
	if (include_line) {
		if (word[1][0] == '/')
			snprintf(full, sizeof full, "%s", word[1]);
		else
			snprintf(full, sizeof full, "%.*s/%s", strrchr(path, '/') ? (int)(strrchr(path, '/') - path) : 1, strrchr(path, '/') ? path : ".", word[1]);
		include(full, plugin_dir, depth);
		return;
	}
	if (word[1][0] == '/')
		snprintf(full, sizeof full, "%s", word[1]);
	else
		snprintf(full, sizeof full, "%s/%s", plugin_dir && *plugin_dir ? plugin_dir : "/usr/lib/slurm", word[1]);
	char **args = xcalloc((size_t)n, sizeof *args);
	for (int i = 2; i < n; i++)
		args[i - 2] = xstrdup(word[i]);
	char *place = xasprintf("%s:%d", path, number);
	plugin_add(required, full, place, args, n - 2);
	free(place);
}

static void file_read(const char *path, const char *plugin_dir, int depth)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	if (!f) {
		if (errno != ENOENT)
			log_error("spank: cannot read %s: %s", path, strerror(errno));
		return;
	}
	for (int number = 1; getline(&line, &size, f) >= 0; number++)
		line_take(path, number, line, plugin_dir, depth);
	free(line);
	fclose(f);
}

int spank_stack_load(const char *path, const char *plugin_dir, spank_context_t context)
{
	spank_inside.context = context;
	if (path && *path)
		file_read(path, plugin_dir, 0);
	for (struct spank_plugin *p = spank_inside.plugins; p; p = p->next)
		for (struct spank_option *o = p->table; o && o->name && context != S_CTX_ALLOCATOR; o++)
			(void)spank_inside_register(p, o);
	return spank_inside.failed ? -1 : 0;
}

/* --- calls ------------------------------------------------------------------------------------------------- */

int spank_stack_call(enum spank_hook hook)
{
	int failed = 0;
	for (struct spank_plugin *p = spank_inside.plugins; p; p = p->next) {
		struct spank_handle handle = { .plugin = p, .hook = hook };
		if (!p->hook[hook])
			continue;
		int rc = p->hook[hook](&handle, p->argc, p->argv);
		if (!rc)
			continue;
		if (p->required) {
			slurm_error("spank: required plugin %s: %s() failed with rc=%d", p->file, spank_hook_name[hook] + strlen("slurm_spank_"), rc);
			spank_inside.blames_job |= p->blames_job;
			failed = -1;
		} else {
			log_verbose("spank: optional plugin %s: %s() failed with rc=%d", p->file, spank_hook_name[hook] + strlen("slurm_spank_"), rc);
		}
		if (failed && hook != SPANK_EXIT && hook != SPANK_SLURMD_EXIT)
			break;
	}
	return failed;
}

/* --- options ------------------------------------------------------------------------------------------------- */

spank_err_t spank_inside_register(struct spank_plugin *p, struct spank_option *o)
{
	if (!o->name || !o->usage || spank_inside.options == OPTIONS_MAX)
		return ESPANK_BAD_ARG;
	if (strlen(o->name) > SPANK_OPTION_MAXLEN) {
		log_error("spank: option \"%s\" provided by %s too long. Ignoring.", o->name, p->name);
		return ESPANK_NOSPACE;
	}
	for (size_t i = 0; i < spank_inside.options; i++)
		if (!strcmp(spank_inside.option[i].opt.name, o->name)) {
			log_info("spank: option \"%s\" provided by both %s and %s", o->name, spank_inside.option[i].plugin->file, p->file);
			return ESPANK_SUCCESS;              /* the first one's */
		}
	spank_inside.option = xgrow(spank_inside.option, &spank_inside.options_cap, spank_inside.options + 1, sizeof *spank_inside.option);
	struct spank_known *k = &spank_inside.option[spank_inside.options++];
	*k = (struct spank_known){ .opt = *o, .plugin = p };
	k->opt.name = xstrdup(o->name);
	k->opt.usage = xstrdup(o->usage);
	k->opt.arginfo = o->arginfo ? xstrdup(o->arginfo) : NULL;
	return ESPANK_SUCCESS;
}

size_t spank_stack_options(struct spank_stack_option *ret, size_t max)
{
	size_t n = 0;
	for (; n < spank_inside.options && n < max; n++)
		ret[n] = (struct spank_stack_option){ &spank_inside.option[n].opt, spank_inside.option[n].plugin->name };
	return n;
}

int spank_stack_option_set(size_t at, const char *value, int remote)
{
	struct spank_known *k = &spank_inside.option[at];
	k->given = true;
	xstr_set(&k->value, value);
	return k->opt.cb ? k->opt.cb(k->opt.val, k->value, remote) : 0;
}

/* The variable's name: what cannot be in one becomes '_'. */
static char *option_env(const struct spank_known *k)
{
	char *name = xasprintf(SPANK_OPTION_ENV "%s_%s", k->plugin->name, k->opt.name);
	for (char *at = name; *at; at++)
		if (!isalnum((unsigned char)*at))
			*at = '_';
	return name;
}

size_t spank_stack_options_out(char ***ret, bool for_scripts)
{
	size_t n = 0;
	*ret = xcalloc(spank_inside.options + 1, sizeof **ret);
	for (size_t i = 0; i < spank_inside.options; i++) {
		const struct spank_known *k = &spank_inside.option[i];
		if (!k->given)
			continue;
		char *name = option_env(k);
		(*ret)[n++] = xasprintf("%s%s=%s", for_scripts ? SPANK_CONTROL_ENV : "", name, k->value ? k->value : for_scripts ? NO_VALUE : "");
		free(name);
	}
	return n;
}

/* The value that list has for this option, in its own form or in that of the scripts; NULL: it was not given. */
static const char *option_value(char *const *list, size_t n, const char *name)
{
	static const char *const before[] = { "", "SLURM_" SPANK_CONTROL_ENV, SPANK_CONTROL_ENV };
	size_t len = strlen(name);
	for (size_t b = 0; b < sizeof before / sizeof *before; b++)
		for (size_t j = 0; j < n; j++) {
			const char *at = str_starts(list[j], before[b]) ? list[j] + strlen(before[b]) : "";
			if (!strncmp(at, name, len) && at[len] == '=')
				return at + len + 1;
		}
	return NULL;
}

int spank_stack_options_in(char *const *list, size_t n)
{
	int failed = 0;
	for (size_t i = 0; i < spank_inside.options; i++) {
		struct spank_known *k = &spank_inside.option[i];
		char *name = option_env(k);
		const char *value = option_value(list, n, name);
		free(name);
		if (!value)
			continue;
		bool none = !k->opt.has_arg || (k->opt.has_arg != 1 && (!*value || !strcmp(value, NO_VALUE)));
		int rc = spank_stack_option_set(i, none ? NULL : value, spank_inside.context == S_CTX_REMOTE);
		if (rc)
			log_error("spank: plugin %s: option --%s: its value is refused", k->plugin->name, k->opt.name);
		failed |= rc && k->plugin->required;
	}
	return failed ? -1 : 0;
}
