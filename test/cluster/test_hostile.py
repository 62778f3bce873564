"""Peers that mean harm, at real daemons: bytes that are no frames, thousands of half frames held open, absurd values in calls that are well-formed, users who reach for
what is not theirs. Each daemon refuses, says so, and serves everybody else meanwhile.
"""
import os
import resource
import socket
import struct

import pytest

CLUSTER = dict(nodes=2, cpus=4, gpus=2)


def ports(cluster):
    conf = cluster.read(f"{cluster.home}/etc/slurm.conf")
    ctld = int(next(line for line in conf.split("\n") if line.startswith("SlurmctldPort=")).split("=")[1])
    node = cluster.out("scontrol show node node-1 -o")
    addr = next(w for w in node.split() if w.startswith("NodeAddr=")).split("=")[1]
    port = next((w.split("=")[1] for w in node.split() if w.startswith("Port=")), None)
    if port is None:
        port = next(w.split("=")[1] for line in conf.split("\n") if line.startswith("NodeName") for w in line.split() if w.startswith("Port="))
    return [("127.0.0.1", ctld), (addr, int(port))]


def say(where, data, limit=5):
    with socket.create_connection(where, timeout=limit) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        got = b""
        try:
            while len(got) < 1 << 16:
                more = s.recv(4096)
                if not more:
                    break
                got += more
        except OSError:
            pass
        return got


def alive(cluster):
    assert cluster.run("scontrol ping").out
    assert cluster.out("srun -w node-1 echo here") == "here"


def head(rpc=2, flags=0, seq=1, token=0, body=0, version=1):
    """Near enough to a head to be looked at: magic, then numbers of all sizes."""
    return b"BRTH" + struct.pack(">HHIIIIQQ", version, rpc, flags, seq, token, body, 0, 0)


def test_bytes_that_are_no_frames(cluster):
    rnd = os.urandom
    junk = [b"", b"\0", b"GET / HTTP/1.1\r\n\r\n", b"BRTH", b"BRTH" + b"\xff" * 36, b"\0" * 40, rnd(40), rnd(4096), rnd(1 << 20), b"BRTH" * 100000]
    junk += [head(body=2**32 - 1), head(token=2**32 - 1), head(rpc=65535, body=10), head(token=100) + rnd(100), head(version=65535), head(rpc=24, token=64, body=4096) + rnd(4200)]
    for where in ports(cluster):
        for data in junk:
            try:
                say(where, data)
            except OSError:
                pass                           # it hangs up while we still talk
    alive(cluster)


def test_half_frames_held_open(cluster):
    want = 2000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < want + 200:
        pytest.skip(f"{hard} descriptors are too few for {want} connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (want + 200, hard))
    held = []
    try:
        for where in ports(cluster):
            for i in range(want // 2):
                s = socket.create_connection(where, timeout=10)
                s.sendall(head(body=100, token=50)[:1 + i % 39])
                held.append(s)
        alive(cluster)
        job = cluster.submit("-o /dev/null --wrap true")
        assert cluster.wait_end(job) == "COMPLETED"
    finally:
        for s in held:
            s.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    alive(cluster)


def test_absurd_values(cluster, user):
    absurd = [
        "sbatch -N 4294967295 --wrap true", "sbatch -n 2147483647 --wrap true", "sbatch -N 99999999999999999999 --wrap true", "sbatch -n -1 --wrap true",
        "sbatch --mem=18446744073709551615T --wrap true", "sbatch -t 99999999999999 --wrap true", "sbatch --array=0-4294967295 --wrap true",
        "sbatch -w 'n[0-99999999]' --wrap true", "sbatch -w 'n[[[[' --wrap true", "sbatch --gres=gpu:18446744073709551615 --wrap true",
        "sbatch -d afterok:4294967295 --wrap true", "scontrol show job 4294967295", "srun -n 4294967295 true",
        "sbatch --nice=99999999999 --wrap true", "sbatch -c 4294967295 --wrap true", "scontrol show node 'node-[1-99999999]'",
    ]
    for command in absurd:
        got = cluster.run(command, user=user, check=False)
        assert got.rc, f"{command} was taken: {got}"
        assert got.err or got.out, f"{command}: refused without a word"
    alive(cluster)


def test_environment_of_eight_megabytes(cluster, user):
    got = cluster.run("for i in $(seq 80); do export BIG_$i=$(head -c 100000 /dev/zero | tr '\\0' x); done; sbatch --parsable -o big-%j.txt --wrap 'env | wc -c'", user=user, check=False)
    if got.rc == 0:
        assert cluster.wait_end(int(got.out)) in ("COMPLETED", "FAILED")
    else:
        assert got.err
    alive(cluster)


def test_what_belongs_to_others(cluster, user):
    if os.geteuid():
        pytest.skip("needs root to be two people")
    job = cluster.submit("-N2 -o /dev/null --wrap 'sleep 300'")
    cluster.wait_state(job, "RUNNING")
    for command in (f"srun --jobid={job} --overlap id", f"scancel {job}", f"scontrol update jobid={job} timelimit=1", f"scontrol hold {job}", f"scontrol requeue {job}",
                    f"scontrol suspend {job}", f"scontrol write batch_script {job} -", "scontrol shutdown", "scontrol reconfigure",
                    "scontrol update nodename=node-1 state=down reason=x", f"scontrol notify {job} hello"):
        got = cluster.run(command, user=user, check=False)
        assert got.rc, f"{command}: {got}"
        assert "uid=0" not in got.out
    assert cluster.state(job) == "RUNNING"
    cluster.run(f"scancel {job}")
    cluster.wait_idle()


def test_output_through_a_link_into_roots_files(cluster, user):
    if os.geteuid():
        pytest.skip("needs root to be two people")
    secret = os.path.join(cluster.dir, "roots")
    with open(secret, "w") as f:
        f.write("untouched")
    os.chmod(secret, 0o600)
    cluster.run(f"ln -s {secret} link.txt && ln -s {secret} link-in.txt && ln -s {cluster.dir}/new-of-root.txt link-new.txt", user=user)
    for args in ("-o link.txt", "-o /dev/null -e link.txt", "-o link-new.txt", "-i link-in.txt -o got-%j.txt"):
        job = cluster.submit(f"{args} --wrap 'cat; echo overwritten'", user=user)
        assert cluster.wait_end(job) == "FAILED", args
    for args in ("-o link.txt", "-e link.txt", "-o link-new.txt", "-i link-in.txt"):
        assert cluster.run(f"srun {args} echo overwritten", user=user, check=False).rc, args
    assert cluster.read(secret) == "untouched"
    assert not os.path.exists(f"{cluster.dir}/new-of-root.txt")


def test_nothing_of_the_users_runs_as_root(cluster, user):
    if os.geteuid():
        pytest.skip("needs root to be two people")
    code = os.path.join(cluster.work, "spy.c")
    with open(code, "w") as f:
        f.write('#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n__attribute__((constructor)) static void look(void)\n'
                '{ int fd = open("' + cluster.work + '/spied", O_WRONLY | O_CREAT | O_APPEND, 0666); dprintf(fd, "%d %d %d\\n", (int)getuid(), (int)geteuid(), (int)getegid()); close(fd); }\n')
    if cluster.run(f"cc -shared -fPIC -o {cluster.work}/spy.so {code}", check=False).rc:
        pytest.skip("no compiler")
    cluster.run(f"touch spied && chmod 666 spied && cp /usr/bin/id own-id && chown {user} own-id && chmod 4755 own-id")
    uid = cluster.out("id -u", user=user)
    trick = {"LD_PRELOAD": f"{cluster.work}/spy.so", "LD_LIBRARY_PATH": cluster.work, "PATH": f"{cluster.work}:{cluster.env()['PATH']}", "BASH_ENV": f"{cluster.work}/nothing"}
    with open(os.path.join(cluster.work, "prolog.sh"), "w") as f:
        f.write("#!/bin/sh\nid -u >> prolog-ids\n")
    cluster.run(f"chmod 755 prolog.sh && touch prolog-ids && chmod 666 prolog-ids")
    before = " ".join(f"{k}={v}" for k, v in trick.items())    # not for the setpriv of this test
    got = cluster.out(f"{before} sbatch --parsable -o trick-%j.txt --export=ALL --wrap 'id -u; srun --task-prolog={cluster.work}/prolog.sh --task-epilog={cluster.work}/prolog.sh ./own-id -u'", user=user)
    job = int(got)
    assert cluster.wait_end(job) == "COMPLETED", cluster.read(f"trick-{job}.txt")
    assert set(cluster.read(f"trick-{job}.txt").split()) == {uid}
    assert set(cluster.read("prolog-ids").split()) == {uid}
    seen = cluster.read("spied").split("\n")
    assert [line for line in seen if line], "the library was never loaded"
    assert all(line.split()[:2] == [uid, uid] for line in seen if line), f"loaded by another than the user: {seen}"


def test_work_folder_taken_away(cluster, user):
    job = cluster.submit("-o /dev/null --wrap 'while [ ! -e wd-go ]; do sleep 0.1; done'", user=user)
    cluster.wait_state(job, "RUNNING")
    cluster.run("mkdir -m 777 gone")
    away = cluster.submit("-D gone -o /dev/null --begin=now+2 --wrap 'pwd'", user=user)
    cluster.run("rmdir gone && ln -s /root gone && touch wd-go")
    assert cluster.wait_end(away) in ("COMPLETED", "FAILED")
    assert cluster.wait_end(job) == "COMPLETED"
    alive(cluster)
