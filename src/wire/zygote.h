/* zygote.h - what slurmd says to the slurmstepd that waits to be forked (noded/stepd.c, stepd/zygote.c)
 *
 * Over a socketpair of type SOCK_SEQPACKET, a message a step: its title as text, at most ZYGOTE_TITLE_MAX bytes, and two descriptors: the channel to
 * slurmd and the will. The answer is an int32_t: the process id, or a negative errno. */
#pragma once

#define ZYGOTE_WORD "zygote"      /* argument of slurmstepd */
#define ZYGOTE_CONTROL 3          /* descriptor of the socketpair; in the forked slurmstepd that of the channel, and the next one that of the will */
#define ZYGOTE_TITLE_MAX 63
