"""MCSPlugin: nodes that only jobs of one label share; whose a node is. Several users: as root only."""
import os
import re

import pytest

CLUSTER = dict(nodes=2, cpus=4, gpus=0, extra_conf="MCSPlugin=mcs/user\nDefMemPerCPU=100\n")


def shown(cluster, job):
    return cluster.out(f"scontrol show job {job}")


def test_label_of_job_and_node(cluster):
    me = cluster.out("id -un").strip()
    job = cluster.submit("-w node-1 --exclusive=mcs -o /dev/null --wrap 'sleep 100'")
    cluster.wait_state(job, "RUNNING")
    assert f"MCS_label={me}\n" in shown(cluster, job) and "Exclusive=MCS" in shown(cluster, job)
    assert f" MCS_label={me}\n" in cluster.out("scontrol show node node-1") and " MCS_label=N/A\n" in cluster.out("scontrol show node node-2")
    assert cluster.out(f"squeue -h -j {job} -O mcslabel").strip() == me
    cluster.run(f"scancel {job}")
    cluster.wait_end(job)
    cluster.wait("the node to be nobody's", lambda: " MCS_label=N/A\n" in cluster.out("scontrol show node node-1"))
    done = cluster.run("sbatch --mcs-label=nobody-of-that-name --wrap true", check=False)
    assert done.rc == 1 and done.err.endswith("sbatch: error: Batch job submission failed: Invalid mcs_label specified\n")


def test_the_label_of_a_job_that_waits_can_be_changed(cluster):
    me = cluster.out("id -un").strip()
    job = cluster.submit("-H -o /dev/null --wrap true")
    assert "MCS_label=N/A\n" in shown(cluster, job)
    cluster.run(f"scontrol update job {job} mcslabel={me}")
    assert f"MCS_label={me}\n" in shown(cluster, job)
    done = cluster.run(f"scontrol update job {job} mcslabel=no-such-user", check=False)
    assert done.rc == 1 and done.err.startswith(f"Invalid mcs_label specified for job {job}\n")
    cluster.run(f"scancel {job}")


@pytest.mark.skipif(os.geteuid() != 0, reason="jobs of two users")
def test_another_user_does_not_share_the_node(cluster, user):
    job = cluster.submit("-w node-1 --exclusive=mcs -o /dev/null --wrap 'sleep 100'")
    cluster.wait_state(job, "RUNNING")
    other = cluster.run("sbatch --parsable -w node-1 -o /dev/null --wrap 'sleep 100'", user=user).out.strip()
    cluster.wait("it waits for room", lambda: cluster.job(other, "Reason") == "Resources")
    assert cluster.out("squeue -h -w node-1 -o %A").split() == [str(job)]
    row = next(line for line in cluster.out(f"scontrol why {other}").splitlines() if "shares with none of its kind" in line)
    assert re.search(r"\b0\b", row), row
    cluster.run(f"scancel {job}")
    cluster.wait_state(other, "RUNNING")
    cluster.run(f"scancel {other}")
    cluster.wait_end(other)
