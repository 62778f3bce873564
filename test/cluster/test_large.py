"""Hundreds of nodes with eight GPUs each, emulated: one script for all of them (R40), short jobs beside a planned run (R41), GPUs one by one (R45)."""
import datetime
import re
import signal
import subprocess

import pytest

from conftest import BUILD, free_port

NODES = 300


CLUSTER = dict(nodes=1, cpus=2, gpus=0, extra_conf=f"""GresTypes=gpu
MaxJobCount=50000
MaxArraySize=5000
NodeName=gpu-[1-{NODES}] NodeAddr=127.0.0.1 Port={free_port()} CPUs=32 RealMemory=512000 Gres=gpu:h100:8
PartitionName=prod Nodes=gpu-[1-{NODES}] State=UP MaxTime=UNLIMITED
""")
SCRIPT = """#!/bin/bash
#SBATCH --job-name=run-of-weeks
#SBATCH --partition=prod
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --gres=gpu:8
#SBATCH --exclusive
#SBATCH --time={time}
#SBATCH --output=/dev/null
sleep 100000
"""


def script(cluster, nodes, time):
    """The id of a run on so many nodes for so long."""
    with open(f"{cluster.work}/run.slurm", "w") as f:
        f.write(SCRIPT.format(nodes=nodes, time=time))
    return cluster.submit("run.slurm")


def idle(cluster):
    return int(cluster.out("sinfo -h -p prod -t idle -o %D") or 0)


def starts(cluster, job):
    """When the scheduler means to start a job that waits."""
    text = cluster.out(f"squeue -h -j {job} -o %S")
    return datetime.datetime.fromisoformat(text) if text != "N/A" else None


@pytest.fixture(scope="module")
def large(cluster):
    cluster.run(f"echo 'NodeName=gpu-[1-{NODES}] Name=gpu Type=h100 File=/dev/nvidia[0-7]' >> $BERTH_DIR/etc/gres.conf; scontrol reconfigure")
    proc = subprocess.Popen([f"{BUILD}/sbin/slurmd", "-D", "--emulate", str(NODES), "-N", "gpu-1"], env=cluster.env(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    cluster.wait("all nodes idle", lambda: idle(cluster) == NODES)
    yield cluster
    proc.send_signal(signal.SIGTERM)
    proc.communicate(timeout=20)


def test_r40_one_script_starts_on_all_nodes_at_once(large):
    job = script(large, NODES, "21-00:00:00")
    large.wait_state(job, "RUNNING")
    assert large.job(job, "NumNodes") == str(NODES) and large.job(job, "NodeList") == f"gpu-[1-{NODES}]" and large.job(job, "TimeLimit") == "21-00:00:00"
    assert f"gres/gpu={NODES * 8}" in large.job(job, "AllocTRES")
    assert large.out("sinfo -h -p prod -o '%D %T'") == f"{NODES} allocated"
    submitted, started = (datetime.datetime.fromisoformat(large.job(job, key)) for key in ("SubmitTime", "StartTime"))
    assert (started - submitted).total_seconds() < 30
    large.run(f"scancel {job}")
    large.wait("nodes free again", lambda: idle(large) == NODES)


def test_r41_a_short_job_slips_in_where_it_delays_nobody(large):
    running = script(large, NODES - 4, "02:00:00")
    large.wait_state(running, "RUNNING")
    big = script(large, NODES, "04:00:00")
    large.wait("the big run has its place", lambda: starts(large, big))
    assert large.job(big, "Reason") == "Resources"
    planned = starts(large, big)
    one = "-p prod --gres=gpu:1 -o /dev/null --wrap 'sleep 1000'"
    long = large.submit("-t 1-00:00:00 " + one)
    short = large.submit("-t 60 " + one)
    large.wait_state(short, "RUNNING")
    large.wait("the long one is planned behind", lambda: (starts(large, long) or planned) > planned)
    assert large.state(long) == "PENDING" and large.state(big) == "PENDING" and large.job(long, "Reason") == "Priority"
    assert starts(large, big) <= planned
    large.run(f"scancel {running}")       # four nodes are held by the short one: the big run waits for it, and for nobody else
    large.wait("all others are free", lambda: large.state(running) == "CANCELLED")
    assert large.state(big) == "PENDING" and large.state(long) == "PENDING"
    large.run(f"scancel {short}")
    large.wait_state(big, "RUNNING")
    assert large.state(long) == "PENDING"
    large.run(f"scancel {big} {long}")
    large.wait("nodes free again", lambda: idle(large) == NODES)


def test_r45_no_two_jobs_get_the_same_gpu(large):
    """2,400 GPUs, one a job: each has its own, by node and index; the next job waits."""
    array = large.submit(f"-p prod -n1 --mem=10 --gres=gpu:1 -a 1-{NODES * 8} -o /dev/null --wrap 'sleep 100000'")
    large.wait("all run", lambda: large.out(f"squeue -h -r -t R -j {array} -o %i | wc -l") == str(NODES * 8))
    given = re.findall(r"Nodes=(\S+) .*GRES=gpu:h100:1\(IDX:(\d)\)", large.out(f"scontrol show job -d {array}"))
    assert len(given) == len(set(given)) == NODES * 8
    assert {int(index) for _, index in given} == set(range(8))
    late = large.submit("-p prod -n1 --mem=10 --gres=gpu:1 -o /dev/null --wrap true")
    assert large.state(late) == "PENDING"
    place = large.job(f"{array}_7", "NodeList")
    large.run(f"scancel {array}_7")
    large.wait_state(late, "RUNNING", "COMPLETED")
    assert large.job(late, "NodeList") == place
    large.run(f"scancel {array} {late}")
    large.wait("nodes free again", lambda: idle(large) == NODES)
