/* fname.c - file name patterns (rules: fname.h, sbatch(1) "filename pattern") */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/fname.h"
#include "model/stepid.h"

enum { WIDTH_MAX = 10, NO_TASK = 0xfffffffe };

static void add_step(struct str *s, const struct fname_ctx *c, unsigned width)
{
	const char *word = stepid_word(c->has_step ? c->step_id : STEP_ID_BATCH);
	if (word)
		str_add(s, word);
	else
		str_addf(s, "%0*u", (int)width, c->step_id);
}

static void add_text(struct str *s, const char *text)
{
	if (text)
		str_add(s, text);
}

/* False: not a letter of ours. */
static bool add_letter(struct str *s, char letter, unsigned width, const struct fname_ctx *c)
{
	uint32_t task = c->has_task ? c->array_task_id : c->has_step ? 0 : NO_TASK;
	int w = (int)width;

	switch (letter) {
	case 'A': str_addf(s, "%0*u", w, c->array_job_id ? c->array_job_id : c->job_id); return true;
	case 'a': str_addf(s, "%0*u", w, task); return true;
	case 'b': str_addf(s, "%0*u", w, task % 10); return true;
	case 'j': str_addf(s, "%0*u", w, c->job_id); return true;
	case 'J':
		str_addf(s, "%0*u", w, c->job_id);
		if (c->has_step) {
			str_add_c(s, '.');
			add_step(s, c, 0);
		}
		return true;
	case 'r': str_addf(s, "%0*u", w, c->restarts); return true;
	case 'S': add_text(s, c->sluid); return true;
	case 'u': add_text(s, c->user); return true;
	case 'x': add_text(s, c->name); return true;
	case 'N':
		if (c->node)
			str_add_n(s, c->node, strcspn(c->node, "."));
		return true;
	case 'n': str_addf(s, "%0*u", w, c->node_index); return true;
	case 's': add_step(s, c, width); return true;
	case 't': str_addf(s, "%0*u", w, c->task); return true;
	default: return false;
	}
}

char *fname_expand(const char *pattern, const struct fname_ctx *c)
{
	struct str s = STR_INIT;
	bool literal = strchr(pattern, '\\') != NULL;

	for (const char *p = pattern; *p; p++) {
		const char *start = p;
		unsigned width = 0;
		if (*p == '\\')
			continue;
		if (*p != '%' || literal) {
			str_add_c(&s, *p);
			continue;
		}
		if (p[1] == '%') {
			str_add(&s, c->keep_node_task ? "%%" : "%");
			p++;
			continue;
		}
		for (p++; *p >= '0' && *p <= '9'; p++)
			width = width * 10 > 1000 ? 1000 : width * 10 + (unsigned)(*p - '0');
		if (*p == '\0')
			break;
		if (width > WIDTH_MAX)
			width = WIDTH_MAX;
		if (c->keep_node_task && strchr("Nnts", *p))
			str_add_n(&s, start, (size_t)(p - start) + 1);
		else if (!add_letter(&s, *p, width, c))
			str_add_n(&s, start, (size_t)(p - start) + 1);
	}
	return str_take(&s);
}

/* Does the pattern have one of these letters where it would be expanded? */
static bool has_letter(const char *pattern, const char *letters)
{
	if (strchr(pattern, '\\'))
		return false;
	for (const char *p = strchr(pattern, '%'); p; p = strchr(p + 1, '%')) {
		p++;
		while (*p >= '0' && *p <= '9')
			p++;
		if (*p == '\0')
			return false;
		if (strchr(letters, *p))
			return true;
	}
	return false;
}

bool fname_is_per_task(const char *pattern) { return has_letter(pattern, "t"); }
bool fname_is_per_node(const char *pattern) { return has_letter(pattern, "Nn"); }

const char *fname_default(bool is_array) { return is_array ? "slurm-%A_%a.out" : "slurm-%j.out"; }

char *fname_path(const char *pattern, const char *work_dir, const struct fname_ctx *c)
{
	char *name = pattern ? fname_expand(pattern, c) : NULL, *path;

	if (name && strcasecmp(pattern, "none") && strcasecmp(name, "none") == 0) { /* a file that happens to be called so */
		path = xasprintf("%s/%s", work_dir ? work_dir : "", name);
		free(name);
		return path;
	}
	path = fname_absolute(name, work_dir);
	free(name);
	return path;
}

char *fname_absolute(const char *name, const char *work_dir)
{
	if (!name || strcasecmp(name, "none") == 0)
		return xstrdup("/dev/null");
	if (*name == '/' || !work_dir)
		return xstrdup(name);
	return xasprintf("%s%s%s", work_dir, *work_dir && work_dir[strlen(work_dir) - 1] == '/' ? "" : "/", name);
}
