/* core_config.h - slurm.conf as the core wants it */
#pragma once
#include "ctld/ctld.h"

/* Strings point into conf. */
void core_config_params(const struct conf *conf, struct core_params *ret);
/* Gives EV_CONFIG; 0, or what the core had against it (nothing changed then). */
int core_config_apply(struct ctld *d, const struct conf *conf, struct error *err);
