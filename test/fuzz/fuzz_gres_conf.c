/* fuzz_gres_conf.c - gres.conf beside a fixed slurm.conf: the entries of every node add up to its Gres=, whatever the file says */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "conf/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char slurm[] = "ClusterName=c\nSlurmctldHost=h\nGresTypes=gpu,nic\n"
			    "NodeName=a,b Sockets=2 CoresPerSocket=4 Gres=gpu:a100:2,gpu:h100:4,nic:2K\nNodeName=d Gres=gpu:3\n";

static void sum_check(const Pb__NodeRecord *n, uint64_t gpu, uint64_t nic)
{
	uint64_t gpus = 0, nics = 0;
	for (size_t i = 0; i < n->n_gres_list; i++)
		*(!strcmp(n->gres_list[i]->name, "gpu") ? &gpus : &nics) += n->gres_list[i]->count;
	assert(gpus == gpu && nics == nic);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf_text file[2] = { { "slurm.conf", slurm, sizeof slurm - 1 }, { "gres.conf", (const char *)data, size } };
	struct conf *c;
	struct error err = { 0 };
	log_set_levels(LOG_L_QUIET, LOG_L_QUIET);
	if (conf_load_text(file, 2, &c, &err)) {
		assert(err.code < 0 && err.line[0] && !strchr(err.line, '\n'));
		return 0;
	}
	sum_check(conf_node(c, "a"), 6, 2048);
	sum_check(conf_node(c, "d"), 3, 0);
	(void)conf_gres_autodetect(c, "a");
	conf_destroy(c);
	return 0;
}
