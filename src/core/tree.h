/* tree.h - an ordered set of elements that carry their own links (a treap)
 * The shape depends only on the elements' `salt` (a hash of their id), never on addresses, so runs can be replayed. Elements
 * are compared by the function given at each call; an element's order must not change while it is in a tree. O(log n). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tree_node { struct tree_node *left, *right, *up; uint32_t salt; bool in; };
struct tree { struct tree_node *root; uint32_t count; };
typedef int (*tree_cmp_fn)(const struct tree_node *a, const struct tree_node *b);

void tree_insert(struct tree *t, struct tree_node *n, uint32_t seed, tree_cmp_fn cmp);
void tree_remove(struct tree *t, struct tree_node *n);
struct tree_node *tree_first(const struct tree *t);
struct tree_node *tree_next(const struct tree_node *n);
