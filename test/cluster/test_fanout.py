"""One message to many nodes through the tree of their slurmds: 24 nodes, two wide, so four levels deep."""
import hashlib
import os
import re
import signal
import subprocess

import pytest

from test_wire import Peers
from wire import AUTH, DENIED, PROTOCOL, RPC, Wire, fields, pb

NODES = 24
CLUSTER = dict(nodes=NODES, cpus=2, gpus=0, extra_conf="TreeWidth=2\nSlurmdTimeout=300\n")
HOSTS = {f"node-{i}" for i in range(1, NODES + 1)}
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it reads the cluster key")


def pid_of(cluster, node):
    return next(int(line.split()[2]) for line in cluster.berth("status").out.splitlines() if line.split()[0] == node)


@pytest.fixture
def job(cluster):
    """An allocation of all nodes."""
    cluster.wait_idle()
    out = cluster.run(f"salloc --no-shell -N{NODES} 2>&1").out
    job = re.search(r"allocation (\d+)", out)[1]
    cluster.wait("it runs", lambda: cluster.state(job) == "RUNNING")
    yield job
    cluster.run(f"scancel {job}")
    cluster.wait_end(job)


def srun(cluster, job, args="", command="hostname"):
    """Where it ran, by what each node says of itself."""
    r = cluster.run(f"srun --jobid={job} -N{NODES} -n{NODES} {args} bash -c 'echo $SLURMD_NODENAME'", check=False)
    return r, set(r.out.split())


def test_a_step_starts_through_the_tree(cluster, job):
    r, where = srun(cluster, job, "-vv")
    assert r.rc == 0 and where == HOSTS
    own, levels = re.search(r"launch on 24 nodes: (\d+) messages of ours, \d+ in all, (\d+) levels", r.err).groups()
    assert int(own) == 2, r.err
    r, where = srun(cluster, job, "-vv --treewidth=24")
    assert r.rc == 0 and where == HOSTS and "24 messages of ours, 24 in all, 1 levels" in r.err


def test_a_job_ends_through_the_tree(cluster, job):
    cluster.run("scontrol setdebug debug")
    cluster.run(f"scancel {job}")
    cluster.wait_idle()
    told = cluster.wait("told", lambda: re.findall(r"D_TERMINATE to 24 nodes: (\d+) messages, (\d+) levels", cluster.read(f"{cluster.home}/log/slurmctld.log")))
    cluster.run("scontrol setdebug info")
    assert told[-1] == ("24", "4")


def test_sstat_and_sattach_ask_all_nodes(cluster, job):
    step = subprocess.Popen(["srun", f"--jobid={job}", f"-N{NODES}", f"-n{NODES}", "bash", "-c", "echo up; while read x; do echo $SLURM_PROCID:$x; done"], env=cluster.env(),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert [step.stdout.readline() for _ in range(NODES)] == ["up\n"] * NODES
    pids = cluster.run(f"sstat -n -P -i -j {job}.0 -o nodelist,pids").out.splitlines()
    assert {line.split("|")[0] for line in pids} == HOSTS and all(line.split("|")[1] for line in pids)
    with open(f"{cluster.work}/attached", "w") as seen:
        extra = subprocess.Popen(["sattach", f"{job}.0"], env=cluster.env(), stdin=subprocess.DEVNULL, stdout=seen, stderr=subprocess.DEVNULL)

    def all_seen():
        step.stdin.write("go\n")
        step.stdin.flush()
        return set(cluster.read("attached").split()) == {f"{i}:go" for i in range(NODES)}
    cluster.wait("sattach reads all tasks", all_seen)
    step.communicate(timeout=60)
    assert step.returncode == 0 and extra.wait(60) == 0


def test_a_dead_relay_costs_only_itself(cluster, job):
    """node-13 is the first of srun's second share: it relays to eleven others."""
    os.kill(pid_of(cluster, "node-13"), signal.SIGKILL)
    try:
        r, where = srun(cluster, job, "--no-kill")
    finally:
        cluster.berth("start node-13")
    assert where == HOSTS - {"node-13"}
    assert re.findall(r"Task launch for StepId=\d+\.\d+ failed on node (\S+):", r.err) == ["node-13"] and r.rc


def test_a_silent_relay_costs_only_itself(cluster, job):
    pid = pid_of(cluster, "node-7")   # relays to node-8 and those after it
    os.kill(pid, signal.SIGSTOP)
    try:
        r, where = srun(cluster, job, "--no-kill --msg-timeout=3")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert where == HOSTS - {"node-7"}
    assert re.findall(r"failed on node (\S+): no answer from", r.err) == ["node-7"] and r.rc


def test_a_relay_that_dies_with_the_message(cluster, job):
    """It has taken it and falls silent, then it is killed: what it relayed to is called by others, and it itself when it is back."""
    pid = pid_of(cluster, "node-13")
    os.kill(pid, signal.SIGSTOP)
    step = subprocess.Popen(["srun", f"--jobid={job}", f"-N{NODES}", f"-n{NODES}", "bash", "-c", "echo $SLURMD_NODENAME"], env=cluster.env(), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    cluster.wait("the first share runs", lambda: step.stdout.readline())
    os.kill(pid, signal.SIGKILL)
    cluster.wait("it is gone", lambda: not os.path.exists(f"/proc/{pid}") or "Z" in cluster.read(f"/proc/{pid}/stat").split()[2])
    cluster.berth("start node-13")
    out, err = step.stdout.read(), step.stderr.read()      # not communicate: readline may have taken in more than a line
    assert step.wait(60) == 0 and len(out.split()) == NODES - 1, err


def letter(peers, rpc, body=b"", nodes="node-[1-24]", uid=0, bound=None):
    parcel = pb({600: RPC[rpc][0], 601: body, 602: nodes, 603: 2, 604: 5000})
    hashed = hashlib.blake2b(parcel, digest_size=32).digest()
    return parcel, peers.token(uid, bound=hashed if bound is None else bound).data


def relay(peers, parcel, token, share, uid=0):
    """(code, {node: code of its answer})"""
    with Wire(peers.slurmd, peers.token(uid)) as w:
        code, body = w.call("D_RELAY", {600: parcel, 601: token, 602: share})
    answers = [fields(a) for a in fields(body).get(600, [])] if code == 0 else []
    return code, {a[600][0].decode(): a[601][0] for a in answers}


@pytest.fixture(scope="module")
def peers(cluster):
    return Peers(cluster)


@ROOT_ONLY
def test_what_a_relay_may_not_do(cluster, peers):
    good = letter(peers, "D_INFO")
    assert relay(peers, *good, "node-[1-24]") == (0, dict.fromkeys(HOSTS, 0))
    assert relay(peers, *good, "node-[1-24]") == (0, {}), "each node takes a letter once"
    parcel, token = letter(peers, "D_INFO")
    for at in range(0, len(parcel), 3):
        changed = bytearray(parcel)
        changed[at] ^= 1
        assert relay(peers, bytes(changed), token, "node-1")[0] == AUTH, at
    for at in range(0, len(token), 7):
        changed = bytearray(token)
        changed[at] ^= 1
        assert relay(peers, parcel, bytes(changed), "node-1")[0] == AUTH, at
    assert relay(peers, parcel, token, "node-1") == (0, {"node-1": 0}), "and none of these used it up"
    few = letter(peers, "D_INFO", nodes="node-[1-3]")
    assert relay(peers, *few, "node-[1,4]")[0] == DENIED, "a node that the letter does not name"
    assert relay(peers, *few, "node-[1-2],node-2")[0] == DENIED
    assert relay(peers, *few, "node-2")[0] == PROTOCOL, "a share that does not begin with who gets it"
    assert relay(peers, *letter(peers, "D_INFO", nodes="node-[2-3]"), "node-1")[0] == DENIED
    assert relay(peers, *letter(peers, "D_INFO", nodes="node-["), "node-1")[0] == PROTOCOL
    assert relay(peers, *letter(peers, "D_INFO", bound=bytes(32)), "node-1")[0] == AUTH
    assert relay(peers, *letter(peers, "D_RELAY"), "node-1")[0] == PROTOCOL


@ROOT_ONLY
def test_the_letter_says_who_asks_not_the_relay(cluster, peers, user, job):
    """A user's letter is his also where root's slurmd brings it."""
    import pwd
    alice = pwd.getpwnam(user).pw_uid
    body = pb({1: int(job), 2: 0})
    code, answers = relay(peers, *letter(peers, "D_TERMINATE", body, nodes="node-[1-6]", uid=alice), "node-[1-6]", uid=0)
    assert code == 0 and answers == {f"node-{i}": DENIED for i in range(1, 7)}
    assert cluster.state(job) == "RUNNING"
    code, answers = relay(peers, *letter(peers, "D_INFO", uid=alice), "node-[1-6]", uid=alice)
    assert code == 0 and set(answers.values()) == {0} and len(answers) == 6
