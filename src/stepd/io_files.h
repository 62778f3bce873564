/* io_files.h - files on the node that tasks of a step read and write, opened by a helper process that has become the user */
#pragma once
struct step;
/* Sets in, out, err of every task that has a file there. 0; -1 and the note filled. */
int io_files_open(struct step *s);
