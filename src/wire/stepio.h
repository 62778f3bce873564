/* stepio.h - the one connection between srun and each node's slurmstepd
 *
 * stepd connects to srun (LaunchSpec.io_host:io_port) and sends HELLO, whose proof is HMAC (crypto_auth) of
 * "job.step node" under io_key; srun answers PROOF (crypto_auth of the same text with "srun " before it). Then frames both ways:
 *   1 byte type, 4 bytes task (big-endian; STEPIO_ALL: not one task's), 4 bytes length (big-endian, at most STEPIO_MAX), payload.
 * Back-pressure is TCP's: a reader that stops reading stops the writer; stepd keeps at most STEPIO_BUFFER bytes a task. */
#pragma once
#include <stdint.h>
#define STEPIO_ALL 0xffffffffu
#define STEPIO_MAX (256u * 1024)
#define STEPIO_HEAD 9
#define STEPIO_BLOCK_MAX (64u << 20)
#define STEP_ID_BCAST 0xfffffff2u   /* no step: a credential for sbcast */
enum stepio_type {
	STEPIO_HELLO = 1,   /* stepd->srun: pb.IoHello */
	STEPIO_PROOF = 2,   /* srun->stepd: 32 bytes */
	STEPIO_STARTED = 3, /* stepd->srun: pb.IoStarted (pids) */
	STEPIO_FAILED = 4,  /* stepd->srun: pb.IoText, launch failed on this node */
	STEPIO_STDOUT = 5, STEPIO_STDERR = 6,   /* stepd->srun; length 0: end of that stream */
	STEPIO_STDIN = 7,   /* srun->stepd; length 0: end of file */
	STEPIO_EXIT = 8,    /* stepd->srun: pb.IoExit */
	STEPIO_TEXT = 9,    /* stepd->srun: a line for srun's stderr ("slurmstepd: error: ...") */
	STEPIO_RESIZE = 10, /* srun->stepd: pb.IoResize */
	STEPIO_SIGNAL = 11, /* srun->stepd: 4 bytes signal number, to all tasks */
	STEPIO_END = 12,    /* stepd->srun: all tasks have ended and all output was sent */
	STEPIO_PEER_PORT = 13,   /* stepd->srun: 4 bytes, where it listens for the other nodes of the step */
	STEPIO_PEER_PARENT = 14, /* srun->stepd: 4 bytes, where node (index - 1) / LaunchSpec.tree_width does */
	STEPIO_ABORT = 15,       /* stepd->srun: 4 bytes exit code; a task ends the step (MPI_Abort) */
	STEPIO_SPAWN = 16,       /* stepd->srun: task is a ticket; texts, each ended by NUL: see src/stepd/pmi_spawn.c */
	STEPIO_SPAWNED = 17,     /* srun->stepd: task is the ticket; 4 bytes, 0: it runs */
	STEPIO_TERMINATE = 18,   /* srun->stepd: 4 bytes seconds until SIGKILL, then the reason ("DUE TO TASK FAILURE") */
	STEPIO_ALL_ENDED = 19,   /* srun->stepd, to those that have sent PEER_PORT: no task of the step runs any more on any node */
	/* sbcast, in place of a step's frames: */
	STEPIO_BLOCK = 20, STEPIO_BLOCK_LZ4 = 21,   /* to stepd: bytes of the file; 4 bytes length and lz4 of them. At most STEPIO_BLOCK_MAX */
	STEPIO_BLOCK_END = 22,   /* to stepd: that was all */
	STEPIO_WRITTEN = 23,     /* from stepd: 4 bytes errno, 0: the file is there */
};
