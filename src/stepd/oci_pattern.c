/* oci_pattern.c - the %-characters of oci.conf (see oci.h) */
#include <stddef.h>

#include "base/str.h"
#include "stepd/oci.h"

/* Each word in single quotes, for the shell. */
static void args_add(struct str *out, char **args)
{
	for (size_t i = 0; args && args[i]; i++) {
		str_add(out, i ? " '" : "'");
		for (const char *c = args[i]; *c; c++)
			if (*c == '\'')
				str_add(out, "'\\''");
			else
				str_add_c(out, *c);
		str_add_c(out, '\'');
	}
}

char *oci_pattern(const char *pattern, const struct oci_names *n)
{
	struct str out = STR_INIT;
	const struct { char letter; const char *text; } rows[] = {
		{ 'b', n->bundle }, { 'e', n->env_file }, { 'j', n->job }, { 'm', n->spool }, { 'n', n->node }, { 'p', n->pid }, { 'r', n->rootfs }, { 's', n->step },
		{ 't', n->task }, { 'u', n->user }, { 'U', n->uid }, { 'Z', n->work_dir }, { '%', "%" },
	};
	for (const char *c = pattern; *c; c++) {
		size_t i = 0;
		if (*c != '%' || !c[1]) {
			str_add_c(&out, *c);
			continue;
		}
		c++;
		if (*c == '@')
			args_add(&out, n->args);
		while (i < sizeof rows / sizeof *rows && rows[i].letter != *c)
			i++;
		if (i < sizeof rows / sizeof *rows)
			str_add(&out, rows[i].text ? rows[i].text : "");
	}
	return str_take(&out);
}
