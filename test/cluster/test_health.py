"""HealthCheckProgram drains a node with what it says, and lifts its own drain alone."""
import os
import re
import tempfile

FOLDER = tempfile.mkdtemp(prefix="berth-health-")
CHECK = os.path.join(FOLDER, "check")
with open(CHECK, "w") as f:
    f.write(f"#!/bin/sh\n[ ! -e {FOLDER}/bad-$SLURMD_NODENAME ] || {{ cat {FOLDER}/bad-$SLURMD_NODENAME; exit 3; }}\n")
os.chmod(CHECK, 0o755)
os.chmod(FOLDER, 0o755)
CLUSTER = dict(nodes=2, cpus=2, gpus=0, extra_conf=f"HealthCheckProgram={CHECK}\nHealthCheckInterval=1\n")


def reason(cluster, node):
    found = re.search(r"Reason=(.*?) \[", cluster.out(f"scontrol show node {node}"))
    return found and found.group(1)


def test_a_failing_check_drains_and_a_passing_one_resumes(cluster):
    cluster.wait_idle()
    bad = os.path.join(FOLDER, "bad-node-1")
    with open(bad, "w") as f:
        f.write("GPU 3 has fallen off the bus\nmore\n")
    cluster.wait("node-1 drained", lambda: "drain" in cluster.node_state("node-1"))
    assert reason(cluster, "node-1") == "GPU 3 has fallen off the bus"
    assert cluster.node_state("node-2") == "idle"
    cluster.berth("kill slurmctld")
    cluster.berth("start slurmctld")
    os.unlink(bad)
    cluster.wait("node-1 resumed", lambda: cluster.node_state("node-1") == "idle")


def test_case_88_a_persons_drain_stays(cluster):
    cluster.run("scontrol update nodename=node-2 state=drain reason='mine'")
    bad = os.path.join(FOLDER, "bad-node-2")
    with open(bad, "w") as f:
        f.write("broken\n")
    log = f"{cluster.home}/log/node-2.log"
    cluster.wait("the check failed", lambda: "health check: broken" in cluster.read(log))
    os.unlink(bad)
    cluster.wait("it passed", lambda: cluster.read(log))
    assert reason(cluster, "node-2") == "mine" and "drain" in cluster.node_state("node-2")
