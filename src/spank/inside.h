/* inside.h - what stack.c and api.c share */
#pragma once
#include "spank/stack.h"

struct spank_plugin {
	struct spank_plugin *next;
	const char *name, *file;   /* its own name; that of the shared object, which messages say */
	bool required, blames_job;
	int argc;
	char **argv;
	spank_f *hook[SPANK_HOOKS];
	struct spank_option *table;
};
struct spank_known { struct spank_option opt; struct spank_plugin *plugin; bool given; char *value; };
struct spank_handle { struct spank_plugin *plugin; enum spank_hook hook; };
extern struct spank_inside {
	struct spank_plugin *plugins;
	spank_context_t context;
	struct spank_known *option;
	size_t options, options_cap;
	bool failed, blames_job;
} spank_inside;
extern const char *const spank_hook_name[SPANK_HOOKS];
spank_err_t spank_inside_register(struct spank_plugin *p, struct spank_option *o);
