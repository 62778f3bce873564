/* remove.h - takes away a tree that somebody else may change meanwhile */
#pragma once
/* All below `path`, and itself. Walks by descriptors, so whatever is moved or replaced by a link meanwhile, nothing outside the tree is touched; follows no links,
 * leaves no file system. What cannot be removed stays. Blocks as long as it takes. */
void remove_tree(const char *path);
