/* pmix_wire.h - between slurmstepd and slurmstepd-pmix, on the helper's descriptor 3
 *
 * Frame: 4 bytes length of what follows, 1 byte type, payload; numbers big-endian. End of file: the step is over, the helper cleans up and exits. */
#pragma once
#define PMIX_CHANNEL 3
#define PMIX_FRAME_MAX (300u << 20)
enum pmix_frame {
	PMIX_F_JOB = 'J',      /* to the helper, first: texts, each ended by NUL: see job_text() in pmix.c */
	PMIX_F_WHOLE = 'W',    /* to the helper: 8 bytes id, parts (4 bytes node, 4 bytes length, data) */
	PMIX_F_MESSAGE = 'M',  /* both ways: 4 bytes node, data */
	PMIX_F_ENV = 'E',      /* to slurmstepd: 4 bytes local task, texts NAME=value */
	PMIX_F_READY = 'R',    /* to slurmstepd: tasks may start */
	PMIX_F_FAILED = 'F',   /* to slurmstepd: why they may not */
	PMIX_F_GATHER = 'G',   /* to slurmstepd: 8 bytes id, 4 bytes number of nodes, data */
	PMIX_F_ABORT = 'A',    /* to slurmstepd: 4 bytes rank, 4 bytes code */
};
