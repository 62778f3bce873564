/* remove_test.c - proves that remove_tree takes away all of a tree, also a very deep one, follows no links, and touches nothing outside while another process
 * exchanges its folders with links to the outside as fast as it can. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "noded/remove.h"

static char dir[64];

static int make_dir(void **state)
{
	snprintf(dir, sizeof dir, "/tmp/remove_test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	return chdir(dir);
}

static int remove_dir(void **state)
{
	char cmd[128];
	snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
	return chdir("/") || system(cmd);
}

static void test_whole(void **state)
{
	assert_int_equal(system("mkdir -p t/a/b/c t/d outside && touch t/x t/a/y t/a/b/c/z outside/kept && ln -s ../outside t/link && ln -s ../outside/kept t/a/file "
				"&& mkfifo t/d/fifo && chmod 0 t/d"), 0);
	remove_tree("t");
	assert_int_not_equal(access("t", F_OK), 0);
	assert_int_equal(access("outside/kept", F_OK), 0);
	assert_int_equal(symlink("outside", "top"), 0);
	remove_tree("top");                                  /* a link in the folder's own place */
	assert_int_equal(access("outside/kept", F_OK), 0);
	remove_tree("absent");
}

/* Deeper than a process may have descriptors, and than a path may be long. */
static void test_deep(void **state)
{
	assert_int_equal(mkdir("t", 0700), 0);
	assert_int_equal(chdir("t"), 0);
	for (int i = 0; i < 5000; i++) {
		int fd = open("f", O_CREAT | O_WRONLY, 0600);
		assert_true(fd >= 0);
		close(fd);
		assert_int_equal(mkdir("deeper", 0700), 0);
		assert_int_equal(chdir("deeper"), 0);
	}
	assert_int_equal(chdir(dir), 0);
	remove_tree("t");
	assert_int_not_equal(access("t", F_OK), 0);
}

static atomic_bool over;

/* t/swap is now a folder, now a link to the outside, which has the same names in it. */
static void *exchange(void *arg)
{
	while (!over) {
		(void)renameat2(AT_FDCWD, "t/swap", AT_FDCWD, "other", RENAME_EXCHANGE);
		(void)!access("t", F_OK);
	}
	return arg;
}

static void test_exchanged(void **state)
{
	pthread_t thread;
	for (int i = 0; i < 60; i++) {
		assert_int_equal(system("rm -rf t other && mkdir -p t/swap/sub outside/sub && touch t/swap/1 t/swap/2 t/swap/sub/3 outside/1 outside/2 outside/sub/3"), 0);
		char link[128];
		snprintf(link, sizeof link, "%s/outside", dir);
		assert_int_equal(symlink(link, "other"), 0);
		over = false;
		pthread_create(&thread, NULL, exchange, NULL);
		remove_tree("t");
		over = true;
		pthread_join(thread, NULL);
		assert_int_equal(access("outside/1", F_OK) | access("outside/2", F_OK) | access("outside/sub/3", F_OK), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whole, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_deep, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_exchanged, make_dir, remove_dir),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
