/* node_book_test.c - proves the automaton of node_book.h: one miss is asked again at once, two are silence, and each change is told once */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ctld/cred.h"
#include "ctld/node_book.h"
#include "ctld/turn.h"

void turn_step(struct ctld *d, struct core_event *ev) { fail(); }
size_t cred_keys(const struct cred *c, Pb__CredKey *const **ret) { return 0; }

static void test_contact(void **state)
{
	struct book_node b = { 0 };
	assert_true(book_may_ask(&b));
	assert_false(book_may_ask(&b));
	assert_int_equal(book_answer(&b, 0), BOOK_BACK);
	assert_int_equal(book_answer(&b, 0), BOOK_NOTHING);
	assert_int_equal(book_answer(&b, -ESLURM_COMM), BOOK_ASK_AGAIN);
	assert_int_equal(book_answer(&b, 0), BOOK_NOTHING);
	assert_int_equal(book_answer(&b, -ESLURM_COMM), BOOK_ASK_AGAIN);
	assert_int_equal(book_answer(&b, -ESLURM_COMM), BOOK_LOST);
	assert_int_equal(book_answer(&b, -ESLURM_COMM), BOOK_NOTHING);
	assert_int_equal(book_answer(&b, 0), BOOK_BACK);
	book_answer(&b, -ESLURM_COMM);
	book_heard(&b);
	assert_int_equal(book_answer(&b, -ESLURM_COMM), BOOK_ASK_AGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_contact) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
