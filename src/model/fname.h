/* fname.h - file name patterns of --output, --error, --input: "slurm-%A_%4a.out"
 * A pure expansion; which side expands which letters is told by what is set in the context. A backslash anywhere in the pattern
 * switches all expansion off and is itself removed, as in the reference. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct fname_ctx {
	uint32_t job_id;          /* %j; %J is "job.step" for a step, else the job id */
	uint32_t array_job_id;    /* %A; 0: job_id */
	bool has_task;            /* of an array: %a, %b (index modulo 10); else 4294967294, of a step 0 */
	uint32_t array_task_id;
	bool has_step;            /* %s and %J */
	uint32_t step_id;
	uint32_t node_index;      /* %n */
	uint32_t task;            /* %t */
	const char *node;         /* %N: short host name */
	const char *user;         /* %u */
	const char *name;         /* %x; NULL ones expand to "" */
	const char *sluid;        /* %S */
	uint32_t restarts;        /* %r */
	bool keep_node_task;      /* srun: %N %n %t %s are expanded on the node: leave them in the text (one file a task or node) */
};
/* malloc'd. Width (%4j) pads numbers with zeros, up to 10. Unknown letters stay as they are. */
char *fname_expand(const char *pattern, const struct fname_ctx *ctx);
/* Does the pattern make different files for tasks (%t) or nodes (%N %n)? */
bool fname_is_per_task(const char *pattern);
bool fname_is_per_node(const char *pattern);
/* The pattern a batch job without --output gets: "slurm-%j.out" or "slurm-%A_%a.out". */
const char *fname_default(bool is_array);
/* Pattern -> absolute path below work_dir (malloc'd); "none" (any case) and NULL give /dev/null. */
char *fname_path(const char *pattern, const char *work_dir, const struct fname_ctx *ctx);
/* The same without expansion. */
char *fname_absolute(const char *name, const char *work_dir);
