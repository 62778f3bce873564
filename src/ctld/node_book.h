/* node_book.h - whether a node answers: the small automaton behind the pings
 *
 * unknown -> answers | silent; answers -> (one miss) asked again at once -> silent; silent -> answers. Only changes are told to the core. What
 * a node says of itself when it comes back is handed on as a registration, so that a restarted controller knows its steps again. */
#pragma once
#include "ctld/ctld.h"
#include "proto/agent.pb-c.h"

enum book_contact { BOOK_UNKNOWN, BOOK_ANSWERS, BOOK_SILENT };
struct book_node { struct ctld *d; enum book_contact contact; unsigned misses; bool asking; };
enum book_do { BOOK_NOTHING, BOOK_ASK_AGAIN, BOOK_LOST, BOOK_BACK };

/* Does the node believe our key, so that it can be given work? */
bool book_knows_key(struct ctld *d, const Pb__NodeStatusRsp *status);
/* False while a question is out. True: it is out now. */
bool book_may_ask(struct book_node *b);
enum book_do book_answer(struct book_node *b, int code);
void book_heard(struct book_node *b);
/* loud: say so in the log (not for a node that has never answered since the start). */
void book_contact(struct ctld *d, const char *node, bool responding, bool loud);
void book_returned(struct ctld *d, const char *node, const Pb__NodeStatusRsp *status);
