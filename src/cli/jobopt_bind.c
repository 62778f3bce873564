/* jobopt_bind.c - parsers of --distribution, --cpu-bind, --mem-bind and --gpu-bind
 *
 * The values travel as text and are acted upon where tasks are placed or started; here they are only checked, so that a mistake is
 * told before anything is asked of the controller. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/jobopt.h"
#include "cli/jobopt_row.h"

/* Text begins with this word, to the end or up to ':' or '='. */
static bool word_is(const char *text, const char *word)
{
	size_t len = strlen(word);
	return !strncasecmp(text, word, len) && (!text[len] || text[len] == ':' || text[len] == '=');
}

/* First character of a list of numbers that does not belong there, or 0. Elements may have "*count". */
static char list_offender(const char *list, bool hex)
{
	for (const char *at = list; *at; at++) {
		if (*at == ',' || (*at == '*' && at > list))
			continue;
		if (hex ? !isxdigit((unsigned char)*at) && !(*at == 'x' && at > list && at[-1] == '0') : !isdigit((unsigned char)*at))
			return *at;
	}
	return 0;
}

/* --- CPUs and memory --------------------------------------------------------------------------------- */

struct bind_word { const char *name; bool list, hex; };
static const struct bind_word cpu_words[] = { { "none", 0, 0 }, { "no", 0, 0 }, { "map_cpu", 1, 0 }, { "mapcpu", 1, 0 }, { "mask_cpu", 1, 1 },
	{ "maskcpu", 1, 1 }, { "rank_ldom", 0, 0 }, { "map_ldom", 1, 0 }, { "mask_ldom", 1, 1 }, { "sockets", 0, 0 }, { "socket", 0, 0 },
	{ "cores", 0, 0 }, { "core", 0, 0 }, { "threads", 0, 0 }, { "thread", 0, 0 }, { "ldoms", 0, 0 }, { "ldom", 0, 0 }, { "rank", 0, 0 },
	{ "one_thread", 0, 0 }, { "quiet", 0, 0 }, { "q", 0, 0 }, { "verbose", 0, 0 }, { "v", 0, 0 }, { NULL, 0, 0 } };
static const struct bind_word mem_words[] = { { "none", 0, 0 }, { "no", 0, 0 }, { "rank", 0, 0 }, { "local", 0, 0 }, { "map_mem", 1, 0 },
	{ "mask_mem", 1, 1 }, { "quiet", 0, 0 }, { "q", 0, 0 }, { "verbose", 0, 0 }, { "v", 0, 0 }, { "prefer", 0, 0 }, { "p", 0, 0 }, { NULL, 0, 0 } };

/* `part` is at a word; *ret_end is where the next one begins (a list keeps its commas). */
static int bind_word_check(struct jobopt *o, const char *option, const struct bind_word *words, const char *part, const char **ret_end, struct error *err)
{
	size_t len = strcspn(part, ",:=");
	const struct bind_word *w = words;
	while (w->name && (strlen(w->name) != len || strncasecmp(w->name, part, len)))
		w++;
	if (!w->name || (w->list ? 0 : part[len] == ':' || part[len] == '='))
		return jobopt_refuse(o, 255, err, "unrecognized --%s argument \"%.*s\"", option, (int)strcspn(part, ","), part);
	if (!w->list) {
		*ret_end = part + len + (part[len] == ',');
		return 0;
	}
	const char *list = part[len] ? part + len + 1 : "";
	if (!*list || part[len] == ',')
		return jobopt_refuse(o, 255, err, "missing list for \"--%s=%s:<list>\"", option, w->name);
	char offender = list_offender(list, w->hex);
	if (offender) {
		size_t from = (size_t)(strchr(list, offender) - list);
		while (from && list[from - 1] != ',')
			from--;
		return jobopt_refuse(o, 255, err, "Failed to validate number: %.*s, the offending character is %c", (int)strcspn(list + from, ","), list + from, offender);
	}
	*ret_end = list + strlen(list);
	return 0;
}

static int bind_check(struct jobopt *o, const char *option, const struct bind_word *words, const char *value, struct error *err)
{
	const char *at = value;
	do {
		int rc = bind_word_check(o, option, words, at, &at, err);
		if (rc < 0)
			return rc;
	} while (*at);
	return 0;
}

JOBOPT_PARSER(cpu_bind)
{
	if (str_eq_nocase(value, "help")) {
		o->show = JOBOPT_SHOW_CPU_BIND;
		return 0;
	}
	struct error inner = { 0 };
	if (bind_check(o, "cpu-bind", cpu_words, value, &inner) < 0) {
		free(o->before);
		o->before = xasprintf("%s: error: %s", jobopt_cmd_name(o->cmd), inner.line);
		o->fatal = true;
		return jobopt_refuse(o, 1, err, "Failed to parse --cpu-bind= values.");
	}
	jobopt_put_str(o, &row->target, value);
	return 0;
}

JOBOPT_PARSER(mem_bind)
{
	if (str_eq_nocase(value, "help")) {
		o->show = JOBOPT_SHOW_MEM_BIND;
		return 0;
	}
	int rc = bind_check(o, "mem-bind", mem_words, value, err);
	if (rc < 0)
		return rc;
	jobopt_put_str(o, &row->target, value);
	return 0;
}

/* --- GPUs ----------------------------------------------------------------------------------------------- */

/* "[verbose,]type[:values]" */
static bool gpu_bind_valid(struct jobopt *o, const char *value)
{
	static const struct { const char *name; bool number, list, hex; } words[] = { { "closest", 0, 0, 0 }, { "none", 0, 0, 0 },
		{ "single", 1, 0, 0 }, { "per_task", 1, 0, 0 }, { "map_gpu", 0, 1, 0 }, { "map", 0, 1, 0 }, { "mask_gpu", 0, 1, 1 }, { "mask", 0, 1, 1 } };
	const char *at = value;
	if (!strncasecmp(at, "verbose,", 8))
		at += 8;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!word_is(at, words[i].name))
			continue;
		const char *tail = at + strlen(words[i].name);
		bool takes = words[i].number || words[i].list;
		if (takes != (*tail == ':') || (takes && !tail[1]))
			break;
		char offender = takes ? list_offender(tail + 1, words[i].hex) : 0;
		if (offender) {
			free(o->before);
			o->before = xasprintf("%s: error: Failed to validate %s, offending character is %c", jobopt_cmd_name(o->cmd), tail + 1, offender);
		}
		return !offender;
	}
	return false;
}

JOBOPT_PARSER(gpu_bind)
{
	if (!gpu_bind_valid(o, value))
		return jobopt_refuse(o, 255, err, "Invalid --gpu-bind argument: %s", value);
	char *text = xasprintf("gres/gpu:%s", value);
	jobopt_put_str(o, &row->target, text);
	xfree(text);
	return 0;
}

/* The same, with the resource named in front of it. */
JOBOPT_PARSER(tres_bind)
{
	if (!*value)
		return 0;
	if (!str_starts(value, "gres/gpu:") || !gpu_bind_valid(o, value + strlen("gres/gpu:")))
		return jobopt_refuse(o, 1, err, "Invalid --tres-bind argument: %s; it looks like gres/gpu:single:2", value);
	jobopt_put_str(o, &row->target, value);
	return 0;
}

/* --- distribution ----------------------------------------------------------------------------------------- */

static bool level_known(const char *text, size_t len, size_t level)
{
	static const char *const words[3][5] = { { "*", "block", "cyclic", "arbitrary", NULL }, { "*", "block", "cyclic", "fcyclic", NULL },
		{ "*", "block", "cyclic", "fcyclic", NULL } };
	for (size_t i = 0; words[level][i]; i++)
		if (strlen(words[level][i]) == len && !strncasecmp(words[level][i], text, len))
			return true;
	return false;
}

/* "plane[=N]": N, or of SLURM_DIST_PLANESIZE; 0: neither. */
static unsigned long plane_parse(const char *text)
{
	char *end = NULL;
	const char *size = text[5] == '=' ? text + 6 : getenv("SLURM_DIST_PLANESIZE");
	unsigned long n = size && isdigit((unsigned char)*size) ? strtoul(size, &end, 10) : 0;
	return n > UINT16_MAX || (n && *end) ? 0 : n;
}

/* "{*|block|cyclic|arbitrary|plane=<size>}[:{*|block|cyclic|fcyclic}[:...]][,{Pack|NoPack}]" */
JOBOPT_PARSER(distribution)
{
	size_t level = 0;
	unsigned long plane = 0;
	bool bad = false;
	if (!strncasecmp(value, "plane", 5)) {
		plane = plane_parse(value);
		if (!plane) {
			free(o->before);
			o->before = xasprintf("%s: error: Invalid plane size or size not specified", jobopt_cmd_name(o->cmd));
			return jobopt_refuse_spec(o, row, err);
		}
	}
	for (const char *at = plane ? "" : value; *at && !bad; level++) {
		size_t len = strcspn(at, ":,");
		bool packing = (at == value || at[-1] == ',') && (!strcasecmp(at, "pack") || !strcasecmp(at, "nopack"));
		bad = !packing && (level > 2 || (level > 0 && at[-1] == ',') || !level_known(at, len, level));
		at += len;
		bad = bad || (*at && !*++at);
	}
	if (bad || (!plane && !level) || !strncasecmp(value, "arbitrary:", strlen("arbitrary:")))
		return jobopt_refuse_spec(o, row, err);
	o->desc->has_plane_size = plane != 0;
	o->desc->plane_size = (uint32_t)plane;
	char *text = xstrdup(value);
	for (char *c = text; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	jobopt_put_str(o, &row->target, text);
	free(text);
	return 0;
}
