"""srun killed with -9 at the one point where it cannot know what it got: slurmctld has its request, and the answer has not come."""
import os
import signal
import subprocess

import pytest

CLUSTER = dict(nodes=2, cpus=8, gpus=0)


@pytest.fixture
def held(cluster):
    """slurmctld stopped: what is sent to it waits in its sockets."""
    pid = int(cluster.read(cluster.out("scontrol show config | awk '$1 == \"SlurmctldPidFile\" { print $3 }'")))
    yield lambda stop: os.kill(pid, signal.SIGSTOP if stop else signal.SIGCONT)
    os.kill(pid, signal.SIGCONT)


def unread(port):
    """Bytes that have come to this port and nobody has read."""
    total = 0
    with open("/proc/net/tcp") as f:
        for line in f.readlines()[1:]:
            part = line.split()
            if int(part[1].split(":")[1], 16) == port and part[3] == "01":
                total += int(part[4].split(":")[1], 16)
    return total


def killed_srun(cluster, held, argv):
    """srun whose request has reached slurmctld's socket, and not slurmctld; then it is killed and slurmctld goes on."""
    port = int(next(line.split("=")[1] for line in cluster.read(f"{cluster.home}/etc/slurm.conf").splitlines() if line.startswith("SlurmctldPort=")))
    held(True)
    before = unread(port)
    srun = subprocess.Popen(["srun", *argv], cwd=cluster.work, env=cluster.env(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cluster.wait("the request is there", lambda: unread(port) > before + 500)
    srun.kill()
    srun.wait()
    held(False)


def test_before_the_allocation_is_known(cluster, held):
    killed_srun(cluster, held, ["-J", "orphan", "-N2", "sleep", "1000"])
    job = cluster.wait("the job was made", lambda: cluster.out("sacct -X -n -P --name=orphan -o jobid"))
    assert cluster.wait_end(job) == "CANCELLED"
    cluster.wait_idle()
    assert len(cluster.out("sacct -X -n -P --name=orphan -o jobid").split()) == 1, "asked for twice, made once"


def test_before_the_step_is_known(cluster, held):
    job = cluster.out("salloc --no-shell -N2 2>&1 | grep -o 'allocation [0-9]*' | head -1").split()[1]
    killed_srun(cluster, held, [f"--jobid={job}", "-J", "lost", "-N2", "sleep", "1000"])
    cluster.wait("no step is left", lambda: not cluster.out("squeue -h -s -o %i"))
    assert cluster.state(job) == "RUNNING"
    assert cluster.run(f"srun --jobid={job} -N2 true", check=False).rc == 0, "all that the step had is free again"
    cluster.run(f"scancel {job}")
    cluster.wait_end(job)


def test_while_it_runs(cluster):
    marker = os.path.join(cluster.work, "runs")
    srun = subprocess.Popen(["srun", "-J", "runs", "-N2", "-n2", "bash", "-c", f"touch {marker}.$SLURM_PROCID; sleep 1000"], cwd=cluster.work, env=cluster.env(), stdin=subprocess.DEVNULL)
    cluster.wait("it runs", lambda: os.path.exists(marker + ".0") and os.path.exists(marker + ".1"))
    job = cluster.out("squeue -h -n runs -o %i")
    srun.kill()
    srun.wait()
    assert cluster.wait_end(job) == "CANCELLED"
    cluster.wait_idle()
