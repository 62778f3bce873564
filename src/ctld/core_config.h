/* core_config.h - slurm.conf as the core wants it */
#pragma once
#include "ctld/ctld.h"

/* Strings point into conf. */
void core_config_params(const struct conf *conf, struct core_params *ret);
/* Gives EV_CONFIG; 0, or what the core had against it (nothing changed then). */
int core_config_apply(struct ctld *d, const struct conf *conf, struct error *err);
/* How identities are proved: key beside slurm.conf, sack socket of AuthInfo=sack=. Strings are malloc'd or the conf's; `daemon`: read the key. */
struct auth_paths { char *key, *sack, *munge; bool use_munge; };
void auth_paths_load(const struct conf *conf, struct auth_paths *ret);
void auth_paths_fini(struct auth_paths *p);
