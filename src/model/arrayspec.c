/* arrayspec.c - the argument of --array
 * The list is an idset; '%' and a limit may follow; one pair of brackets round all is allowed, as squeue prints them. Empty pieces between commas
 * are passed over, as the reference does; unlike it, what stands behind '%' must be a number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/arrayspec.h"
#include "model/idset.h"

static int bad(struct error *err, const char *text, const char *what)
{
	int rc = error_set(err, ESLURM_INVALID_ARRAY, "array \"%.200s\": %s", text, what);
	error_hint(err, "Forms: 0-9, 1,3,5, 1-100:4, each with %%N for at most N running tasks.");
	return rc;
}

/* Copy of text without brackets, blanks at the front and empty pieces; the part behind '%' is returned in *ret_limit (or NULL). */
static char *list_clean(const char *text, const char **ret_limit)
{
	struct str s = STR_INIT;
	const char *percent = strchr(text, '%');
	const char *end = percent ? percent : text + strlen(text);

	while (*text == ' ')
		text++;
	if (*text == '[')
		text++;
	if (end > text && end[-1] == ']')
		end--;
	for (const char *p = text; p < end; p++)
		if (*p != ',' || (s.len > 0 && s.data[s.len - 1] != ','))
			str_add_c(&s, *p);
	while (s.len > 0 && s.data[s.len - 1] == ',')
		s.data[--s.len] = '\0';
	*ret_limit = percent ? percent + 1 : NULL;
	return str_take(&s);
}

int arrayspec_parse(const char *text, uint32_t max_array_size, struct arrayspec *ret, struct error *err)
{
	const char *limit;
	char *list = list_clean(text, &limit), *limit_copy = NULL;
	struct error why = { 0 };
	struct bitset *tasks = NULL;
	unsigned long long running = 0;
	int rc = 0;

	if (*list == '\0') {
		free(list);
		return bad(err, text, "no task index");
	}
	if (limit) {
		limit_copy = xstrdup(limit);
		limit_copy[strcspn(limit_copy, "]")] = '\0';
		if (*limit_copy && str_to_u64(limit_copy, 0, UINT32_MAX - 1, &running) < 0)
			rc = bad(err, text, "the limit behind '%' is not a number");
		free(limit_copy);
	}
	if (rc == 0 && (rc = idset_parse(list, max_array_size, &tasks, &why)) < 0) {
		if (rc == -ERANGE)
			rc = error_set(err, ESLURM_INVALID_ARRAY, "array \"%.200s\": indexes must be below %u (MaxArraySize)", text, max_array_size);
		else
			rc = error_set(err, ESLURM_INVALID_ARRAY, "%.400s", why.line);
	}
	free(list);
	if (rc < 0)
		return rc;
	ret->tasks = tasks;
	ret->max_running = (uint32_t)running;
	return 0;
}

char *arrayspec_format(const struct bitset *tasks, uint32_t max_running, uint32_t max_chars)
{
	char *list = idset_format_array(tasks, max_chars), *out;

	if (max_running == 0)
		return list;
	out = xasprintf("%s%%%u", list, max_running);
	free(list);
	return out;
}

void arrayspec_fini(struct arrayspec *s)
{
	bitset_destroy(s->tasks);
	*s = (struct arrayspec){ 0 };
}
