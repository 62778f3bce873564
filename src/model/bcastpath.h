/* bcastpath.h - where a file sent by sbcast or srun --bcast lies on a node */
#pragma once
#include "proto/step.pb-c.h"
/* The destination; a folder (it ends in '/') gets a name of its own for each step and node. malloc'd. */
char *bcast_path(const Pb__BcastSpec *b, uint32_t job_id, const char *node);
