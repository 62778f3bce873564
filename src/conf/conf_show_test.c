/* conf_show_test.c CONF SHOW - proves that the rows made from CONF are those the reference printed (recorded in SHOW, test/compat/config) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/conf.h"

static char *file_read(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "r");
	char *data = xcalloc(1, 1 << 20);
	if (!f)
		exit(2);
	*ret_len = fread(data, 1, (1 << 20) - 1, f);
	fclose(f);
	return data;
}

static void rows_print(const struct conf *c, struct str *out)
{
	const struct conf_show_live live = { .boot_time = 1796011200, .next_job_id = 100 };
	struct conf_show_row *row;
	bool cgroup = false;
	size_t n = conf_show_rows(c, &live, &row);
	for (size_t i = 0; i < n; i++) {
		if (row[i].cgroup && !cgroup)
			str_add(out, "\nCgroup Support Configuration:\n");
		cgroup = row[i].cgroup;
		str_addf(out, "%-23s = %s\n", row[i].key, !strcmp(row[i].key, "SLURM_VERSION") ? "VERSION" : row[i].value);
	}
	conf_show_free(row, n);
}

int main(int argc, char **argv)
{
	struct conf *c;
	struct error err;
	struct str got = STR_INIT;
	size_t len;
	int bad = 0;
	if (argc != 3)
		return 2;
	setenv("TZ", "UTC", 1);
	char *conf = file_read(argv[1], &len);
	if (conf_load_text(&(struct conf_text){ "slurm.conf", conf, len }, 1, &c, &err)) {
		printf("%s\n", err.line);
		return 1;
	}
	rows_print(c, &got);
	char *want = file_read(argv[2], &len), *w = want, *g = got.data;
	for (char *a = NULL, *b = NULL; (a = str_next(&w, "\n")) && (b = str_next(&g, "\n"));)
		if (strcmp(a, b)) {
			printf("- %s\n+ %s\n", a, b);
			bad = 1;
		}
	if (w || g)
		printf("the number of rows differs\n");
	bad |= w || g;
	free(conf);
	free(want);
	str_fini(&got);
	conf_destroy(c);
	return bad;
}
