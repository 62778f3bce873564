/* testing.h - a folder and a state file of its own for each test of a store on disk; included once, after cmocka.h */
#pragma once
#include <stdio.h>
#include <stdlib.h>

#include "store/store.h"

static char dir[64], file[96];

static int make_dir(void **state)
{
	snprintf(dir, sizeof dir, "/tmp/store_test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof file, "%s/state.db", dir);
	return 0;
}

static struct store *open_it(const char *path)
{
	struct store *s = NULL;
	struct error err;
	if (store_open_sqlite(path, false, &s, &err))
		fail_msg("%s", err.line);
	return s;
}
