"""Arrays, dependencies, times, constraints as users type them (R16 R23 R24 R25 R26 R27 R30)."""
import os
import re

CLUSTER = dict(nodes=2, cpus=4, gpus=0)


def states(cluster, job):
    return set(cluster.out(f"squeue -h -a -t all -r -j {job} -o '%K %T'").splitlines())


def test_array_runs_every_task_once(cluster):
    job = cluster.submit("-a 1-6 -o arr-%A_%a.txt --wrap 'echo $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN $SLURM_ARRAY_TASK_MAX'")
    cluster.wait("all tasks", lambda: not cluster.out(f"squeue -h -r -j {job} -o %i || true"))
    for task in range(1, 7):
        assert cluster.read(f"arr-{job}_{task}.txt").split() == [str(job), str(task), "6", "1", "6"]


def test_pending_array_is_one_row_and_throttle_holds(cluster):
    job = cluster.submit("-a 1-10%1 -o /dev/null --wrap 'sleep 60'")
    cluster.wait("a task runs", lambda: "RUNNING" in cluster.out(f"squeue -h -j {job} -o %T"))
    rows = cluster.out(f"squeue -h -j {job} -o '%i|%T|%r'").splitlines()
    assert len(rows) == 2, rows
    assert f"{job}_[2-10%1]|PENDING|JobArrayTaskLimit" in rows
    assert f"{job}_1|RUNNING|None" in rows
    assert len(cluster.out(f"squeue -h -r -j {job} -o %i").splitlines()) == 10
    cluster.run(f"scancel {job}_5")
    assert f"{job}_[2-4,6-10%1]" in cluster.out(f"squeue -h -j {job} -o %i")
    cluster.run(f"scancel {job}")
    cluster.wait("gone", lambda: not cluster.out(f"squeue -h -j {job} -o %i || true"))


def test_dependencies(cluster):
    good = cluster.submit("-H -o /dev/null --wrap true")
    bad = cluster.submit("-H -o /dev/null --wrap false")
    after_ok = cluster.submit(f"-d afterok:{good} -o /dev/null --wrap true")
    after_any = cluster.submit(f"-d {bad} -o /dev/null --wrap true")
    never = cluster.submit(f"-d afterok:{bad} -o /dev/null --wrap true")
    after_not = cluster.submit(f"-d afternotok:{bad} -o /dev/null --wrap true")
    assert cluster.job(after_ok, "Reason") == "Dependency"
    cluster.run(f"scontrol release {good} {bad}")
    for job in (after_ok, after_any, after_not):
        assert cluster.wait_end(job) == "COMPLETED"
    cluster.wait("never satisfied", lambda: cluster.job(never, "Reason") == "DependencyNeverSatisfied")
    assert cluster.out(f"squeue -h -j {never} -o '%E|%r'") == f"afterok:{bad}(failed)|DependencyNeverSatisfied"
    cluster.run(f"scancel {never}")


def test_dependency_on_an_array_waits_for_all_of_it(cluster):
    array = cluster.submit("-H -a 0-2 -o /dev/null --wrap true")
    child = cluster.submit(f"-d afterok:{array} -o /dev/null --wrap true")
    cluster.run(f"scontrol release {array}")
    assert cluster.wait_end(child) == "COMPLETED"


def test_singleton(cluster):
    first = cluster.submit("-J single -o /dev/null --wrap 'while [ ! -e single-go ]; do sleep 0.1; done'")
    second = cluster.submit("-J single -d singleton -o /dev/null --wrap true")
    cluster.wait_state(first, "RUNNING")
    assert cluster.state(second) == "PENDING" and cluster.job(second, "Reason") == "Dependency"
    cluster.run("touch single-go")
    assert cluster.wait_end(second) == "COMPLETED"


def test_begin_time_of_a_held_job(cluster):
    job = cluster.submit("-H --begin=2030-01-20T12:34:00 -o /dev/null --wrap true")
    assert cluster.out(f"squeue -h -j {job} -o '%S %e %r'").strip() == "2030-01-20T12:34:00 NONE JobHeldUser"
    assert cluster.job(job, "EligibleTime") == cluster.job(job, "StartTime") == "2030-01-20T12:34:00"
    assert cluster.job(job, "EndTime") == "Unknown"
    cluster.run(f"scancel {job}")


def test_begin_time(cluster):
    job = cluster.submit("--begin=now+1hour -o /dev/null --wrap true")
    cluster.wait("reason", lambda: cluster.job(job, "Reason") == "BeginTime")
    cluster.run(f"scontrol update jobid={job} StartTime=now")
    assert cluster.wait_end(job) == "COMPLETED"


def test_nodes_are_chosen_and_excluded(cluster):
    assert cluster.run("srun -w node-2 hostname").out.strip() == "node-2"
    assert cluster.run("srun -x node-1 hostname").out.strip() == "node-2"


def test_what_no_node_can_meet_is_refused(cluster):
    for args, text in (("-c 5", "Requested node configuration is not available"), ("-w node-9", "Invalid node name specified"), ("-C nope", "Invalid feature specification"),
                       ("-p nope", "Invalid partition name specified")):
        result = cluster.run(f"sbatch {args} --wrap true", check=False)
        assert result.rc == 1 and any(t in result.err for t in text.split("|")), (args, result)


def test_export_forms(cluster):
    show = "-o env-%j.txt --wrap 'echo A=$A B=$B C=$C'"
    env = dict(A="1", B="2")
    for arg, want in (("ALL", "A=1 B=2 C="), ("NONE", "A= B= C="), ("A,B=3", "A=1 B=3 C="), ("ALL,C=4", "A=1 B=2 C=4")):
        job = cluster.submit(f"--export={arg} {show}", env=env)
        assert cluster.wait_end(job) == "COMPLETED"
        assert cluster.read(f"env-{job}.txt").strip() == want, arg


def test_sbatch_wait_returns_the_jobs_code(cluster):
    assert cluster.run("sbatch --wait -o /dev/null --wrap 'exit 3'", check=False).rc == 3
    assert cluster.run("sbatch --wait -a 1-3 -o /dev/null --wrap 'exit $SLURM_ARRAY_TASK_ID'", check=False).rc == 3


def test_directives_and_command_line(cluster):
    script = "#!/bin/bash\n#SBATCH --nodes=1 -J fromscript\n#SBATCH -o dir-%j.txt\necho $SLURM_JOB_NUM_NODES $SLURM_JOB_NAME \"$@\"\n#SBATCH -J toolate\n"
    cluster.run("cat > s.sh", stdin=script)
    job = cluster.submit("--nodes=2 s.sh one 'two words'")
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.read(f"dir-{job}.txt").strip() == "2 fromscript one two words"


def test_malformed_scripts(cluster):
    for data, text in (("", "Batch script is empty!"), ("echo\n", "This does not look like a batch script"), ("#!/bin/sh\r\necho\r\n", "DOS line breaks")):
        cluster.run("cat > bad.sh", stdin=data)
        result = cluster.run("sbatch bad.sh", check=False)
        assert result.rc == 1 and text in result.err, result


def test_exit_code_of_a_cancelled_job(cluster):
    """A script that answers SIGTERM with exit 3: scontrol tells of the script, sacct of the job, which did not end by itself."""
    job = cluster.submit("-o trap-%j.txt --wrap 'trap \"exit 3\" TERM; echo ready; while :; do sleep 0.1; done'")
    cluster.wait("the trap is set", lambda: os.path.exists(f"{cluster.work}/trap-{job}.txt") and "ready" in cluster.read(f"trap-{job}.txt"))
    cluster.run(f"scancel {job}")
    cluster.wait("its end in accounting", lambda: cluster.out(f"sacct -n -P -j {job} -o JobID,State,ExitCode").splitlines()
                 == [f"{job}|CANCELLED by {os.getuid()}|0:0", f"{job}.batch|FAILED|3:0"])
    assert cluster.job(job, "ExitCode") == "3:0"


def test_who_waits_is_told_why_and_may_give_up(cluster):
    """R27: what holds a request back beyond nodes in use is said at once; a signal takes it back, and the words are the reference's."""
    told = {"-N3": "Requested partition configuration not available now", "-H": "Job is in held state, pending scheduler release"}
    for option, why in told.items():
        for command, ends in (("srun", "srun: Job allocation N has been revoked"), ("salloc", "salloc: Job allocation N has been revoked.\nsalloc: Job aborted due to signal")):
            got = cluster.run(f"{command} {option} true 2> told & pid=$!; while ! grep -q queued told; do sleep 0.05; done; kill $pid; wait $pid; cat told >&2", check=False)
            pending = "salloc: Pending job allocation N\n" if command == "salloc" else ""
            assert re.sub(r"\d+", "N", got.err) == f"{command}: {why}\n{pending}{command}: job N queued and waiting for resources\n{ends}\n"
    cluster.wait("nobody waits", lambda: not cluster.out("squeue -h -o %i"))


def test_tasks_of_a_step_that_says_only_cpus(cluster):
    """R16: srun -c in an allocation that counts no tasks starts as many as the CPUs allow; with -n in the job that many."""
    for job, step, tasks in (("-N2 --exclusive", "-c2", 4), ("-N2 --exclusive", "-c2 -N1", 2), ("-c4", "-c3", 1), ("-c4", "", 1), ("-c4 -n1", "-c1", 1), ("--mincpus=4", "-c2", 2)):
        assert cluster.out(f"sbatch -W -o tasks.out {job} --wrap 'srun {step} echo x' >/dev/null; cat tasks.out").split() == ["x"] * tasks, (job, step)
