/* options.h - slurmd's command line */
#pragma once
#include "noded/noded.h"
/* Fills n->opt. Returns -1 to go on, else the exit status (help, version, -C, an error that was printed). */
int options_parse(struct noded *n, int argc, char **argv);
