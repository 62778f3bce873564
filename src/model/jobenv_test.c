/* jobenv_test.c - the environment of an allocation, against values observed on 26.05.5 */
#include "base/testing.h"
#include "base/str.h"
#include "model/jobenv.h"

static void is(const struct envlist *e, const char *name, const char *want)
{
	const char *got = envlist_get(e, name);
	if (!str_eq(got, want))
		fail_msg("%s is %s, wanted %s", name, got ? got : "(absent)", want ? want : "(absent)");
}

/* -N2 -n5 -c2 --mem=100 got 8 CPUs and 2. */
static void two_nodes(void **state)
{
	Pb__NodeAlloc a = PB__NODE_ALLOC__INIT, b = PB__NODE_ALLOC__INIT, *parts[] = { &a, &b };
	Pb__Alloc alloc = PB__ALLOC__INIT;
	Pb__JobDesc d = PB__JOB_DESC__INIT;
	Pb__JobRecord job = PB__JOB_RECORD__INIT;
	struct envlist e = ENVLIST_INIT;
	a.nodes = "node-1"; a.cpus = 8; b.nodes = "node-2"; b.cpus = 2;
	alloc.nodes = "node-[1-2]"; alloc.part = parts; alloc.n_part = 2;
	d.has_num_tasks = d.has_cpus_per_task = d.has_mem_per_node = true;
	d.num_tasks = 5; d.cpus_per_task = 2; d.mem_per_node = 100; d.name = "wrap"; d.export_env = "ALL";
	job.job_id = 239; job.alloc = &alloc; job.desc = &d; job.partition = "main"; job.user = "root";
	job.has_start_time = true; job.start_time = 1796011757;
	jobenv_add(&e, &job, JOBENV_BATCH, "main", NULL);
	is(&e, "SLURM_JOB_CPUS_PER_NODE", "8,2"); is(&e, "SLURM_TASKS_PER_NODE", "4,1"); is(&e, "SLURM_JOB_NODELIST", "node-[1-2]");
	is(&e, "SLURM_NNODES", "2"); is(&e, "SLURM_NTASKS", "5"); is(&e, "SLURM_NPROCS", "5"); is(&e, "SLURM_CPUS_PER_TASK", "2");
	is(&e, "SLURM_MEM_PER_NODE", "100"); is(&e, "SLURM_TRES_PER_TASK", "cpu=2"); is(&e, "SLURM_JOB_EXCLUSIVE", "NO");
	is(&e, "SLURM_JOB_NAME", "wrap"); is(&e, "SLURM_JOB_START_TIME", "1796011757"); is(&e, "SLURM_RESTART_COUNT", NULL);
	is(&e, "SLURM_ARRAY_JOB_ID", NULL); is(&e, "SLURM_EXPORT_ENV", NULL);
	envlist_fini(&e);
}

/* Where the user or the site has chosen, that holds. */
static void mpi_launchers(void **state)
{
	struct envlist e = ENVLIST_INIT, own = ENVLIST_INIT, off = ENVLIST_INIT;
	jobenv_add_mpi(&e, NULL);
	is(&e, "HYDRA_BOOTSTRAP", "slurm"); is(&e, "HYDRA_LAUNCHER_EXTRA_ARGS", "--external-launcher"); is(&e, "I_MPI_HYDRA_BOOTSTRAP", "slurm");
	is(&e, "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", "--external-launcher"); is(&e, "OMPI_MCA_plm_slurm_args", "--external-launcher"); is(&e, "PRTE_MCA_plm_slurm_args", "--external-launcher");
	envlist_set(&own, "HYDRA_BOOTSTRAP", "ssh"); envlist_set(&own, "OMPI_MCA_plm_slurm_args", "mine");
	jobenv_add_mpi(&own, "");
	is(&own, "HYDRA_BOOTSTRAP", "ssh"); is(&own, "HYDRA_LAUNCHER_EXTRA_ARGS", NULL); is(&own, "I_MPI_HYDRA_BOOTSTRAP", "slurm"); is(&own, "OMPI_MCA_plm_slurm_args", "mine");
	envlist_set(&off, "HYDRA_BOOTSTRAP", "slurm");
	jobenv_add_mpi(&off, "disable_slurm_hydra_bootstrap");
	is(&off, "HYDRA_LAUNCHER_EXTRA_ARGS", "--external-launcher"); is(&off, "I_MPI_HYDRA_BOOTSTRAP", NULL); is(&off, "PRTE_MCA_plm_slurm_args", "--external-launcher");
	envlist_fini(&e); envlist_fini(&own); envlist_fini(&off);
}

/* -N2 --ntasks-per-node=3 --gres=gpu:2, the second node */
static void gpus_and_array(void **state)
{
	Pb__GresAlloc g = PB__GRES_ALLOC__INIT, *gs[] = { &g };
	Pb__NodeAlloc a = PB__NODE_ALLOC__INIT, *parts[] = { &a };
	Pb__Alloc alloc = PB__ALLOC__INIT;
	Pb__JobDesc d = PB__JOB_DESC__INIT;
	Pb__JobRecord job = PB__JOB_RECORD__INIT;
	struct envlist e = ENVLIST_INIT;
	g.name = "gpu"; g.type = "h100"; g.count = 2; g.index = "0-1";
	a.nodes = "node-[1-2]"; a.cpus = 3; a.gres = gs; a.n_gres = 1;
	alloc.nodes = "node-[1-2]"; alloc.part = parts; alloc.n_part = 1;
	d.has_ntasks_per_node = true; d.ntasks_per_node = 3; d.array = "3-7:2%1"; d.distribution = "block:cyclic";
	job.has_num_tasks = true; job.num_tasks = 6; job.job_id = 241; job.alloc = &alloc; job.desc = &d;
	job.has_array_task_id = true; job.array_task_id = 7; job.array_job_id = 241; job.has_restarts = true; job.restarts = 2;
	jobenv_add(&e, &job, JOBENV_BATCH, "main", "/etc/slurm/slurm.conf");
	jobenv_add_node(&e, &job, "node-2");
	jobenv_add_batch(&e, &job, 77);
	is(&e, "SLURM_JOB_CPUS_PER_NODE", "3(x2)"); is(&e, "SLURM_TASKS_PER_NODE", "3(x2)"); is(&e, "SLURM_NTASKS", "6"); is(&e, "SLURM_NTASKS_PER_NODE", "3");
	is(&e, "SLURM_ARRAY_TASK_COUNT", "3"); is(&e, "SLURM_ARRAY_TASK_ID", "7"); is(&e, "SLURM_ARRAY_TASK_MAX", "7"); is(&e, "SLURM_ARRAY_TASK_MIN", "3");
	is(&e, "SLURM_ARRAY_TASK_STEP", "2"); is(&e, "SLURM_ARRAY_JOB_ID", "241"); is(&e, "SLURM_DISTRIBUTION", "block:cyclic");
	static const char *const dist[][2] = { { "*", "block" }, { "cyclic:*", "cyclic:cyclic" }, { "*:*:*", "block:cyclic:cyclic" }, { "block:block:*", "block:block:block" },
		{ "*,pack", "block,pack" }, { "block:*,nopack", "block:cyclic,nopack" }, { "plane=2", "plane" }, { "cyclic:cyclic:fcyclic,pack", "cyclic:cyclic:fcyclic,pack" } };
	for (size_t i = 0; i < sizeof(dist) / sizeof(dist[0]); i++) {
		jobenv_distribution(&e, dist[i][0]);
		is(&e, "SLURM_DISTRIBUTION", dist[i][1]);
	}
	is(&e, "SLURM_GPUS_ON_NODE", "2"); is(&e, "CUDA_VISIBLE_DEVICES", "0,1"); is(&e, "SLURM_JOB_GPUS", "0,1"); is(&e, "SLURM_NODEID", "1");
	is(&e, "SLURM_CPUS_ON_NODE", "3"); is(&e, "SLURM_RESTART_COUNT", "2"); is(&e, "SLURM_STEP_ID", "-5"); is(&e, "SLURM_TASK_PID", "77");
	is(&e, "SLURM_CONF", "/etc/slurm/slurm.conf"); is(&e, "SLURMD_NODENAME", "node-2");
	envlist_fini(&e);
}

static void counts(void **state)
{
	uint32_t c[] = { 2, 2, 1, 3, 3, 3 };
	char *s = jobenv_counts(c, 6);
	assert_string_equal(s, "2(x2),1,3(x3)");
	free(s);
}

static void environment(void **state)
{
	struct envlist e = ENVLIST_INIT;
	char *vars[] = { "A=1", "B=2", "bad", "A=3", "=x", "C=" };
	envlist_load(&e, vars, 6);
	assert_int_equal(e.count, 3);
	is(&e, "A", "3"); is(&e, "C", "");
	envlist_unset(&e, "A");
	is(&e, "A", NULL);
	envlist_set_default(&e, "B", "9");
	is(&e, "B", "2");
	assert_string_equal(e.var[0], "B=2");
	assert_null(e.var[e.count]);
	envlist_fini(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(two_nodes), cmocka_unit_test(mpi_launchers), cmocka_unit_test(gpus_and_array), cmocka_unit_test(counts), cmocka_unit_test(environment) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
