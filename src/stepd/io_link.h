/* io_link.h - the connection to srun (wire/stepio.h) and what travels on it */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
struct sockaddr_in;
struct step;
struct task;
/* Connect, send HELLO. 0 (also when no srun listens for this step); -1 and the note filled. */
int io_link_connect(struct step *s);
/* Start reading and writing: all tasks are forked. */
void io_link_launched(struct step *s);
void io_link_failed(struct step *s, const char *text);
/* A frame of the step as a whole. false: there is no srun. */
bool io_link_send(struct step *s, uint8_t type, const void *data, size_t n);
bool io_link_send_task(struct step *s, uint8_t type, uint32_t task, const void *data, size_t n);
/* Connect, blocking. fd, or -1 and *ret_error an errno. */
int io_link_dial(const char *host, uint16_t port, int *ret_error);
/* No srun is, or was ever, connected. */
bool io_link_is_gone(void);
/* The address of a host by number or name, IPv4; the port stays. */
bool io_link_resolve(const char *host, struct sockaddr_in *ret);
void io_link_task_end(struct step *s, struct task *t);
/* true: everything is out. Else step_check_end is called again when it is. */
bool io_link_finish(struct step *s);
/* A whole line, newline included, for srun's stderr. false: there is no srun. */
bool io_link_text(struct step *s, const char *line);
/* For io_pipes.c: room for `n` payload bytes of a frame at the end of the queue; the payload is put there and io_link_commit told how much it was. NULL:
 * the queue is full or srun is not proven yet; io_pipes_resume is called when that changes. `*ret_discard`: there is no srun, throw it away. */
uint8_t *io_link_reserve(struct step *s, size_t n, bool *ret_discard);
void io_link_commit(struct step *s, uint8_t type, uint32_t task, size_t n);
/* For io_pipes.c: what the pipe `fd` holds, if it is a lot and nothing else waits, goes out without being copied: nobody may read from it until
 * io_pipes_resume is called. false: read it and use the two above. */
bool io_link_splice(struct step *s, uint8_t type, uint32_t task, int fd);
/* Stop or go on taking frames from srun (stdin that tasks do not take). */
void io_link_pause(struct step *s, bool pause);
