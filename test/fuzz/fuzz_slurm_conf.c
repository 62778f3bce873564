/* fuzz_slurm_conf.c - slurm.conf from memory: loads, or is refused with a line that names a place; every value of what loads can be read and shown
 * The input is the file; behind a line "%%" stands a second file named inc.conf, for Include. */
#define _GNU_SOURCE 1
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "conf/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const struct conf *c)
{
	struct conf_show_row *row;
	Pb__NodeRecord *const *node;
	Pb__PartitionRecord *const *part;
	size_t n = conf_show_rows(c, NULL, &row);
	for (size_t i = 0; i < n; i++)
		assert(row[i].key && row[i].value);
	conf_show_free(row, n);
	n = conf_nodes(c, &node);
	for (size_t i = 0; i < n; i++) {
		assert(conf_node(c, node[i]->name) == node[i]);
		assert(node[i]->cpus >= 1 && node[i]->addr && node[i]->hostname);
		free(conf_expand(c, "/x/%n.%h%%%q%", node[i]->name));
	}
	n = conf_parts(c, &part);
	for (size_t i = 0; i < n; i++)
		assert(part[i]->state && part[i]->nodes_full);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *cut = memmem(text, size, "\n%%\n", 4);
	size_t first = cut ? (size_t)(cut - text) : size;
	struct conf_text file[2] = { { "slurm.conf", text, first }, { "inc.conf", cut ? cut + 4 : "", cut ? size - first - 4 : 0 } };
	struct conf *c;
	struct error err = { 0 };
	log_set_levels(LOG_L_QUIET, LOG_L_QUIET);
	if (conf_load_text(file, 2, &c, &err)) {
		assert(err.code < 0 && err.line[0] && !strchr(err.line, '\n'));
		return 0;
	}
	read_all(c);
	conf_destroy(c);
	return 0;
}
