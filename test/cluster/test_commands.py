"""Texts, streams and exit codes of commands on a running cluster, as recorded from the reference (test/compat/commands.txt)."""
import json
import os
import re

import pytest

CLUSTER = dict(nodes=4, cpus=8, gpus=4)
RECORDED = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "compat", "commands.txt")


def cases():
    found = []
    with open(RECORDED, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if line.startswith("$ "):
                found.append({"command": line[2:], "out": [], "err": [], "status": 0, "line": number})
            elif not found or not line:
                continue
            elif re.match(r"2\??( |$)", line):
                found[-1]["err"].append(line.split(" ", 1)[1])
            elif line.startswith("= "):
                found[-1]["status"] = int(line[2:])
            else:
                found[-1]["out"].append(line)
    return found


@pytest.fixture(scope="module")
def jobs(cluster):
    array = cluster.submit("-H -a 1-10 --wrap true")
    running = cluster.submit("-t 10 --mem=10 --wrap 'sleep 600'")
    cluster.wait_state(running, "RUNNING")
    return {"@J@": array, "@R@": running, "@N@": cluster.out(f"squeue -h -j {running} -o %N")}


@pytest.mark.parametrize("case", cases(), ids=lambda c: f"line{c['line']}")
def test_as_recorded(cluster, jobs, case):
    def put_in(text):
        for word, number in jobs.items():
            text = text.replace(word, str(number))
        return text

    got = cluster.run(put_in(case["command"]), check=False)
    assert got.out.splitlines() == [put_in(line) for line in case["out"]]
    assert got.err.splitlines() == [put_in(line) for line in case["err"]]
    assert got.rc == case["status"]


def test_a_running_job_is_held_for_its_next_run(cluster):
    job = cluster.submit("-t 10 --wrap 'sleep 600'")
    cluster.wait_state(job, "RUNNING")
    cluster.run(f"scontrol hold {job}")
    assert cluster.state(job) == "RUNNING" and cluster.job(job, "Priority") == "0"
    cluster.run(f"scontrol requeue {job}")
    cluster.wait("held in the queue", lambda: cluster.state(job) == "PENDING" and cluster.job(job, "Reason").startswith("JobHeld"))
    cluster.run(f"scontrol release {job}")
    cluster.wait_state(job, "RUNNING")
    cluster.run(f"scancel {job}")


def test_sacct_as_json(cluster):
    job = cluster.submit("-n2 -t 7 --wrap 'srun -n2 true; srun -n1 false'")

    def ended():
        jobs = json.loads(cluster.out(f"sacct -j {job} --json"))["jobs"]   # none until slurmdbd has heard of it
        return jobs and len(jobs[0]["steps"]) == 3 and jobs[0]["state"]["current"] != ["RUNNING"] and jobs[0]

    reply = cluster.wait("both steps in accounting", ended)
    assert [s["step"]["id"] for s in reply["steps"]] == [f"{job}.batch", f"{job}.0", f"{job}.1"]
    assert reply["state"]["current"] == ["FAILED"] and reply["derived_exit_code"]["return_code"]["number"] == 1
    assert reply["time"]["limit"]["number"] == 7 and reply["nodes"].startswith("node-")


def test_sacct_lists_a_held_job_only_by_its_id(cluster):
    job = cluster.submit("-H -J neverready --wrap true")
    cluster.wait("in accounting", lambda: cluster.out(f"sacct -X -n -j {job} -o state") == "PENDING")
    assert cluster.out("sacct -X -n --name neverready -S now-1hours -E now") == ""
    cluster.run(f"scancel {job}")


def test_reasons_that_name_nodes(cluster):
    """Texts recorded from the reference."""
    long = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"

    def shown(job):
        return cluster.out(f"squeue -h -j {job} -o %r")

    try:
        cluster.run("scontrol update nodename=node-4 state=drain reason=x")
        whole = cluster.submit("-N4 --wrap true")
        cluster.wait(long, lambda: shown(whole) == long)
        assert cluster.job(whole, "Reason") == long.replace(" ", "_")
        assert cluster.out(f"squeue -h -j {whole} -o %R") == f"({long})"
        named = cluster.submit("-w node-4 --wrap true")
        cluster.wait("it names what is away", lambda: shown(named).startswith("ReqNodeNotAvail, "))
        cluster.run("scontrol update nodename=node-[1-3] state=down reason=y")
        none = cluster.submit("--wrap true")
        cluster.wait("no node is up", lambda: shown(none) == "ReqNodeNotAvail, UnavailableNodes:node-[1-3]")
    finally:
        cluster.run("scancel -u $(id -un)", check=False)
        for node in range(1, 5):
            cluster.run(f"scontrol update nodename=node-{node} state=resume", check=False)
    cluster.wait_idle()


def test_addresses_of_nodes(cluster):
    lines = cluster.out("scontrol getaddrs node-[2,1]").splitlines()
    port = {n: re.search(r"Port=(\d+)", cluster.out(f"scontrol show node {n}")) for n in ("node-1", "node-2")}
    assert [line.split(": ")[0] for line in lines] == ["node-1", "node-2"]
    assert all(re.fullmatch(r"node-[12]: 127\.0\.1\.[12]:\d+", line) for line in lines)
    assert all(line.endswith(":" + port[line[:6]].group(1)) for line in lines if port[line[:6]])
    got = cluster.run("scontrol getaddrs", check=False)
    assert got.rc == 1 and "one argument required for keyword:getaddrs" in got.out + got.err
    assert cluster.run("scontrol getaddrs nosuch").out == ""
