"""scontrol about the host it runs on (listjobs, liststeps, listpids, getent, pidinfo, show slurmd), levels of logs, limits of steps."""
import json
import os
import re

import pytest

CLUSTER = dict(nodes=2, cpus=8)


@pytest.fixture(scope="module")
def job(cluster):
    """On node-1: a script and a step of two tasks, which tell their own process ids."""
    script = "srun -n2 --overlap -o pid.%t sh -c 'echo $$; exec sleep 600' & echo $$ > pid.batch; exec sleep 600"
    number = cluster.submit(f"-w node-1 -n3 -t 20 -o /dev/null --wrap \"{script}\"".replace("$$", r"\$\$"))
    cluster.wait("the step's tasks", lambda: all(cluster.read(os.path.join(cluster.work, f"pid.{x}")).strip() for x in (0, 1, "batch")
                                                 if os.path.exists(os.path.join(cluster.work, f"pid.{x}"))) and
                 all(os.path.exists(os.path.join(cluster.work, f"pid.{x}")) for x in (0, 1, "batch")))
    yield number
    cluster.run(f"scancel {number}")
    cluster.wait_idle()


def pid(cluster, name):
    return cluster.read(os.path.join(cluster.work, f"pid.{name}")).strip()


def test_jobs_and_steps(cluster, job):
    assert cluster.run("scontrol listjobs node-1").out == f"JOBID\n{job:<8}\n"
    assert cluster.run("scontrol liststeps node-1").out == f"JOBID    STEPID  \n{job:<8} batch   \n{job:<8} 0       \n"
    found = json.loads(cluster.out("scontrol --json liststeps node-1"))
    assert found["steps"] == [{"job_id": job, "step_id": "batch"}, {"job_id": job, "step_id": "0"}]
    assert json.loads(cluster.out("scontrol listjobs node-1 --json"))["jobs"] == [{"job_id": job}]
    assert cluster.run("scontrol listjobs node-2", check=False).err == "No slurmstepd's found on this node\n"


def test_processes(cluster, job):
    rows = [line.split() for line in cluster.out(f"scontrol listpids {job} node-1").splitlines()]
    assert rows[0] == ["PID", "JOBID", "STEPID", "LOCALID", "GLOBALID"]
    for rank in ("0", "1"):
        assert [pid(cluster, rank), str(job), "0", rank, rank] in rows
    assert [pid(cluster, "batch"), str(job), "batch", "0", "0"] in rows
    step = [line.split() for line in cluster.out(f"scontrol listpids {job}.0 node-1").splitlines()[1:]]
    assert sorted(row[0] for row in step) == sorted([pid(cluster, 0), pid(cluster, 1)])
    found = json.loads(cluster.out(f"scontrol --json listpids {job}.0 node-1"))["pids"]
    assert {(str(p["pid"]), p["global_task_id"]["number"]) for p in found} == {(pid(cluster, 0), 0), (pid(cluster, 1), 1)}


def test_processes_for_others(cluster, job, user):
    """Another user sees the processes, as with ps, but not what they use."""
    assert pid(cluster, 0) in cluster.run(f"scontrol listpids {job} node-1", user=user).out
    assert "MaxRSS" not in cluster.run(f"sstat -n -P -o maxrss -j {job}.0", user=user, check=False).out.strip() and \
        not cluster.run(f"sstat -n -P -o maxrss -j {job}.0", user=user, check=False).out.strip()


def test_job_of_a_process(cluster, job):
    answer = cluster.out(f"SLURMD_NODENAME=node-1 scontrol pidinfo {pid(cluster, 1)}")
    assert answer.startswith(f"Slurm JobId={job}.0 ends at ")
    left = int(re.search(r"Job remaining time is (\d+) seconds", answer)[1])
    assert 0 < left <= 1200
    foreign = cluster.run("SLURMD_NODENAME=node-1 scontrol pidinfo 1", check=False)
    assert foreign.rc == 1 and foreign.err == "Failed to locate job for requested pid\n"


def test_works_without_slurmctld(cluster, job):
    cluster.run("berth kill slurmctld")
    try:
        assert f"{job:<8} 0" in cluster.out("scontrol liststeps node-1")
        assert pid(cluster, 0) in cluster.out(f"scontrol listpids {job}.0 node-1")
    finally:
        cluster.run("berth start slurmctld")


def test_users_of_steps(cluster, job):
    text = cluster.run("scontrol getent node-1").out
    assert [line for line in text.splitlines() if line.startswith("JobId=")] == [f"JobId={job}.batch:", f"JobId={job}.0:"]
    assert "User:\nroot:*:0:0:root:/root:" in text and "Groups:\nroot:*:0:root\n" in text


def test_slurmd(cluster, job):
    text = cluster.out("scontrol show slurmd node-1")
    assert f"Active Steps             = {job}, {job}.0\n" in text and "Hostname                 = node-1\n" in text
    assert re.search(r"Slurmd PID               = (\d+)", text)[1] == re.search(r"node-1 +up +(\d+)", cluster.out("berth status"))[1]
    assert "Active Steps             = NONE" in cluster.out("scontrol show slurmd node-2")


def test_which_host_is_this(cluster):
    told = cluster.run("scontrol listjobs", check=False)
    assert told.rc == 1 and "is no node of" in told.err and "give a node's name" in told.err
    here = cluster.run("srun -w node-2 -n1 scontrol liststeps")
    assert re.fullmatch(r"JOBID    STEPID  \n\d+ +0 +\n", here.out), here


def log(cluster, daemon):
    return cluster.read(os.path.join(cluster.home, "log", f"{daemon}.log"))


def test_level_of_the_log_until_reconfigure(cluster, user):
    def level():
        return re.search(r"SlurmctldDebug +=( .*)", cluster.out("scontrol show config"))[1].strip()
    assert level() == "info"
    cluster.run("scontrol setdebug debug2")
    assert level() == "debug2"
    cluster.run("squeue")
    cluster.wait("a line of level debug2", lambda: "debug2: call JOB_LIST" in log(cluster, "slurmctld"))
    cluster.run("scontrol setdebug debug nodes=node-2")
    assert "Slurmd Debug             = 5" in cluster.out("scontrol show slurmd node-2")
    assert "Slurmd Debug             = 3" in cluster.out("scontrol show slurmd node-1")
    cluster.run("scontrol reconfigure")
    assert level() == "info"
    cluster.wait("the node's level", lambda: "Slurmd Debug             = 3" in cluster.out("scontrol show slurmd node-2"))
    for command in ("setdebug debug", "setdebug debug nodes=node-1", "setdebugflags +Steps"):
        told = cluster.run(f"scontrol {command}", user=user, check=False)
        assert told.rc == 1 and "Permission denied" in told.err, command


def test_flags_of_the_log(cluster):
    def flags():
        return re.search(r"DebugFlags +=( .*)", cluster.out("scontrol show config"))[1].strip()
    cluster.run("scontrol setdebugflags +steps,agent +backfill")
    assert flags() == "Agent,Backfill,Steps"
    cluster.run("scontrol setdebugflags -agent -Steps")
    assert flags() == "Backfill"
    cluster.run("scontrol reconfigure")
    assert flags() == "(null)"


def test_time_limit_of_a_running_step(cluster, job, user):
    limits = rf"scontrol show step {job} | grep -o 'StepId=[^ ]*\|TimeLimit=.*' | paste - -"
    cluster.run(f"scontrol update StepId={job}.0 TimeLimit=15")
    assert cluster.out(limits).split() == [f"StepId={job}.batch", "TimeLimit=UNLIMITED", f"StepId={job}.0", "TimeLimit=00:15:00"]
    cluster.run(f"scontrol update stepid={job} timelimit=17")
    assert cluster.out(limits).split() == [f"StepId={job}.batch", "TimeLimit=00:17:00", f"StepId={job}.0", "TimeLimit=00:17:00"]
    other = cluster.run(f"scontrol update StepId={job}.0 TimeLimit=1", user=user, check=False)
    assert other.rc == 1 and other.err == "slurm_update error: Invalid user id\n"
