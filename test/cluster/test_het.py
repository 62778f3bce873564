"""Heterogeneous jobs end to end: submission, steps over components, environment, ids, cancelling, requeue, a component's node dying."""
import re

CLUSTER = dict(nodes=4, cpus=4, gpus=0, extra_conf="SchedulerParameters=requeue_delay=0\nSlurmdTimeout=5\n")


def ids(cluster, job):
    return cluster.out(f"squeue -h -j {job} -o '%i %t' -S i").split("\n")


def test_batch_environment_and_steps(cluster):
    job = cluster.submit("-W -J mixed -o out.txt -N1 -n1 : -N2 -n2 -c2 --wrap 'env | grep ^SLURM | sort > batch.env; "
                         "srun --het-group=0,1 -l bash -c \"echo \\$SLURM_PROCID/\\$SLURM_NTASKS \\$SLURM_NODEID/\\$SLURM_NNODES \\$SLURM_JOB_ID \\$SLURM_STEP_ID \\$RANK/\\$WORLD_SIZE\" | sort; "
                         "srun -l echo a : -l echo b | sort; srun --het-group=1 -l echo c | sort; srun echo d'")
    env = dict(line.split("=", 1) for line in cluster.read("batch.env").splitlines() if "=" in line)
    assert env["SLURM_HET_SIZE"] == "2" and env["SLURM_JOB_ID"] == str(job)
    assert env["SLURM_JOB_ID_HET_GROUP_0"] == str(job) and env["SLURM_JOB_ID_HET_GROUP_1"] == str(job + 1)
    assert env["SLURM_NTASKS"] == "1" and env["SLURM_NTASKS_HET_GROUP_1"] == "2" and env["SLURM_CPUS_PER_TASK_HET_GROUP_1"] == "2"
    assert env["SLURM_JOB_NUM_NODES_HET_GROUP_0"] == "1" and env["SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1"] == "2(x2)"
    assert env["SLURM_TASKS_PER_NODE_HET_GROUP_1"] == "1(x2)" and "SLURM_CPUS_PER_TASK" not in env
    assert env["SLURM_JOB_NODELIST_PACK_GROUP_1"] == env["SLURM_JOB_NODELIST_HET_GROUP_1"]
    assert cluster.read("out.txt").splitlines() == [f"{i}: {i}/3 {i}/3 {job} 0 {i}/3" for i in range(3)] + ["0: a", "1: b", "2: b", "0: c", "1: c", "d"]
    rows = cluster.wait("accounted", lambda: "COMPLETED" in cluster.out(f"sacct -n -X -j {job}+1 -o state") and cluster.out(f"sacct -nP -j {job} -o jobid,jobidraw,state"))
    assert f"{job}+0.batch|{job}.batch|COMPLETED" in rows and f"{job}+1|{job + 1}|COMPLETED" in rows
    assert f"{job}+1.0|{job + 1}.0|COMPLETED" in rows and f"{job}+0.2|" not in rows and f"{job}+1.2|{job + 1}.2|COMPLETED" in rows
    assert f"{job}+1" not in cluster.out(f"sacct -nXP -j {job} --whole-hetjob=no -o jobid")
    assert f"{job}+0" in cluster.out(f"sacct -nXP -j {job}+1 --whole-hetjob=yes -o jobid")


def test_directives(cluster):
    cluster.run("cat > parts.sh", stdin="#!/bin/bash\n#SBATCH -n1 -H -J parts\n#SBATCH hetjob\n#SBATCH -n2 --comment=second\n#SBATCH hetjob\n#SBATCH -n3\ntrue\n")
    job = cluster.submit("parts.sh")
    assert cluster.out(f"squeue -h -j {job} -o '%i %j %C %k' -S i").splitlines() == [f"{job}+0 parts 1 (null)", f"{job}+1 parts 2 second", f"{job}+2 parts 3 second"]
    other = cluster.submit("-n4 : -n6 parts.sh")
    assert cluster.out(f"squeue -h -j {other} -o '%C' -S i").split() == ["4", "6", "6"]
    text = cluster.out(f"scontrol show job {job}+1")
    assert f"JobId={job + 1} HetJobId={job} HetJobOffset=1 JobName=parts" in text and f"HetJobIdSet={job}-{job + 2}" in text
    assert cluster.out(f"scontrol show job {job}").count("HetJobIdSet") == 3
    refused = cluster.run(f"scancel {job}+1", check=False)
    assert refused.rc and "Operation not permitted on individual component of heterogeneous job" in refused.err
    cluster.run(f"scancel {job} {other}")
    assert cluster.state(f"{job}+2") == "CANCELLED"
    refused = cluster.run("sbatch -n1 : -p nosuch -n2 --wrap true", check=False)
    assert refused.rc == 1 and "Invalid partition name specified" in refused.err


def test_salloc_and_srun(cluster):
    run = cluster.run("salloc -n1 : -n2 bash -c 'env | grep ^SLURM | sort; srun -l echo x : -l echo y | sort; srun --het-group=2 true; echo rc=$?'")
    assert "SLURM_NTASKS=3" in run.out and "SLURM_HET_SIZE=2" in run.out and "\nSLURM_JOB_NODELIST=" not in run.out
    assert run.out.splitlines()[-4:] == ["0: x", "1: y", "2: y", "rc=1"]
    assert "Requested het-group offset exceeds highest hetjob index (2 > 1)" in run.err
    run = cluster.run("srun -n1 -l sh -c 'exit 3' : -n2 -l echo b", check=False)
    assert run.rc == 3 and sorted(run.out.splitlines()) == ["1: b", "2: b"]


def test_cancel_one_then_all(cluster):
    job = cluster.submit("-n1 -o /dev/null : -n1 : -n1 --wrap 'sleep 100'")
    cluster.wait("runs", lambda: ids(cluster, job) == [f"{job}+{i} R" for i in range(3)])
    cluster.run(f"scancel {job}+1")
    cluster.wait("one less", lambda: ids(cluster, job) == [f"{job}+0 R", f"{job}+2 R"])
    refused = cluster.run(f"scontrol suspend {job}+2", check=False)
    assert refused.rc and "Operation not permitted on individual component of heterogeneous job" in refused.err + refused.out
    cluster.run(f"scontrol requeue {job}")
    cluster.wait("all again", lambda: ids(cluster, job) == [f"{job}+{i} R" for i in range(3)])
    cluster.run(f"scancel {job}")
    cluster.wait("gone", lambda: cluster.out(f"squeue -h -j {job}") == "")


def test_step_cancelled_in_all_components(cluster):
    job = cluster.submit("-n1 -o step.txt : -n1 --wrap 'srun --het-group=0-1 sleep 100; echo went on'")
    steps = lambda: re.findall(rf"({job}|{job + 1})\.0", cluster.out("squeue -hs -o %i"))
    cluster.wait("steps", lambda: len(steps()) == 2)
    cluster.run(f"scancel {job}.0")
    cluster.wait("went on", lambda: "went on" in cluster.read("step.txt"))
    assert cluster.wait_end(job)


def test_node_of_a_component_dies(cluster):
    job = cluster.submit("-N1 -n1 -c4 --requeue -o life.txt --open-mode=append : -N1 -n1 -c4 --wrap 'echo run $SLURM_RESTART_COUNT; sleep 200'")
    cluster.wait("runs", lambda: cluster.state(f"{job}+1") == "RUNNING" and cluster.state(f"{job}+0") == "RUNNING")
    node = cluster.job(f"{job}+1", "NodeList")
    cluster.run(f"berth kill {node}")
    cluster.wait("both again", lambda: cluster.job(f"{job}+0", "Restarts") == "1" and cluster.state(f"{job}+0") == "RUNNING" and cluster.state(f"{job}+1") == "RUNNING")
    assert cluster.job(f"{job}+1", "NodeList") != node
    cluster.run(f"scancel {job}; berth start {node}")
    cluster.wait_idle()


def test_controller_restart_between(cluster):
    job = cluster.submit("-n1 -H -o after.txt : -n2 --wrap 'srun -l echo p : -l echo q | sort'")
    cluster.run("berth kill slurmctld; berth start slurmctld")
    cluster.wait("back", lambda: cluster.run(f"scontrol release {job}", check=False).rc == 0)
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.read("after.txt").split("\n")[:3] == ["0: p", "1: q", "2: q"]
