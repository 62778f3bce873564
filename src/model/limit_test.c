/* limit_test.c - names and values of limits */
#include <errno.h>
#include <stdlib.h>

#include "base/testing.h"
#include "model/limit.h"

static void drop(struct limit_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		pb__limit__free_unpacked(l->at[i], NULL);
	free(l->at);
}

static void text_is(const struct limit_list *l, enum limit_kind kind, const char *want)
{
	struct str s = STR_INIT;
	limit_print(l, kind, &s);
	assert_string_equal(s.data, want);
	str_fini(&s);
}

static void names(void **state)
{
	const char *tres;
	(void)state;
	assert_int_equal(limit_find("maxjobs", 7, true, &tres)->kind, LIMIT_MAX_JOBS);
	assert_int_equal(limit_find("MaxJobs", 7, false, &tres)->kind, LIMIT_MAX_JOBS);
	assert_int_equal(limit_find("GrpTRES", 7, true, &tres)->kind, LIMIT_GRP_TRES);
	assert_int_equal(limit_find("GrpTRESM", 8, true, &tres)->kind, LIMIT_GRP_TRES_MINS);
	assert_int_equal(limit_find("grpcpus", 7, false, &tres)->kind, LIMIT_GRP_TRES);
	assert_string_equal(tres, "cpu");
	assert_null(limit_find("MaxTRESPU", 9, false, &tres));
	assert_null(limit_find("Frob", 4, true, &tres));
}

static void values(void **state)
{
	struct limit_list l = { 0 };
	struct error err = { 0 };
	const char *tres;
	(void)state;
	const struct limit_row *grp = limit_find("GrpTRES", 7, true, &tres), *wall = limit_find("MaxWall", 7, true, &tres), *jobs = limit_find("MaxJobs", 7, true, &tres);
	assert_int_equal(limit_set(&l, grp, NULL, "gres/gpu=2,cpu=4,mem=10G", &err), 0);
	text_is(&l, LIMIT_GRP_TRES, "cpu=4,gres/gpu=2,mem=10G");
	assert_int_equal(limit_set(&l, grp, NULL, "cpu=-1,node=3", &err), 0);
	text_is(&l, LIMIT_GRP_TRES, "gres/gpu=2,mem=10G,node=3");
	assert_int_equal(limit_set(&l, grp, NULL, "cpu=8,frob=3", &err), -EINVAL); /* nothing of it is taken */
	text_is(&l, LIMIT_GRP_TRES, "gres/gpu=2,mem=10G,node=3");
	assert_int_equal(limit_set(&l, wall, NULL, "1-0", &err), 0);
	text_is(&l, LIMIT_MAX_WALL, "1-00:00:00");
	assert_int_equal(limit_set(&l, jobs, NULL, "10x", &err), -EINVAL);
	assert_string_equal(err.line, "Invalid value for MaxJobsPU (10x)");
	assert_int_equal(limit_set(&l, jobs, NULL, "10", &err), 0);
	text_is(&l, LIMIT_MAX_JOBS, "10");
	assert_int_equal(limit_set(&l, jobs, NULL, "-1", &err), 0);
	text_is(&l, LIMIT_MAX_JOBS, "");
	assert_int_equal(limit_set(&l, grp, NULL, "-1", &err), 0);
	text_is(&l, LIMIT_GRP_TRES, "");
	drop(&l);
}

static void flags(void **state)
{
	struct str s = STR_INIT;
	uint32_t f;
	(void)state;
	assert_int_equal(qos_flags_parse("denyonlimit,OverPart", &f, NULL), 0);
	qos_flags_print(f, &s);
	assert_string_equal(s.data, "DenyOnLimit,OverPartQOS");
	assert_int_equal(qos_flags_parse("frob", &f, NULL), -EINVAL);
	assert_int_equal(qos_flags_parse("Relative", &f, NULL), -ENOTSUP);
	str_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(names), cmocka_unit_test(values), cmocka_unit_test(flags) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
