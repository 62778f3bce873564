/* sort.c - see moments_sort in state.h */
#include "core/state.h"

void moments_sort(struct moment *m, uint32_t n, struct moment *tmp)
{
	for (uint32_t w = 1; w < n; w *= 2) {
		for (uint32_t lo = 0; lo < n; lo += 2 * w) {
			uint32_t mid = lo + w < n ? lo + w : n, hi = lo + 2 * w < n ? lo + 2 * w : n, i = lo, k = mid;
			for (uint32_t o = lo; o < hi; o++)
				tmp[o] = i < mid && (k >= hi || m[i].ms <= m[k].ms) ? m[i++] : m[k++];
		}
		memcpy(m, tmp, n * sizeof *m);
	}
}

struct core_job **jobs_put(const struct core *c, struct core_job **list, uint32_t *n, size_t *cap, struct core_job *j, job_first *first)
{
	list = xgrow(list, cap, *n + 1, sizeof *list);
	uint32_t i = (*n)++;
	for (; i > 0 && first(c, j, list[i - 1]); i--)
		list[i] = list[i - 1];
	list[i] = j;
	return list;
}
