"""slurmstepds that do not answer (stopped): slurmd waits for none of them, and at the job's end it ends them."""
import glob
import os
import signal
import socket

import pytest

CLUSTER = dict(nodes=1, cpus=8, gpus=0, extra_conf="KillWait=1\nUnkillableStepTimeout=1\nReturnToService=2\n")


@pytest.fixture
def mute(cluster):
    """A running job whose slurmstepd is stopped: job id, process id of its slurmstepd and of what it runs."""
    cluster.wait_idle()
    job = cluster.submit("-n1 -o mute-%j.txt --wrap 'trap \"\" TERM; echo $$; while [ ! -e mute-go ]; do sleep 0.2; done; exit 6'")
    cluster.wait("its output", lambda: os.path.exists(f"{cluster.work}/mute-{job}.txt") and cluster.read(f"mute-{job}.txt").strip())
    shell = int(cluster.read(f"mute-{job}.txt"))
    stepd = int(open(f"/proc/{shell}/stat").read().split(")")[1].split()[1])
    assert "slurmstepd" in open(f"/proc/{stepd}/cmdline").read()
    cluster.run(f"kill -STOP {stepd}")
    yield job, stepd, shell
    cluster.run(f"kill -CONT {stepd}; kill -9 {shell}", check=False)


def slurmd_pid(cluster):
    return cluster.out("berth status | awk '$1 == \"node-1\" { print $3 }'")


def others_run(cluster):
    """Another job runs on that node, with a step, and the node answers."""
    assert cluster.out("srun -n1 echo beside", timeout=30) == "beside"
    assert cluster.wait_end(cluster.submit("-n1 -o /dev/null --wrap 'srun true'")) == "COMPLETED"
    assert cluster.node_state("node-1") == "mixed"


def test_others_go_on_and_its_job_ends(cluster, mute):
    job, stepd, shell = mute
    others_run(cluster)
    cluster.run(f"sstat -a {job}", check=False)
    for _ in range(50):
        cluster.run(f"scontrol notify {job} hello", check=False)
    cluster.run(f"scancel {job}")
    assert cluster.wait_end(job) == "CANCELLED"
    cluster.wait("its processes are gone", lambda: not os.path.exists(f"/proc/{shell}") and not os.path.exists(f"/proc/{stepd}"))
    log = cluster.read(f"{cluster.home}/log/node-1.log")
    assert f"its slurmstepd ({stepd}) does not answer (state T)" in log
    assert "Kill task failed" in cluster.read(f"{cluster.home}/log/slurmctld.log")
    cluster.wait_idle()


def fill_backlog(path):
    """Connections nobody accepts, until there is no room for another."""
    held = []
    while True:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            s.connect(path)
        except BlockingIOError:
            s.close()
            return held
        held.append(s)
        assert len(held) < 1000


@pytest.mark.parametrize("end", ["goes on", "is cancelled"])
def test_slurmd_starts_although_it_takes_no_connections(cluster, mute, end):
    job, stepd, shell = mute
    pid = slurmd_pid(cluster)
    found = glob.glob(f"/proc/{pid}/root/{cluster.home}/**/step.{job}.*", recursive=True)
    assert len(found) == 1, found
    held = fill_backlog(found[0])
    os.kill(int(pid), signal.SIGKILL)
    cluster.wait("slurmd is gone", lambda: cluster.out("berth status | awk '$1 == \"node-1\" { print $2 }'") != "up")
    cluster.berth("start node-1")
    log = f"{cluster.home}/log/node-1.log"
    cluster.wait("slurmd tries it", lambda: f"slurmstepd of step {job}." in cluster.read(log) and "takes no connections" in cluster.read(log))
    cluster.wait("the node answers", lambda: cluster.node_state("node-1") == "mixed")
    others_run(cluster)
    assert cluster.state(job) == "RUNNING"
    if end == "goes on":
        for s in held:
            s.close()
        cluster.run(f"touch mute-go; kill -CONT {stepd}")
        assert cluster.wait_end(job) == "FAILED"
        assert cluster.job(job, "ExitCode") == "6:0"
        cluster.run("rm mute-go")
    else:
        cluster.run(f"scancel {job}")
        assert cluster.wait_end(job) == "CANCELLED"
        cluster.wait("its processes are gone", lambda: not os.path.exists(f"/proc/{shell}") and not os.path.exists(f"/proc/{stepd}"))
    cluster.wait_idle()


def test_one_that_should_fork_and_is_stopped_is_replaced(cluster):
    assert cluster.out("srun -n1 echo one") == "one"
    slurmd = slurmd_pid(cluster)
    waiting = [p for p in cluster.out(f"pgrep -P {slurmd}").split() if open(f"/proc/{p}/cmdline").read().startswith("slurmstepd: waiting")]
    assert waiting
    cluster.run("kill -STOP " + " ".join(waiting))
    assert cluster.out("srun -n1 echo two", timeout=30) == "two"
    assert cluster.node_state("node-1") == "idle"
    cluster.run("kill -CONT " + " ".join(waiting))
    cluster.wait("it is gone", lambda: not any(os.path.exists(f"/proc/{p}") for p in waiting))
