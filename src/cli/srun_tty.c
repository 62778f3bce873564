/* srun_tty.c - our own terminal while a task has one of its own (--pty)
 *
 * The terminal is put into raw mode, so that every key, ctrl-C too, goes to the task's terminal, which gives it its meaning. Restored at the end and
 * whenever srun ends otherwise (atexit). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/srun.h"
#include "wire/stepio.h"

static struct srun *owner;

bool tty_size(uint32_t *ret_rows, uint32_t *ret_cols)
{
	struct winsize size;
	if (ioctl(0, TIOCGWINSZ, &size) < 0)
		return false;
	*ret_rows = size.ws_row;
	*ret_cols = size.ws_col;
	return true;
}

void tty_resize(struct srun *s)
{
	Pb__IoResize m = PB__IO_RESIZE__INIT;
	uint8_t body[32];
	if (!s->o.pty || !tty_size(&m.rows, &m.cols) || pb__io_resize__get_packed_size(&m) > sizeof(body))
		return;
	size_t n = pb__io_resize__pack(&m, body);
	struct conn *c = s->node[s->task[0].node].conn;
	if (c)
		conn_send(c, STEPIO_RESIZE, 0, body, n);
}

static void tty_restore(void)
{
	if (owner)
		tty_stop(owner);
}

void tty_start(struct srun *s)
{
	struct termios raw;
	if (tcgetattr(0, &raw) < 0)
		return;
	if (!owner) {
		s->saved = raw;
		owner = s;
		atexit(tty_restore);
	}
	cfmakeraw(&raw);
	s->is_raw = tcsetattr(0, TCSANOW, &raw) == 0;
}

void tty_stop(struct srun *s)
{
	if (!s->is_raw)
		return;
	s->is_raw = false;
	tcsetattr(0, TCSANOW, &s->saved);
}
