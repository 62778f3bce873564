/* health.h - HealthCheckProgram every HealthCheckInterval seconds, one at a time, ended after a minute */
#pragma once
#include "noded/noded.h"
/* Once, when the folder is there and the configuration is read: runs the first check. */
void health_start(struct noded *n);
/* After a change of configuration (before health_start: nothing). */
void health_configure(struct noded *n);
