/* health.h - HealthCheckProgram every HealthCheckInterval seconds, one at a time, ended after a minute */
#pragma once
#include "noded/noded.h"
/* Also after a change of configuration. */
void health_start(struct noded *n);
