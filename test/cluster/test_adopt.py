"""PrologFlags=Contain: the extern step of a job, and ssh sessions that pam_slurm_adopt takes into it. A real sshd with real PAM, in a mount namespace of its own.
What the commands show was recorded on 26.05.5."""
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

from conftest import BUILD

CLUSTER = dict(nodes=2, cpus=4, gpus=0, extra_conf="PrologFlags=Contain\nNamespaceType=namespace/tmpfs\nKillWait=2\n")
MODULE = f"{BUILD}/src/pam/pam_slurm_adopt.so"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="slurmd and sshd as root")


class Sshd:
    """sshd on this machine, for a node: its account stack is our module alone."""

    def __init__(self, cluster, user):
        self.cluster, self.user, self.dir = cluster, user, f"{cluster.dir}/ssh"
        os.makedirs(f"{self.dir}/pam.d")
        for name in ("host", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{self.dir}/{name}"], check=True)
        shutil.copy(f"{self.dir}/key.pub", f"{self.dir}/authorized")
        os.chmod(f"{self.dir}/authorized", 0o644)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        with open(f"{self.dir}/config", "w") as f:
            f.write(f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.dir}/host\nAuthorizedKeysFile {self.dir}/authorized\nStrictModes no\n"
                    f"UsePAM yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPidFile none\nLogLevel DEBUG1\n")
        self.options()
        os.makedirs("/run/sshd", exist_ok=True)
        self.log = open(f"{self.dir}/log", "w")
        self.process = subprocess.Popen(["unshare", "-m", "sh", "-c", f"mount --bind {self.dir}/pam.d /etc/pam.d && exec /usr/sbin/sshd -D -e -f {self.dir}/config"],
                                        env=cluster.env(), stderr=self.log, stdin=subprocess.DEVNULL)
        cluster.wait("sshd", lambda: "listening" in cluster.read(f"{self.dir}/log"))

    def options(self, words=""):
        with open(f"{self.dir}/pam.d/sshd", "w") as f:
            f.write(f"auth required pam_permit.so\nsession required pam_permit.so\n"
                    f"account required {MODULE} nodename=node-1 action_adopt_failure=deny action_generic_failure=deny {words}\naccount required pam_permit.so\n")

    def argv(self, command):
        return ["ssh", "-p", str(self.port), "-i", f"{self.dir}/key", "-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={self.dir}/known", "-o", "LogLevel=INFO",
                f"{self.user}@127.0.0.1", command]

    def run(self, command):
        return self.cluster.run(self.argv(command), check=False)

    def start(self, command):
        return subprocess.Popen(self.argv(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture(scope="module")
def sshd(cluster, user):
    if not os.path.exists(MODULE) or not shutil.which("sshd", path="/usr/sbin"):
        pytest.skip("libpam0g-dev or openssh-server is not installed (deps.sh mpi)")
    with open(f"{cluster.home}/etc/job_container.conf", "w") as f:
        f.write(f"AutoBasePath=true BasePath={cluster.dir}/private-%n Dirs=/var/tmp\n")
    for node in ("node-1", "node-2"):
        slurmd_again(cluster, node)
    s = Sshd(cluster, user)
    yield s
    s.process.terminate()
    s.process.wait()


@pytest.fixture
def job(cluster, sshd, user):
    """One that runs on both nodes until it is ended, its extern step ready."""
    job = cluster.submit("-N2 -t5 -o /dev/null --wrap 'sleep 300'", user=user)
    cluster.wait_state(job, "RUNNING")
    yield job
    cluster.run(f"scancel {job}", check=False)
    cluster.wait_end(job)
    cluster.wait_idle()


def slurmd_pid(cluster, node):
    return int(cluster.out(f"scontrol show slurmd {node} | sed -n 's/^Slurmd PID *= //p'"))


def slurmd_again(cluster, node):
    pid = slurmd_pid(cluster, node)
    os.kill(pid, signal.SIGKILL)
    cluster.wait("slurmd gone", lambda: not os.path.exists(f"/proc/{pid}") or "Z" in open(f"/proc/{pid}/stat").read().rsplit(")")[-1][:3])
    cluster.run(f"slurmd -N {node}")
    cluster.wait("slurmd back", lambda: cluster.run(f"scontrol show slurmd {node}", check=False).rc == 0)


def pids(cluster, job, node="node-1"):
    rows = [line.split() for line in cluster.out(f"scontrol listpids {job}.extern {node}").splitlines()[1:]]
    return [int(r[0]) for r in rows if r[0] != "-1"]


def test_step_is_shown(cluster, job, user):
    rows = cluster.out(f"squeue -h -s -j {job} -o '%i|%j|%P|%u|%N|%A'").splitlines()
    assert f"{job}.extern|extern|main|{user}|node-[1-2]|2" in rows
    shown = cluster.out(f"scontrol show step {job}.extern")
    assert re.sub(r"Time=\S+T\S+", "Time=T", shown) == (
        f"StepId={job}.extern UserId={shown.split('UserId=')[1].split()[0]} StartTime=T TimeLimit=UNLIMITED\n   State=RUNNING Partition=main NodeList=node-[1-2]\n"
        "   Nodes=2 CPUs=0 Tasks=2 Name=extern Network=(null)\n   TRES=(null)\n   ResvPorts=(null)\n   CPUFreqReq=Default\n   SrunHost:Pid=(null):0")
    assert cluster.out(f"scontrol listpids {job}.extern node-2").splitlines()[1].split() == ["-1", str(job), "extern", "0", "1"]
    assert "extern" in cluster.out("scontrol liststeps node-2")
    assert cluster.out(f"sstat -n -P -a -j {job} -o JobID,NTasks").splitlines()[0] == f"{job}.extern|2"
    assert cluster.run(f"scancel {job}.extern", check=False).err == f"scancel: error: Invalid job id {job}.extern\n"


def test_step_ends_with_its_job(cluster, sshd, user):
    job = cluster.submit("-N2 -o /dev/null --wrap 'exit 3'", user=user)
    cluster.wait_end(job)
    cluster.wait_idle()
    row = cluster.out(f"sacct -n -P -j {job} -o JobID,JobName,State,ExitCode,AllocCPUS,NNodes,NTasks,NodeList")
    assert f"{job}.extern|extern|COMPLETED|0:0|2|2|2|node-[1-2]" in row.splitlines()
    assert cluster.out(f"sacct -n -P -j {job}.extern -o AllocTRES") == cluster.out(f"sacct -X -n -P -j {job} -o AllocTRES")
    assert cluster.out("squeue -h -s") == ""
    alone = cluster.run("salloc -N2 -Q squeue -h -s -o %i:%N", user=user).out.split()
    assert len(alone) == 1 and re.fullmatch(r"\d+\.extern:node-\[1-2\]", alone[0])
    cluster.wait_idle()


def test_no_job_no_session(cluster, sshd):
    done = sshd.run("id")
    assert done.rc == 255 and "Access denied by pam_slurm_adopt: you have no active jobs on this node" in done.err


def test_a_session_is_taken_in(cluster, sshd, job):
    session = sshd.start("echo $$; cat /proc/self/cgroup; exec sleep 300")
    pid = int(session.stdout.readline())
    cluster.wait("its processes", lambda: pid in pids(cluster, job))
    cluster.run(f"test -d /proc/{pid}")
    assert re.match(rf"Slurm JobId={job}.extern ends at ", cluster.run(f"SLURMD_NODENAME=node-1 scontrol pidinfo {pid}").out)
    usage = cluster.out(f"sstat -n -P -j {job}.extern -o MaxRSS")
    assert usage not in ("", "0")
    slurmd_again(cluster, "node-1")            # it is taken over, with all that is in it
    cluster.wait("its processes", lambda: pid in pids(cluster, job))
    cluster.run(f"scancel {job}")
    session.wait(60)
    cluster.wait("its process", lambda: not os.path.exists(f"/proc/{pid}"))


def test_what_does_not_end_is_killed(cluster, sshd, job):
    session = sshd.start("trap '' TERM HUP; echo $$; while :; do sleep 1; done")
    pid = int(session.stdout.readline())
    cluster.run(f"scancel {job}")
    session.wait(60)
    cluster.wait("its process", lambda: not os.path.exists(f"/proc/{pid}"))


def test_private_folders_are_joined(cluster, sshd, job, user):
    cluster.run(f"srun --jobid={job} --overlap -N1 -w node-1 sh -c 'echo mine > /var/tmp/of-the-job'", user=user)
    assert sshd.run("cat /var/tmp/of-the-job").out == "mine\n"
    sshd.options("join_container=false")
    assert sshd.run("cat /var/tmp/of-the-job").rc == 1
    sshd.options()
    assert not os.path.exists("/var/tmp/of-the-job")


def test_newest_of_several(cluster, sshd, job, user):
    older = job
    newer = cluster.submit("-w node-1 -t5 -o /dev/null --wrap 'sleep 300'", user=user)
    cluster.wait_state(newer, "RUNNING")
    session = sshd.start("echo $$; exec sleep 300")
    pid = int(session.stdout.readline())
    assert pid in pids(cluster, newer) and pid not in pids(cluster, older)
    sshd.options("action_unknown=deny")
    done = sshd.run("id")
    assert done.rc == 255 and "you have multiple jobs on this node" in done.err
    sshd.options("action_unknown=allow")
    assert int(sshd.run("echo $$").out) not in pids(cluster, newer)
    sshd.options("service=login action_unknown=deny")           # not ours: nothing is decided
    assert sshd.run("echo in").out == "in\n"
    sshd.options()
    cluster.run(f"scancel {newer}")
    session.wait(60)


def test_options(cluster, sshd):
    sshd.options("action_no_jobs=ignore")
    assert sshd.run("echo in").out == "in\n"
    sshd.options("nodename=nowhere")
    assert "this node's slurmd cannot be asked" in sshd.run("echo in").err
    sshd.options("nodename=nowhere action_generic_failure=ignore")
    assert sshd.run("echo in").out == "in\n"
    sshd.options()


def test_further_options(cluster, sshd, job):
    """Each with the session inside or refused; what is misspelled leaves the default."""
    sshd.options("nodename=nowhere action_generic_failure=allow")
    assert sshd.run("echo in").out == "in\n"
    for words in ("service=*", "service=sshd log_level=debug3 disable_x11=1 join_container=true", "disable_x11=0 log_level=quiet action_no_jobs=perhaps no_such_option=1"):
        sshd.options(words)
        session = sshd.start("echo $$; exec sleep 300")
        pid = int(session.stdout.readline())
        assert pid in pids(cluster, job), words
        os.kill(pid, signal.SIGKILL)
        session.wait(60)
    sshd.options()


def test_an_adoption_that_fails(cluster, sshd, job):
    """Of a job whose private folders are gone: refused, or let in outside of it (action_adopt_failure)."""
    keepers = [int(p) for p in cluster.out(f"pgrep -f '^slurmstepd: \\[{job}.extern\\]'").split() if f"{cluster.home}/" in os.readlink(f"/proc/{p}/cwd") and os.getsid(int(p)) != int(p)]
    assert len(keepers) == 2
    for p in keepers:
        os.kill(p, signal.SIGKILL)
    done = sshd.run("id")
    assert done.rc == 255 and "this session could not be adopted into any of your jobs" in done.err
    sshd.options("action_adopt_failure=allow")
    assert sshd.run("echo in").out == "in\n"
    sshd.options()


def test_killed_slurmstepd_leaves_nothing(cluster, sshd, job):
    session = sshd.start("echo $$; exec sleep 300")
    pid = int(session.stdout.readline())
    ours = [int(p) for p in cluster.out(f"pgrep -f '^slurmstepd: \\[{job}.extern\\]'").split() if f"{cluster.home}/" in os.readlink(f"/proc/{p}/cwd") and os.getsid(int(p)) == int(p)]
    assert len(ours) == 2      # without the processes that keep the job's private folders
    for p in ours:
        os.kill(p, signal.SIGKILL)
    session.wait(60)
    cluster.wait("its process", lambda: not os.path.exists(f"/proc/{pid}"))
    assert cluster.state(job) == "RUNNING"
    assert sshd.run("id").rc == 255


def test_prolog_first(cluster, sshd, user):
    """The extern step begins when the prolog is over."""
    hold = f"{cluster.work}/hold"
    with open(f"{cluster.work}/prolog", "w") as f:
        f.write(f"#!/bin/sh\nwhile [ -e {hold} ]; do sleep 0.05; done\n")
    os.chmod(f"{cluster.work}/prolog", 0o755)
    open(hold, "w").close()
    with open(f"{cluster.home}/etc/slurm.conf", "a") as f:
        f.write(f"Prolog={cluster.work}/prolog\n")
    cluster.run("scontrol reconfigure")
    job = cluster.submit("-N1 -w node-1 -o /dev/null --wrap 'sleep 300'", user=user)
    cluster.wait_state(job, "CONFIGURING")
    assert sshd.run("id").rc == 255
    slurmd_again(cluster, "node-1")            # it goes on with the prolog, and the step after it
    os.unlink(hold)
    cluster.wait_state(job, "RUNNING")
    cluster.wait("its extern step", lambda: f"{job}     " in cluster.run("scontrol liststeps node-1", check=False).out)
    assert sshd.run("echo in").out == "in\n"
    cluster.run(f"scancel {job}")
    cluster.wait_end(job)
