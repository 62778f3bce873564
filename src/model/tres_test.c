/* tres_test.c - memory, GRES requests and TRES sums */
#include <stdlib.h>
#include "base/testing.h"
#include "model/tres.h"

static void memory(void **state)
{
	static const struct { const char *text; uint64_t mb; } rows[] = {
		{ "8G", 8192 }, { "512M", 512 }, { "4000", 4000 }, { "1T", 1048576 }, { "100K", 1 }, { "1500K", 2 }, { "0", 0 }, { "8g", 8192 }, { "8GB", 8192 }, { "4096KB", 4 },
	};
	static const char *const wrong[] = { "17592186044416T", "999999999999999G", "1.5G", "8Gi", "x", "-1", "", "8GG", "1P", "G", "99999999999999999999G" };
	uint64_t v = 0;
	char buf[32];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(mem_parse(rows[i].text, &v, NULL), 0);
		assert_int_equal(v, rows[i].mb);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_true(mem_parse(wrong[i], &v, NULL) < 0);
	mem_format(1024, buf, sizeof(buf));
	assert_string_equal(buf, "1G");
	mem_format(1500, buf, sizeof(buf));
	assert_string_equal(buf, "1500M");
	mem_format(1536, buf, sizeof(buf));
	assert_string_equal(buf, "1.50G");
	mem_format(1280, buf, sizeof(buf));
	assert_string_equal(buf, "1280M");
	mem_format(1572864, buf, sizeof(buf));
	assert_string_equal(buf, "1.50T");
	assert_int_equal(mem_parse_printed(buf, &v), 0);
	assert_int_equal(v, 1572864);
	mem_format(16000, buf, sizeof(buf));
	assert_string_equal(buf, "16000M");
	mem_format(0, buf, sizeof(buf));
	assert_string_equal(buf, "0");
	mem_format(1048576, buf, sizeof(buf));
	assert_string_equal(buf, "1T");
}

static void requests(void **state)
{
	static const struct { const char *text, *out; } rows[] = {
		{ "gpu", "gres/gpu:1" }, { "gpu:2", "gres/gpu:2" }, { "gpu:h100:2", "gres/gpu:h100:2" }, { "gres/gpu:2", "gres/gpu:2" }, { "gres/gpu=2", "gres/gpu:2" },
		{ "gpu:h100", "gres/gpu:h100:1" }, { "gpu:h100=2", "gres/gpu:h100:2" }, { "gpu:0", "gres/gpu:0" }, { "none", "" }, { "gpu:2K", "gres/gpu:2048" },
		{ "gpu:1,x:3", "gres/gpu:1,gres/x:3" }, { "gpu:3g.40gb:1", "gres/gpu:3g.40gb:1" }, { "gpu:3g.40gb", "gres/gpu:3g.40gb:1" },
	};
	static const char *const wrong[] = { "", "gpu:", ":2", "gpu::2", "gpu:h100:x", "gpu:2,", ",gpu", "gpu:h100:1:2", "gpu:-1:x", "gpu=", "gpu=x", "g pu" };
	struct gres_req r[GRES_REQ_MAX];
	size_t n;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(gres_parse(rows[i].text, r, GRES_REQ_MAX, &n, NULL), 0);
		char *s = gres_format(r, n, ':');
		assert_string_equal(s, rows[i].out);
		free(s);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct error err = { 0 };
		if (gres_parse(wrong[i], r, GRES_REQ_MAX, &n, &err) != -ESLURM_INVALID_GRES)
			fail_msg("\"%s\" was accepted", wrong[i]);
		assert_int_equal(n, 0);
	}
}

static void sums(void **state)
{
	struct tres_sum t = { .cpu = 4, .mem_mb = 8192, .node = 1, .billing = 4 };
	tres_add_gres(&t, "gpu", "h100", 1);
	tres_add_gres(&t, "x", NULL, 5);
	tres_add_gres(&t, "gpu", "a100", 2);
	tres_add_gres(&t, "gpu", "h100", 1);
	char *plain = tres_format(&t, false), *typed = tres_format(&t, true);
	assert_string_equal(plain, "cpu=4,mem=8G,node=1,billing=4,gres/gpu=4,gres/x=5");
	assert_string_equal(typed, "cpu=4,mem=8G,node=1,billing=4,gres/gpu=4,gres/gpu:h100=2,gres/gpu:a100=2,gres/x=5");
	assert_int_equal(tres_get(typed, "mem"), 8192);
	assert_int_equal(tres_get(typed, "gres/gpu"), 4);
	assert_int_equal(tres_get(typed, "gres/gpu:a100"), 2);
	assert_int_equal(tres_get(typed, "gres"), 0);
	assert_int_equal(tres_get(NULL, "cpu"), 0);
	free(plain);
	free(typed);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(memory), cmocka_unit_test(requests), cmocka_unit_test(sums) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
