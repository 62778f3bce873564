/* Proves: submit options are parsed into the description with the reference's sentences and exit codes; the command line beats the
 * environment beats the script; options that exclude each other are refused; rows that do not work yet are refused by name and only get fewer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/jobopt.h"

#define TODO_MAX_SBATCH 30
#define TODO_MAX_SALLOC 29
#define TODO_MAX_SRUN 36

static struct error err;
static char storage[1024];

/* Words of `line` as argv, kept in `storage`. */
static int words(const char *line, char *argv[32])
{
	int argc = 0;
	char *cursor = storage;
	snprintf(storage, sizeof(storage), "%s", line);
	for (char *word; (word = str_next(&cursor, " "));)
		argv[argc++] = word;
	argv[argc] = NULL;
	return argc;
}

static int parse(struct jobopt *o, enum jobopt_cmd cmd, const char *line)
{
	char *argv[32];
	int argc = words(line, argv);
	jobopt_init(o, cmd);
	memset(&err, 0, sizeof(err));
	int rc = jobopt_parse_args(o, argc, argv, &err);
	if (rc >= 0 && (rc = jobopt_parse_env(o, &err)) >= 0)
		rc = jobopt_check(o, &err);
	return rc;
}

static void test_refusals(void **state)
{
	(void)state;
	static const struct { const char *line, *text; int exit_code; } cases[] = {
		{ "srun --bogus true", "unrecognized option '--bogus'", 255 },
		{ "srun -c0 true", "Invalid numeric value \"0\" for --cpus-per-task.", 1 },
		{ "srun -nx true", "Invalid numeric value \"x\" for --ntasks.", 1 },
		{ "srun --begin=foo true", "Invalid --begin specification", 255 },
		{ "srun --begin= true", "Invalid --begin specification", 255 },
		{ "srun -tfoo true", "Invalid --time specification", 255 },
		{ "srun --time-min=x true", "Invalid --time-min specification", 255 },
		{ "srun --mem=1Q true", "Invalid --mem specification", 255 },
		{ "srun --signal=foo true", "Invalid --signal specification", 255 },
		{ "srun --mail-type=foo true", "Invalid --mail-type specification", 255 },
		{ "srun -mfoo true", "Invalid --distribution specification", 255 },
		{ "srun --distribution=plane=0 true", "Invalid --distribution specification", 255 },
		{ "srun --exclusive=foo true", "Invalid --exclusive specification", 255 },
		{ "srun -B1:x:2 true", "Invalid numeric value \"x\" for second arg of -B.", 1 },
		{ "srun --hint=foo true", "unrecognized --hint argument \"foo\", see --hint=help", 1 },
		{ "srun --hint=memory_bound, true", "unrecognized --hint argument \"\", see --hint=help", 1 },
		{ "srun --hint=multithread,foo true", "unrecognized --hint argument \"foo\", see --hint=help", 1 },
		{ "srun --mem-bind=sort true", "unrecognized --mem-bind argument \"sort\"", 255 },
		{ "srun -Nx true", "\"x\" is not a valid node count", 255 },
		{ "srun -N2-1 true", "Maximum node count 1 is less than minimum node count 2", 255 },
		{ "srun -wnode[ true", "Invalid node list specified", 1 },
		{ "srun --jobid=0 true", "Bad job/step specified: 0: JobID can not be zero", 1 },
		{ "srun --cpu-bind=foo true", "Failed to parse --cpu-bind= values.", 1 },
		{ "srun --mem-bind=foo true", "unrecognized --mem-bind argument \"foo\"", 255 },
		{ "srun --gpu-bind=map_gpu:NaN true", "Invalid --gpu-bind argument: map_gpu:NaN", 255 },
		{ "srun --gres-flags=foo true", "Invalid --gres-flags specification: foo", 255 },
		{ "srun --propagate=FOO true", "--propagate=FOO is not valid.", 1 },
		{ "srun --pty=x true", "--pty=x must be numeric file descriptor", 1 },
		{ "srun --ignore-signals=foo true", "Invalid signal name or number: foo", 255 },
		{ "srun -Ix true", "Invalid numeric value \"x\" for immediate.", 1 },
		{ "srun --mpi=foo true", "Invalid MPI type 'foo', --mpi=list for acceptable types", 1 },
		{ "srun --send-libs true", "option '--send-libs' is not supported by this version", 1 },
		{ "srun --priority=-1 true", "Priority must be >= 0", 255 },
		{ "srun -r1 true", "--relative option invalid for job allocation request", 1 },
		{ "srun --overlap --exclusive true", "--exclusive and --overlap are mutually exclusive", 1 },
		{ "srun --gpus-per-task=1 true", "Invalid generic resource (gres) specification", 1 },
		{ "sbatch --requeue=foo", "Invalid --requeue specification", 255 },
		{ "sbatch --gres=gpu:2 --gpus-per-node=4", "--gpus-per-node and --gres=gpu are mutually exclusive.", 1 },
		{ "sbatch --gres=gpu:1,gpu:h100:1", "Invalid GRES specification (with and without type identification)", 1 },
		{ "sbatch --mem=1 --mem-per-cpu=1", "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.", 1 },
		{ "sbatch -c2 --cpus-per-gpu=1", "--cpus-per-task, --tres-per-task=cpu:#, and --cpus-per-gpu are mutually exclusive", 1 },
		{ "sbatch -n1 -c2 --tres-per-task=cpu:1", "You can not have --tres-per-task=cpu= and --cpus-per-task please use one or the other", 1 },
		{ "sbatch --core-spec=1 --thread-spec=1", "-S/--core-spec and --thred-spec options are mutually exclusive", 1 },
		{ "sbatch --exclusive -s", "--exclusive and --oversubscribe options are mutually exclusive", 1 },
		{ "sbatch --gres=shard:1,gpu:1", "Invalid generic resource (gres) specification", 1 },
		{ "sbatch --gpus-per-socket=1", "Invalid generic resource (gres) specification", 1 },
		{ "salloc -Kfoo", "Invalid --kill-command specification", 255 },
		{ "salloc --wait-all-nodes=2", "Invalid --wait-all-nodes specification", 255 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct jobopt o;
		enum jobopt_cmd cmd = cases[i].line[1] == 'b' ? JOBOPT_SBATCH : cases[i].line[1] == 'a' ? JOBOPT_SALLOC : JOBOPT_SRUN;
		int rc = parse(&o, cmd, cases[i].line);
		if (rc >= 0)
			fail_msg("accepted: %s", cases[i].line);
		assert_string_equal(err.line, cases[i].text);
		assert_int_equal(o.exit_code, cases[i].exit_code);
		jobopt_fini(&o);
	}
}

static void test_values(void **state)
{
	(void)state;
	struct jobopt o;
	assert_int_equal(parse(&o, JOBOPT_SBATCH, "sbatch -N2-4 -n8 -t 0:30 --mem=2G --gres=gpu:h100:2,x:1 --signal=B:SIGUSR1 -d afterok:5 --mail-type=end,FAIL --nice -J x"), 0);
	Pb__JobDesc *d = o.desc;
	assert_int_equal(d->min_nodes, 2);
	assert_int_equal(d->max_nodes, 4);
	assert_int_equal(d->num_tasks, 8);
	assert_int_equal(d->time_limit_min, 1);
	assert_int_equal(d->mem_per_node, 2048);
	assert_string_equal(d->tres_per_node, "gres/gpu:h100:2,gres/x:1");
	assert_string_equal(d->signal, "B:USR1@60");
	assert_string_equal(d->mail_type, "END,FAIL");
	assert_int_equal(d->nice, 100);
	assert_int_equal(jobopt_to_desc(&o, NULL, 0, NULL, &err), 0);
	assert_string_equal(d->name, "x");
	assert_true(d->batch && d->has_umask && d->n_rlimits > 5);
	jobopt_fini(&o);

	assert_int_equal(parse(&o, JOBOPT_SALLOC, "salloc --gpus=h100:3 --gpus-per-task=1 --mem-per-gpu=1G --cpus-per-gpu=2 -K9 -I5 -w a*2,b[1-2]"), 0);
	assert_string_equal(o.desc->tres_per_job, "gres/gpu:h100:3");
	assert_string_equal(o.desc->tres_per_task, "gres/gpu=1");
	assert_string_equal(o.desc->tres_bind, "gres/gpu:per_task:1");
	assert_string_equal(o.desc->mem_per_tres, "gres/gpu:1024");
	assert_string_equal(o.desc->cpus_per_tres, "gres/gpu:2");
	assert_string_equal(o.desc->req_nodes, "a,a,b[1-2]");
	assert_int_equal(o.desc->num_tasks, 3);
	assert_int_equal(o.kill_command_signal, 9);
	assert_int_equal(o.immediate_sec, 5);
	jobopt_fini(&o);
}

static void test_sources(void **state)
{
	(void)state;
	struct jobopt o;
	char *script[] = { "#SBATCH", "--nodes=4", "-p", "script", "--time=9", "-c2", NULL };
	setenv("SBATCH_PARTITION", "gpu", 1);
	setenv("SBATCH_TIMELIMIT", "5", 1);
	setenv("SBATCH_EXCLUSIVE", "true", 1);
	setenv("SBATCH_OVERCOMMIT", "no", 1);
	setenv("SBATCH_SPREAD_JOB", "", 1);
	setenv("SBATCH_CPUS_PER_GPU", "3", 1);
	setenv("SBATCH_DEBUG", "2", 1);
	assert_int_equal(parse(&o, JOBOPT_SBATCH, "sbatch --nodes=2 s.sh"), 0);
	assert_int_equal(jobopt_parse_words(&o, 6, script, &err), 0);
	assert_int_equal(jobopt_check(&o, &err), 0);
	assert_int_equal(o.desc->min_nodes, 2);
	assert_string_equal(o.desc->partition, "gpu");
	assert_int_equal(o.desc->time_limit_min, 5);
	assert_string_equal(o.desc->exclusive, "node");
	assert_false(o.desc->has_overcommit);
	assert_true(o.desc->spread_job);
	assert_int_equal(o.verbose, 2);
	assert_false(o.desc->has_cpus_per_task);   /* the environment's --cpus-per-gpu drops the script's -c */
	char *bad[] = { "#SBATCH", "-J", "x", "(sets", NULL };
	assert_true(jobopt_parse_words(&o, 4, bad, &err) < 0);
	jobopt_fini(&o);
	setenv("SBATCH_NETWORK", "x", 1);
	assert_true(parse(&o, JOBOPT_SBATCH, "sbatch") < 0);
	assert_string_equal(err.line, "option '--network' (from environment variable SBATCH_NETWORK) is not supported by this version");
	jobopt_fini(&o);
	unsetenv("SBATCH_NETWORK");
}

static void test_step(void **state)
{
	(void)state;
	struct jobopt o;
	setenv("SLURM_JOB_ID", "7", 1);
	setenv("SLURM_JOB_NAME", "batch", 1);
	setenv("SLURM_NNODES", "2", 1);
	setenv("SLURM_CPUS_PER_TASK", "3", 1);
	assert_int_equal(parse(&o, JOBOPT_SRUN, "srun -n4 --gres=none --overlap /bin/true"), 0);
	Pb__StepDesc *s = jobopt_to_step(&o, o.jobid, "/bin/true");
	assert_int_equal(s->job_id, 7);
	assert_string_equal(s->name, "true");
	assert_int_equal(s->min_nodes, 2);
	assert_int_equal(s->num_tasks, 4);
	assert_int_equal(s->cpus_per_task, 3);
	assert_string_equal(s->tres_per_node, "none");
	assert_true(s->overlap && s->exact);
	pb__step_desc__free_unpacked(s, NULL);
	jobopt_fini(&o);
	unsetenv("SLURM_JOB_ID");
	unsetenv("SLURM_NNODES");
	unsetenv("SLURM_CPUS_PER_TASK");
	unsetenv("SLURM_JOB_NAME");
}

static void test_todo(void **state)
{
	(void)state;
	assert_in_range(jobopt_todo_count(JOBOPT_SBATCH), 0, TODO_MAX_SBATCH);
	assert_in_range(jobopt_todo_count(JOBOPT_SALLOC), 0, TODO_MAX_SALLOC);
	assert_in_range(jobopt_todo_count(JOBOPT_SRUN), 0, TODO_MAX_SRUN);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_refusals), cmocka_unit_test(test_values), cmocka_unit_test(test_sources),
		cmocka_unit_test(test_step), cmocka_unit_test(test_todo) };
	clearenv();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
