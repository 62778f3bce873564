/* pmi2.c - a program that uses libpmi2 */
#include <slurm/pmi2.h>
#include <stdio.h>

int main(void)
{
	int spawned, rank, size, appnum, len, found;
	char id[256], key[64], value[1024], map[1024];
	if (PMI2_Init(&spawned, &size, &rank, &appnum) || PMI2_Job_GetId(id, sizeof id))
		return 1;
	snprintf(key, sizeof key, "k%d", rank);
	snprintf(value, sizeof value, "value;of=%d", rank);
	if (PMI2_KVS_Put(key, value) || PMI2_KVS_Fence())
		return 2;
	snprintf(key, sizeof key, "k%d", (rank + 1) % size);
	if (PMI2_KVS_Get(id, PMI2_ID_NULL, key, value, sizeof value, &len))
		return 3;
	map[0] = 0;
	if (size > 1 && (PMI2_Info_GetJobAttr("PMI_process_mapping", map, sizeof map, &found) || !found))
		return 4;
	printf("%d of %d has %s %s\n", rank, size, value, map);
	return PMI2_Finalize();
}
