"""--core-spec and --thread-spec where AllowSpecResourcesUsage lets them count: cores of its nodes that a job leaves to the system."""
CLUSTER = dict(nodes=2, cpus=4, gpus=0, extra_conf="AllowSpecResourcesUsage=yes\nDefMemPerCPU=100\n")


def test_a_job_leaves_cores_to_the_system_and_is_charged_for_them(cluster):
    job = cluster.submit("-S1 -o %j.out --wrap 'echo $SLURM_JOB_CPUS_PER_NODE; srun -n3 true && echo three; srun -n4 true || echo not four; sleep 100'")
    cluster.wait_state(job, "RUNNING")
    cluster.wait("its steps", lambda: "not four" in cluster.read(f"{job}.out"))
    assert cluster.read(f"{job}.out").split()[:2] == ["3", "three"]
    shown = cluster.out(f"scontrol show job -d {job}")
    assert "CPU_IDs=0-2 " in shown and "NumCPUs=4 " in shown and "CoreSpec=1\n" in shown and "AllocTRES=cpu=4,mem=300M," in shown and "Exclusive=NODE" in shown
    assert cluster.out(f"squeue -h -j {job} -O corespec:3,numcpus:3").split() == ["1", "4"]
    cluster.run(f"scancel {job}")
    cluster.wait_end(job)


def test_what_is_asked_for_can_be_changed_while_it_waits(cluster):
    job = cluster.submit("-H --thread-spec=3 -o /dev/null --wrap 'sleep 100'")
    assert cluster.out(f"squeue -h -j {job} -o %X").strip() == "3 Threads"
    cluster.run(f"scontrol update job {job} corespec=2")
    assert "CoreSpec=2\n" in cluster.out(f"scontrol show job {job}")
    cluster.run(f"scontrol release {job}")
    cluster.wait_state(job, "RUNNING")
    assert "CPU_IDs=0-1 " in cluster.out(f"scontrol show job -d {job}")
    done = cluster.run(f"scontrol update job {job} corespec=1", check=False)
    assert done.rc == 1 and done.err.startswith("Job is no longer pending execution")
    cluster.run(f"scancel {job}")
    cluster.wait_end(job)
    done = cluster.run("sbatch -S4 --wrap true", check=False)
    assert done.rc == 1 and done.err.endswith("sbatch: error: Batch job submission failed: Requested node configuration is not available\n")
