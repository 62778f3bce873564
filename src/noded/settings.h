/* settings.h - what slurmstepd gets of our configuration: it reads no files itself */
#pragma once
#include "noded/noded.h"
/* start->conf, hardware and devices. Freed by settings_free. */
void settings_fill(const struct noded *n, Pb__StepdStart *start);
void settings_free(Pb__StepdStart *start);
