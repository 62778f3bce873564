/* tree.c - treap with parent links (see tree.h) */
#include <assert.h>

#include "core/tree.h"

static uint32_t mix(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	return x ^ x >> 16;
}

static void replace_child(struct tree *t, struct tree_node *parent, const struct tree_node *old, struct tree_node *with)
{
	if (!parent)
		t->root = with;
	else if (parent->left == old)
		parent->left = with;
	else
		parent->right = with;
	if (with)
		with->up = parent;
}

static void rotate_up(struct tree *t, struct tree_node *n)
{
	struct tree_node *p = n->up;
	replace_child(t, p->up, p, n);
	if (p->left == n) {
		p->left = n->right;
		if (n->right)
			n->right->up = p;
		n->right = p;
	} else {
		p->right = n->left;
		if (n->left)
			n->left->up = p;
		n->left = p;
	}
	p->up = n;
}

void tree_insert(struct tree *t, struct tree_node *n, uint32_t seed, tree_cmp_fn cmp)
{
	struct tree_node *p = NULL, **at = &t->root;
	assert(!n->in);
	while (*at) {
		p = *at;
		at = cmp(n, p) < 0 ? &p->left : &p->right;
	}
	*n = (struct tree_node){ .up = p, .salt = mix(seed), .in = true };
	*at = n;
	while (n->up && n->up->salt < n->salt)
		rotate_up(t, n);
	t->count++;
}

void tree_remove(struct tree *t, struct tree_node *n)
{
	assert(n->in && t->count > 0);
	while (n->left && n->right)
		rotate_up(t, n->left->salt > n->right->salt ? n->left : n->right);
	replace_child(t, n->up, n, n->left ? n->left : n->right);
	*n = (struct tree_node){ 0 };
	t->count--;
}

struct tree_node *tree_first(const struct tree *t)
{
	struct tree_node *n = t->root;
	while (n && n->left)
		n = n->left;
	return n;
}

struct tree_node *tree_next(const struct tree_node *n)
{
	if (n->right) {
		n = n->right;
		while (n->left)
			n = n->left;
		return (struct tree_node *)n;
	}
	while (n->up && n->up->right == n)
		n = n->up;
	return n->up;
}
