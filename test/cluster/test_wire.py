"""The wire against people who know the protocol: tokens that are expired, foreign, replayed or altered, at every daemon that listens; every call made by a user on what
is another's; credentials that were changed or are somebody else's. Speaks the protocol itself (wire.py), so that no command of ours is in the way.
"""
import hashlib
import os
import pwd
import re
import socket
import struct
import subprocess
import time

import pytest

from wire import AUTH, CRED, DENIED, HEAD, PROTOCOL, RPC, TOO_LARGE, Token, Wire, fields, key_of, pb

CLUSTER = dict(nodes=2, cpus=4, gpus=2)
AGAIN = 11                                   # EAGAIN: made before the daemon was started, ask for another
USER_ID = 2031                               # "Invalid user id": how the reference refuses updates of others' jobs
CONFIGLESS_OFF = 2030
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it reads the cluster key and is several people")
pytestmark = ROOT_ONLY


class Peers:
    """Where the daemons listen, and tokens for them."""
    def __init__(self, cluster):
        conf = cluster.read(f"{cluster.home}/etc/slurm.conf")
        dbd = cluster.read(f"{cluster.home}/etc/slurmdbd.conf")
        node = next(line for line in conf.splitlines() if line.startswith("NodeName=node-1 "))
        self.cluster, self.key = cluster, key_of(f"{cluster.home}/etc/slurm.key")
        self.name = re.search(r"^ClusterName=(\S+)", conf, re.M)[1]
        self.ctld = ("127.0.0.1", int(re.search(r"^SlurmctldPort=(\d+)", conf, re.M)[1]))
        port = re.search(r"\bPort=(\d+)", node) or re.search(r"^SlurmdPort=(\d+)", conf, re.M)
        self.slurmd = (re.search(r"NodeAddr=(\S+)", node)[1], int(port[1]))
        self.dbd = (re.search(r"^DbdAddr=(\S+)", dbd, re.M)[1] if "DbdAddr=" in dbd else "127.0.0.1", int(re.search(r"^DbdPort=(\d+)", dbd, re.M)[1]))
        self.all = {"slurmctld": (self.ctld, "PART_LIST"), "slurmd": (self.slurmd, "D_PING"), "slurmdbd": (self.dbd, "DB_JOBS")}

    def token(self, uid=0, key=None, cluster=None, **more):
        return Token(key or self.key, cluster or self.name, uid=uid, gid=uid, **more)

    def call(self, where, rpc, message=None, uid=0, **more):
        with Wire(where, self.token(uid, **more)) as w:
            return w.call(rpc, message)


@pytest.fixture(scope="module")
def peers(cluster):
    return Peers(cluster)


@pytest.fixture(scope="module")
def alice(user):
    return pwd.getpwnam(user).pw_uid


@pytest.fixture(scope="module")
def mallory():
    return pwd.getpwnam("nobody").pw_uid


DAEMONS = ("slurmctld", "slurmd", "slurmdbd")


@pytest.mark.parametrize("daemon", DAEMONS)
def test_tokens(peers, daemon):
    where, rpc = peers.all[daemon]
    assert peers.call(where, rpc)[0] == 0, "a good token is refused: this test proves nothing"
    for what, code, kw in (("expired", AUTH, dict(issued=-20, expires=-5)), ("future", AUTH, dict(issued=3600, expires=3660)), ("future", AUTH, dict(expires=86400 * 365)),
                           ("older than", AGAIN, dict(issued=-86400)), ("key", AUTH, dict(key=os.urandom(32)))):
        with Wire(where, peers.token(**kw)) as w:
            got, text = w.call(rpc)
            assert got == code and what in text.decode(), (kw, got, text)
            assert w.answer() == (None, b""), "the connection stays open"
    assert peers.call(where, rpc)[0] == 0


@pytest.mark.parametrize("daemon", ("slurmctld", "slurmd"))
def test_tokens_of_another_cluster_that_has_our_key(peers, daemon):
    where, rpc = peers.all[daemon]
    code, text = peers.call(where, rpc, cluster="elsewhere")
    assert code == AUTH and b'token is for cluster "elsewhere"' in text


@pytest.mark.parametrize("daemon", DAEMONS)
def test_frames_sent_again_or_changed(peers, daemon):
    where, rpc = peers.all[daemon]
    with Wire(where, peers.token()) as w:
        first, second = w.frame(rpc), w.frame(rpc)
        w.send(first)
        assert w.answer()[0] == 0
        w.send(second)
        assert w.answer()[0] == 0
        w.send(second)                                      # the same frame once more
        assert w.answer()[0] == AUTH
    with Wire(where) as w:                                  # the whole conversation once more
        w.send(first)
        code, text = w.answer()
        assert code == AUTH and b"used before" in text
    with Wire(where, peers.token()) as w:
        w.send(w.frame(rpc))
        assert w.answer()[0] == 0
        left_out, after = w.frame(rpc), w.frame(rpc)
        assert left_out != after
        w.send(after)
        assert w.answer()[0] == AUTH
    for bit in range(0, HEAD.size * 8 + 200 * 8, 53):       # anything changed on the way
        with Wire(where, peers.token()) as w:
            data = bytearray(w.frame(rpc))
            if bit // 8 >= len(data):
                break
            data[bit // 8] ^= 1 << bit % 8
            w.sock.settimeout(3)
            w.send(bytes(data))
            w.sock.shutdown(socket.SHUT_WR)
            assert w.answer()[0] != 0, f"bit {bit} was changed and nobody saw it"
    assert peers.call(where, rpc)[0] == 0


@pytest.mark.parametrize("daemon", DAEMONS)
def test_sizes_and_shapes(peers, daemon):
    where, rpc = peers.all[daemon]
    number, _, limit = RPC[rpc]
    for what, head, code in (("too large", dict(body=limit + 1), TOO_LARGE), ("huge", dict(body=2**32 - 1), TOO_LARGE), ("token too long", dict(token=4097), PROTOCOL),
                             ("an answer", dict(kind=2, token=0), PROTOCOL), ("no call", dict(rpc=0), PROTOCOL), ("receiver longer than the body", dict(to=255), PROTOCOL)):
        with Wire(where, peers.token()) as w:
            w.send(w.frame(number, head=head)[:HEAD.size])  # refused on the head alone: nothing more is sent
            assert w.answer()[0] == code, what
    deep = b"\x0a\x80\x80\x80\x80\x08"                      # a field of 2 GiB
    for body in (b"\xff" * 64, deep, b"\x08" + b"\xff" * 11, b"\x0b" * 200):
        if len(body) > limit:
            continue
        code, _ = peers.call(where, rpc, body)
        assert code in (0, PROTOCOL), (body, code)          # 0: unknown fields are skipped, as protobuf has it
    assert peers.call(where, "SUBMIT", b"\xff\xff\xff")[0] == PROTOCOL
    with Wire(where) as w:                                  # nobody: nothing but a ping
        assert w.call(rpc)[0] == AUTH
    assert peers.call(where, rpc)[0] == 0


# What alice may reach of a job that is root's: call, message, the codes that say no. Reads that are everybody's are in READS.
def theirs(job, step):
    sets = [{1: "TimeLimit", 2: "1"}]
    return {
        "SCRIPT": ({1: job}, {DENIED}), "KILL": ({1: [str(job)]}, {DENIED}), "WAIT": ({1: job, 2: 1}, {DENIED}), "ALLOC_INFO": ({1: job}, {DENIED}),
        "JOB_UPDATE": ({1: [str(job)], 4: sets}, {DENIED, USER_ID}), "STEP_CREATE": ({1: {1: job, 5: 1}}, {DENIED}), "STEP_DONE": ({1: job, 2: step, 3: 0}, {DENIED}),
        "JOB_DONE": ({1: job, 2: 0}, {DENIED}), "STEP_LAYOUT": ({1: job, 2: step}, {DENIED}), "BCAST_CRED": ({1: job}, {DENIED}),
        "NODE_UPDATE": ({1: "node-1", 2: [{1: "State", 2: "DOWN"}]}, {DENIED}), "PART_UPDATE": ({1: "main", 2: [{1: "State", 2: "DOWN"}]}, {DENIED}),
        "RECONFIGURE": ({}, {DENIED}), "LOG_SET": ({1: 9}, {DENIED}), "CRONTAB_GET": ({1: 0}, {USER_ID}), "CRONTAB_SET": ({1: 0, 2: "@daily x"}, {USER_ID}), "STEPS_DRAIN": ({1: job}, {DENIED}), "SHUTDOWN": ({}, {DENIED}), "RESV_UPDATE": ({1: 1, 3: [{1: "Nodes", 2: "node-1"}, {1: "StartTime", 2: "1"}, {1: "Duration", 2: "1"}, {1: "Users", 2: "root"}]}, {DENIED, USER_ID}),
        "SUBMIT": ({1: {1: "as-root"}, 4: bytes(16), 440: 0}, {DENIED}),   # as_uid
        "NODE_REGISTER": ({1: {1: "node-1"}}, {DENIED}), "NODE_EVENT": ({1: "node-1", 2: [{1: 1, 2: job, 4: 0}]}, {DENIED}),
    }


READS = {"PING", "JOB_LIST", "STEP_LIST", "NODE_LIST", "PART_LIST", "CONFIG_SHOW", "DIAG", "RESV_LIST", "LICENSE_LIST", "PRIO_LIST", "ACCT_STATE", "WHY", "TOPOLOGY_LIST", "CONF_FETCH"}
JOB_OPS = {"HOLD": 1, "UHOLD": 2, "RELEASE": 3, "REQUEUE": 4, "REQUEUE_HOLD": 5, "SUSPEND": 6, "RESUME": 7, "TOP": 8, "NOTIFY": 9}


@pytest.fixture(scope="module")
def victim(cluster):
    """A running job of root's with a step, and a word in its script that nobody else may see."""
    with open(os.path.join(cluster.work, "roots.sh"), "w") as f:
        f.write("#!/bin/sh\ntrue secret-of-root\nsrun sleep 300\n")
    job = cluster.submit("-N2 -o /dev/null roots.sh", env=dict(KEY="secret-of-root"))
    cluster.wait("its step", lambda: f"{job}.0" in cluster.out("squeue -s -h -o %i").split())
    yield job
    cluster.run(f"scancel {job}")
    cluster.wait_idle()


def codes(answer):
    """All codes in an answer: of the frame, of the message, of the results in it."""
    code, body = answer
    if code:
        return {code}
    found = {c for c in fields(body).get(1, []) if isinstance(c, int)}
    for item in fields(body).get(1, []):
        if isinstance(item, bytes):
            inner = fields(item)
            found |= {c for c in inner.get(1, []) + inner.get(2, []) if isinstance(c, int)}
    return found


def test_every_call_on_what_is_anothers(cluster, peers, victim, alice):
    table = theirs(victim, 0)
    mine = {name for name in RPC if not name.startswith(("D_", "DB_"))}
    covered = set(table) | READS | {"JOB_OP"}
    assert mine - covered == set(), "calls that this test does not know: may alice make them on bob's jobs?"
    before = cluster.run(f"scontrol show job {victim}").out
    for name, (message, no) in table.items():
        got = codes(peers.call(peers.ctld, name, message, uid=alice))
        assert got & no and 0 not in got, f"{name}: {got}"
    for name, op in JOB_OPS.items():
        got = codes(peers.call(peers.ctld, "JOB_OP", {1: op, 2: str(victim), 3: "hello"}, uid=alice))
        assert got & {DENIED, USER_ID} and 0 not in got, f"{name}: {got}"
    assert cluster.node_state("node-1") == cluster.node_state("node-2") != "down"
    steady = [line for line in before.splitlines() if "RunTime" not in line]
    assert [line for line in cluster.run(f"scontrol show job {victim}").out.splitlines() if "RunTime" not in line] == steady


def test_reads_tell_no_secrets(peers, victim, alice):
    for name in sorted(READS):
        code, body = peers.call(peers.ctld, name, {}, uid=alice)
        assert code == (CONFIGLESS_OFF if name == "CONF_FETCH" else 0), name
        assert b"secret-of-root" not in body, f"{name} tells what is in another's script"
    assert b"secret-of-root" in peers.call(peers.ctld, "SCRIPT", {1: victim})[1]


def test_kill_by_filters_takes_only_ones_own(cluster, peers, victim, alice):
    for message in ({6: "root"}, {7: 0}, {8: "main"}, {11: "RUNNING"}, {12: "node-1"}, {}):
        peers.call(peers.ctld, "KILL", message, uid=alice)
    assert cluster.state(victim) == "RUNNING"


def test_every_call_of_slurmd(peers, victim, alice):
    daemon = {"D_PROLOG": {1: victim, 2: 0, 3: {1: victim, 6: 0, 7: 0, 10: 1}}, "D_PING": {}, "D_BATCH": {1: b"x", 2: b"y"}, "D_SIGNAL": {1: victim, 3: 9}, "D_TERMINATE": {1: victim, 2: 0}, "D_SUSPEND": {1: victim, 2: 1},
              "D_NOTIFY": {1: victim, 3: "x"}, "D_JOB_MEM": {1: victim, 2: 0, 3: 1}, "D_REBOOT": {}, "D_LOG_SET": {1: 3}, "D_RECONFIG": {}, "D_SHUTDOWN": {}}
    user = {"D_ATTACH": ({1: victim, 2: 0, 3: "127.0.0.1", 4: 1, 5: bytes(32)}, {DENIED}), "D_LAUNCH": ({1: {1: b"x", 2: bytes(64)}}, {CRED}),
            "D_STAT": ({1: victim, 2: 0}, {DENIED, USER_ID}), "D_RELAY": ({600: b"x", 601: b"y", 602: "node-1"}, {AUTH})}
    harmless = {"D_INFO"}   # which steps run on the node, and what the node is
    assert {name for name in RPC if name.startswith("D_")} == set(daemon) | set(user) | harmless
    for name, message in daemon.items():
        assert peers.call(peers.slurmd, name, message, uid=alice)[0] == DENIED, name
    for name, (message, no) in user.items():
        assert codes(peers.call(peers.slurmd, name, message, uid=alice)) & no, name
    assert codes(peers.call(peers.slurmd, "D_BATCH", {1: b"x", 2: bytes(64)})) & {CRED, PROTOCOL}, "root is no slurmctld either"


def test_every_call_of_slurmdbd(cluster, peers, alice):
    assert {name for name in RPC if name.startswith("DB_")} == {"DB_PING", "DB_SEND", "DB_JOBS", "DB_ACCT_GET", "DB_ACCT_SET"}
    assert peers.call(peers.dbd, "DB_SEND", {1: peers.name}, uid=alice)[0] == DENIED
    assert peers.call(peers.dbd, "DB_JOBS", {}, uid=alice)[0] == 0
    assert peers.call(peers.dbd, "DB_ACCT_GET", {}, uid=alice)[0] == 0
    assert peers.call(peers.dbd, "DB_ACCT_SET", {1: 0}, uid=alice)[0] == DENIED
    assert peers.call(peers.dbd, "SUBMIT", b"")[0] in (PROTOCOL, 1013)


def credential(cluster, peers, uid, job):
    """What slurmctld signs for a step of one task on node-1."""
    code, body = peers.call(peers.ctld, "STEP_CREATE", {1: {1: job, 3: 1, 4: 1, 5: 1, 8: "node-1", 11: 1}}, uid=uid)
    rsp = fields(body)
    assert code == 0 and rsp[1] == [0], body
    sealed = fields(rsp[5][0])
    return rsp[3][0], sealed[1][0], sealed[2][0]


def launch(peers, cred, sig, uid, argv=("/bin/touch", "/nonexistent/x"), where=None, bound=None, key=None):
    """The codes with which slurmd answers."""
    body = pb({1: {1: cred, 2: sig}, 2: list(argv), 4: "/tmp", 8: "/dev/null", 10: "none"})
    bound = hashlib.blake2b(body, digest_size=32).digest() if bound is None else bound
    return codes(peers.call(where or peers.slurmd, "D_LAUNCH", body, uid=uid, bound=bound, key=key))


def test_launch_credentials(cluster, peers, user, alice, mallory, victim):
    job = int(cluster.out("salloc --no-shell -N1 -n1 -w node-1 2>&1 | grep -o '[0-9]*$' | head -1", user=user))
    evidence = os.path.join(cluster.work, "launched")
    argv = ("/bin/touch", evidence)
    try:
        step, cred, sig = credential(cluster, peers, alice, job)
        other = bytearray(sig)
        other[3] ^= 1
        assert launch(peers, cred, bytes(other), alice, argv) == {CRED}
        for at in range(0, len(cred), max(1, len(cred) // 40)):   # a bit of it changed: another user, node, CPU, time
            changed = bytearray(cred)
            changed[at] ^= 1
            assert launch(peers, bytes(changed), sig, alice, argv) == {CRED}, at
        assert launch(peers, cred, sig, mallory, argv) == {DENIED}, "stolen"
        assert launch(peers, cred, sig, 0, argv) == {DENIED}, "not even root launches as alice"
        assert launch(peers, cred, sig, alice, argv, bound=bytes(32)) == {DENIED}, "a token made for something else"
        assert launch(peers, cred, sig, alice, argv, key=os.urandom(32)) == {AUTH}
        node_2 = (peers.slurmd[0].rsplit(".", 1)[0] + ".2", peers.slurmd[1])
        assert launch(peers, cred, sig, alice, argv, where=node_2) == {CRED}, "it is for node-1"
        assert not os.path.exists(evidence)
        assert launch(peers, cred, sig, alice, argv) == {0}, "the right one is refused: this test proves nothing"
        cluster.wait("it ran", lambda: os.path.exists(evidence))
        assert os.stat(evidence).st_uid == alice
        assert launch(peers, cred, sig, alice, argv) == {CRED}, "used a second time"
        fields_of_root = peers.call(peers.ctld, "STEP_CREATE", {1: {1: victim, 3: 1, 4: 1, 5: 1, 11: 1}}, uid=alice)
        assert codes(fields_of_root) == {DENIED}
    finally:
        cluster.run(f"scancel {job}", check=False)


def test_users_who_do_not_read_stop_nobody(cluster, peers, alice):
    """Twenty who ask for a long list of jobs again and again and take nothing of it; others are served, and slurmctld stays small."""
    cluster.run("for i in $(seq 200); do sbatch -Q --hold -J unread --comment=$(printf %01000d 0) -o /dev/null --wrap true; done")
    pid = int(re.search(r"slurmctld +up +(\d+)", cluster.out("berth status"))[1])

    def rss():
        return int(re.search(r"VmRSS:\s+(\d+)", cluster.read(f"/proc/{pid}/status"))[1])
    before, held = rss(), []
    try:
        for _ in range(20):
            w = Wire(peers.ctld, peers.token(alice))
            w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            w.sock.setblocking(False)
            for _ in range(300):
                data = w.frame("JOB_LIST", pb({3: 1, 6: 1}))
                try:
                    w.sock.send(data)
                except BlockingIOError:
                    break
            held.append(w)
        started = time.monotonic()
        assert cluster.out("srun -w node-1 -n1 echo here") == "here"
        assert time.monotonic() - started < 20
        assert rss() - before < 400 * 1024, "what they do not read piles up"
    finally:
        for w in held:
            w.close()
    cluster.run("scancel -n unread")
    assert peers.call(peers.ctld, "PART_LIST")[0] == 0


def hung_up(s):
    """The other side has closed, with or without having read all."""
    try:
        return s.recv(100) == b""
    except ConnectionError:
        return True


def test_more_strangers_than_connections(cluster, peers, alice):
    """slurmctld with few descriptors: idle strangers, and users who only hold connections open, give way to those who want something."""
    cluster.berth("kill slurmctld")
    cluster.run("ulimit -n 700; berth start slurmctld")
    cluster.wait("it answers", lambda: cluster.run("sinfo -h", check=False).rc == 0)
    held = []
    try:
        for i in range(600):
            s = socket.create_connection(peers.ctld, timeout=10)
            s.sendall(HEAD.pack(b"BRTH", 1, 1, 5, 1, 100, 0, 10, 0, bytes(16))[:1 + i % 39])
            held.append(s)
        assert cluster.out("srun -n1 echo here") == "here"
        for i in range(600):
            w = Wire(peers.ctld, peers.token(alice))
            held.append(w)
            assert w.call("PART_LIST")[0] == 0
        assert cluster.out("srun -n1 echo here") == "here"
    finally:
        for s in held:
            s.close()
        cluster.berth("kill slurmctld")
        cluster.berth("start slurmctld")
        cluster.wait("it answers", lambda: cluster.run("sinfo -h", check=False).rc == 0)


def test_token_socket(cluster, peers, user, alice):
    """sackd answers each with the uid that the kernel tells, whatever is asked; junk, halves and idlers do not stop others."""
    path = f"{cluster.home}/run/sack.socket"
    held = []
    for i in range(300):
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        s.sendall(b"SACK\1\0\0\0"[:i % 9])
        held.append(s)
    for junk in (b"\0" * 40, os.urandom(40), b"SACK\x09" + bytes(35), b"GET / HTTP/1.1\r\n\r\n" * 10):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(path)
            s.sendall(junk)
            assert hung_up(s), junk
    assert cluster.out("srun -n1 id -u", user=user) == str(alice)
    for s in held:
        s.close()


def listening_ports(pid):
    """Ports on which a process listens: sockets in its /proc/PID/fd that /proc/net/tcp lists as listening."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    ports = []
    with open("/proc/net/tcp") as f:
        for line in f.readlines()[1:]:
            word = line.split()
            if word[3] == "0A" and word[9] in inodes:
                ip, port = word[1].split(":")
                ports.append((socket.inet_ntoa(bytes.fromhex(ip)[::-1]), int(port, 16)))
    return [("127.0.0.1" if ip == "0.0.0.0" else ip, port) for ip, port in ports]


def frame_io(kind, task, body, size=None):
    return struct.pack(">BII", kind, task, len(body) if size is None else size) + body


def strangers_at(where, job, want=400):
    """Junk, halves, lies and many who say nothing at a port of srun or slurmstepd. Returns what must be closed at the end."""
    hello = pb({1: job, 2: 0, 3: "node-1", 4: 0, 5: bytes(32)})
    for data in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(9), os.urandom(100000), frame_io(1, 0, hello), frame_io(1, 0, b"\xff" * 100), frame_io(5, 0, b"forged output\n"),
                 frame_io(8, 0, pb({1: [0], 2: 0})), frame_io(12, 0, b""), frame_io(1, 0, b"", size=2**32 - 1), frame_io(1, 0, b"", size=200000), struct.pack(">IBII", 2**31, 1, 0, 0)):
        with socket.create_connection(where, timeout=5) as s:
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
            except OSError:
                continue                       # it hung up while we still talked
            assert hung_up(s), data[:20]
    held = []
    for i in range(want):
        s = socket.create_connection(where, timeout=5)
        try:
            s.sendall(frame_io(1, 0, hello)[:i % 20] if i % 2 else frame_io(1, 0, bytes(180000), size=200000))
        except OSError:
            pass
        held.append(s)
    return held


def test_ports_of_srun(cluster, peers):
    """Strangers at the port where srun waits for its slurmstepds: nothing of theirs is printed or believed, nor does the step end."""
    p = subprocess.Popen(["srun", "-N2", "-n2", "-l", "bash", "-c", "while [ ! -e srun-go ]; do sleep 0.1; done; echo own output"], cwd=cluster.work, env=cluster.env(),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    try:
        cluster.wait("its step", lambda: any(j.endswith(".0") for j in cluster.out("squeue -s -h -o %i -n bash").split()))
        job = int(cluster.out("squeue -s -h -o %i -n bash").split(".")[0])
        ports = cluster.wait("a port of srun", lambda: listening_ports(p.pid))
        held = [s for where in ports for s in strangers_at(where, job)]
        size = int(re.search(r"VmRSS:\s+(\d+)", cluster.read(f"/proc/{p.pid}/status"))[1])
        assert size < 24 * 1024, f"srun has grown to {size} KiB: strangers cost too much"
        cluster.run("touch srun-go")
        out, err = p.communicate(timeout=60)
        assert sorted(out.splitlines()) == ["0: own output", "1: own output"] and p.returncode == 0, (out, err)
        for s in held:
            s.close()
    finally:
        cluster.run("touch srun-go")
        p.kill()


def slurmstepds(home, job):
    """Process ids of the slurmstepds of a job's step 0: those that hold its socket in a spool of this cluster as their folder."""
    found = []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{p}/comm") as f:
                folder = os.readlink(f"/proc/{p}/cwd")
                if f.read().strip() == "slurmstepd" and f"{home}/" in folder and f"step.{job}.0" in os.listdir(f"/proc/{p}/cwd"):
                    found.append(int(p))
        except OSError:
            continue
    return found


def test_port_between_slurmstepds(cluster, peers):
    """An MPI step over two nodes: its slurmstepds wait for each other on a port of their own. Strangers there learn and change nothing."""
    wait = "while [ ! -e mpi-go ]; do sleep 0.1; done"
    p = subprocess.Popen(["srun", "--mpi=pmi2", "-J", "mpistep", "-N2", "-n2", "bash", "-c", wait + "; echo own"], cwd=cluster.work, env=cluster.env(),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    try:
        job = int(cluster.wait("its step", lambda: cluster.out("squeue -s -h -o %i -n mpistep"), 10).split(".")[0])
        found = cluster.wait("a port", lambda: [w for pid in slurmstepds(cluster.home, job) for w in listening_ports(pid)], 10)
        held = [s for where in set(found) for s in strangers_at(where, job)]
        cluster.run("touch mpi-go")
        out, err = p.communicate(timeout=60)
        assert out.split() == ["own", "own"] and p.returncode == 0, (out, err)
        for s in held:
            s.close()
    finally:
        cluster.run("touch mpi-go")
        p.kill()


def test_socket_of_slurmstepd(cluster, peers, user, victim):
    """Only root speaks to a slurmstepd, and what makes no sense does not end the step."""
    path = cluster.out(f"find $BERTH_DIR -name 'step.{victim}.0' | head -1")
    assert path
    got = cluster.run(f"python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"{path}\")'", user=user, check=False)
    assert got.rc and "Permission denied" in got.err
    for data in (os.urandom(4096), b"\xff\xff\xff\xff", struct.pack(">I", 5) + b"\xff" * 5, struct.pack(">I", 1 << 20), struct.pack(">I", 2) + pb({1: 99})):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            s.sendall(data)
    assert cluster.state(victim) == "RUNNING"
    assert f"{victim}.0" in cluster.out("squeue -s -h -o %i").split()
