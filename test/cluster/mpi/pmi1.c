/* pmi1.c - a program that uses libpmi */
#include <slurm/pmi.h>
#include <stdio.h>

int main(void)
{
	int spawned, rank, size, clique, max;
	char name[256], key[64], value[1024], port[1024];
	if (PMI_Init(&spawned) || PMI_Get_rank(&rank) || PMI_Get_size(&size) || PMI_KVS_Get_my_name(name, sizeof name) || PMI_Get_clique_size(&clique) ||
	    PMI_KVS_Get_value_length_max(&max))
		return 1;
	snprintf(key, sizeof key, "k%d", rank);
	snprintf(value, sizeof value, "value of %d", rank);
	if (PMI_KVS_Put(name, key, value) || PMI_KVS_Commit(name) || PMI_Barrier())
		return 2;
	snprintf(key, sizeof key, "k%d", (rank + 1) % size);
	if (PMI_KVS_Get(name, key, value, sizeof value) || PMI_KVS_Get(name, "none", port, sizeof port) != PMI_ERR_INVALID_KEY)
		return 3;
	int n = 0;
	for (PMI_KVS_Iter_first(name, key, sizeof key, port, sizeof port); key[0]; PMI_KVS_Iter_next(name, key, sizeof key, port, sizeof port))
		n++;
	printf("%d of %d clique %d has %s and %d pairs\n", rank, size, clique, value, n);
	return PMI_Barrier() || PMI_Finalize();
}
