/* plugins.h - SPANK in slurmd: its own context, and the callbacks of prolog and epilog
 *
 * Plugins are loaded once, when slurmd starts. job_prolog and job_epilog run in a process of their own each time: slurmstepd in another role (stepd/plugins.c),
 * before the site's scripts. */
#pragma once
#include "noded/noded.h"
struct envlist;
/* 0 or error: a required plugin cannot be loaded or its init fails. */
int plugins_start(struct noded *n, struct error *err);
void plugins_stop(void);
/* Has a plugin something to do at CONF_Prolog, CONF_Epilog? */
bool plugins_have(enum conf_key key);
/* What the process for that needs in its environment. */
void plugins_script_env(const struct noded *n, enum conf_key key, struct envlist *e);
