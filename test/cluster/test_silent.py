"""Nodes that neither answer nor refuse, as after a loss of power, before slurmctld has given them up."""
import os
import re
import select
import socket
import subprocess

CLUSTER = dict(nodes=3, cpus=4, gpus=0, extra_conf="SlurmdTimeout=3600\n")


def black_hole(address):
    """A port where a call is neither answered nor refused: its backlog is full. The sockets that make it so."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    listener.listen(0)
    held = [listener]
    while select.select([], held[1:] and held[-1:], [], 0.5)[1] or len(held) == 1:
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(address)
        held.append(s)
    return held


def test_silent_nodes_keep_no_other_waiting(cluster):
    """Two of a step's three nodes are silent: the task of the third starts all the same, and what failed is said for each of the two."""
    held = []
    job = cluster.submit("-w node-[1-3] -N3 -o /dev/null --wrap 'sleep 1000'")
    cluster.wait_state(job, "RUNNING")
    port = cluster.out("scontrol show config | awk '$1 == \"SlurmdPort\" { print $3 }'")
    for node in ("node-1", "node-2"):
        cluster.berth(f"kill {node}")
        held += black_hole((cluster.out(f"scontrol -o show node {node} | grep -o 'NodeAddr=[^ ]*'").split("=")[1], int(port)))
    p = subprocess.Popen(["srun", f"--jobid={job}", "--overlap", "--msg-timeout=1000", "-w", "node-[1-2]", "-N2", "-n2", "true"],
                         cwd=cluster.work, env=cluster.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    q = subprocess.Popen(["srun", f"--jobid={job}", "--overlap", "--msg-timeout=1000", "-N3", "-n3", "bash", "-c", "echo here >silent-$SLURMD_NODENAME; sleep 1000"],
                         cwd=cluster.work, env=cluster.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    cluster.wait("the task of node-3", lambda: os.path.exists(f"{cluster.work}/silent-node-3"))
    assert p.poll() is None and q.poll() is None and not os.path.exists(f"{cluster.work}/silent-node-1")
    told = cluster.run(f"srun --jobid={job} --overlap --msg-timeout=1 -N3 -n3 true", check=False)
    assert told.rc != 0 and "failed on node node-2: no answer from 127.0.1.2:" in told.err and "failed on node node-1: no answer from 127.0.1.1:" in told.err, told
    cluster.run(f"scancel {job}")
    for step in (p, q):
        step.communicate(timeout=60)
        assert step.returncode != 0
    for s in held:
        s.close()
    for node in ("node-1", "node-2"):
        cluster.berth(f"start {node}")
    cluster.wait_idle()


def test_slurmd_that_takes_the_call_and_is_stopped(cluster):
    """It holds the step no longer than --msg-timeout, as in the reference, and the node is named."""
    cluster.wait_idle()
    pid = cluster.out("berth status | awk '$1 == \"node-2\" { print $3 }'")
    cluster.run(f"kill -STOP {pid}", user="root")
    try:
        told = cluster.run("srun --msg-timeout=1 -N3 -n3 sleep 1000", check=False)
    finally:
        cluster.run(f"kill -CONT {pid}", user="root")
    assert told.rc != 0 and re.search(r"srun: error: Task launch for StepId=\d+\.0 failed on node node-2: .*Socket timed out on send/recv operation", told.err), told
    cluster.wait_idle()
