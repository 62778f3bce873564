/* orders.h - the connections that slurmd (and tools on the node) keep to a step
 *
 * The first is descriptor 3, the rest come in on the socket SPOOL/step.JOB.STEP, where only root and the owner of slurmd are heard.
 * Both ways: four bytes of length (big-endian), then a StepdOrder or a StepdEvent. */
#pragma once
#include <stdbool.h>
struct step;
/* 0; -1 and the step's note filled: it could not be found again after a restart of slurmd. */
int orders_start(struct step *s, int fd);
void orders_stop(struct step *s);
void orders_send_kill_failed(struct step *s);
/* Tell the completion. True: a slurmd is connected. */
bool orders_send_over(struct step *s);
