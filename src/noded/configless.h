/* configless.h - slurmd --conf-server: the configuration comes from slurmctld and is kept in SlurmdSpoolDir/conf-cache
 */
#pragma once
#include "noded/noded.h"
int configless_load(struct noded *n, struct conf **ret, struct error *err);
