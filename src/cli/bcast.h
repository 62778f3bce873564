/* bcast.h - sends one file to all nodes of a job at once (sbcast, srun --bcast) */
#pragma once
#include "client/client.h"
#include "proto/step.pb-c.h"
struct bcast {
	struct client *client;
	uint32_t job_id;
	bool has_step;             /* only its nodes */
	uint32_t step_id;
	const char *source;
	const char *dest;          /* absolute; ends in '/': a folder, where the file gets a name of its own */
	bool force, preserve, compress;
	bool make_dir;             /* its folder is made where there is none */
	const char *nodes;         /* only these of the job's; NULL: all */
	uint64_t block;            /* bytes; 0: 8 MiB */
	int timeout_sec;           /* without progress; 0: MessageTimeout */
	unsigned verbose;
	uint32_t umask;
	Pb__BcastSpec spec;        /* filled: what was told to the nodes */
};
/* 0, or an exit code; everything is said. */
int bcast_send(struct bcast *b);
/* The shared libraries of that program, those below the folders of `exclude` left out ("NONE": none; NULL: BcastExclude), into DEST_libs. *ret_dir: that folder, malloc'd;
 * NULL: none were sent. 0 or an exit code. */
int bcast_libs(const struct bcast *program, const char *exclude, char **ret_dir);
/* The absolute destination of --bcast's or sbcast's operand: BcastParameters=DestDir= or `folder` before a relative one. malloc'd. */
char *bcast_dest(const struct conf *c, const char *text, const char *folder);
/* --compress[=lz4|none], BcastParameters=Compression=. An unknown library is said to be so and compression stays off, as with the reference. */
bool bcast_compress(const struct conf *c, const char *text, bool given);
