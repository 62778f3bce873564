"""Real daemons on one machine: each test module gets a fresh local cluster (`berth up`) in its own folder.

Tests wait for a state with a limit (`cluster.wait`), never for a time. With USER set in the marker or module (CLUSTER_USER) the cluster
runs as that ordinary user. At the end nothing may be left: a process of the cluster that survives `berth down` fails the module.
"""
import atexit
import fcntl
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMIT = 60


def reachable_build():
    """The build folder; a copy of its programs where ordinary users could not run them (a checkout in root's home)."""
    build = os.environ.get("BERTH_BUILD", os.path.join(ROOT, "build"))
    parents = [build[:i] for i, c in enumerate(build + "/") if c == "/" and i]
    if os.geteuid() or all(os.stat(p).st_mode & 0o001 for p in parents):
        return build
    copy = tempfile.mkdtemp(prefix="berth-build-")
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    os.chmod(copy, 0o755)
    for folder in ("bin", "sbin", "libexec"):
        if os.path.isdir(os.path.join(build, folder)):
            shutil.copytree(os.path.join(build, folder), os.path.join(copy, folder), ignore=shutil.ignore_patterns("*.p", "*_test"))
    shutil.copytree(os.path.join(build, "src", "pmi"), os.path.join(copy, "lib"), symlinks=True, ignore=shutil.ignore_patterns("*.p"))
    return copy


BUILD = reachable_build()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def pmi_folder():
    """Where libpmi.so and libpmi2.so are, for ordinary users too."""
    folder = os.path.join(BUILD, "src", "pmi")
    return folder if os.path.isdir(folder) else os.path.join(BUILD, "lib")


class Result:
    def __init__(self, done):
        self.rc, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __repr__(self):
        return f"rc={self.rc}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Cluster:
    def __init__(self, directory, user=None, **options):
        self.dir, self.user, self.options = directory, user, options
        self.work = os.path.join(directory, "work")
        os.makedirs(self.work)
        os.chmod(directory, 0o755)
        os.chmod(self.work, 0o1777)
        if user:
            pw = pwd.getpwnam(user)
            os.chown(directory, pw.pw_uid, pw.pw_gid)
        self.home = os.path.join(directory, "c")

    def env(self):
        keep = {k: v for k, v in os.environ.items() if not re.match(r"S(LURM|BATCH|RUN|ALLOC|QUEUE|INFO|ACCT)_|SLURM", k)}
        path = f"{BUILD}/bin:{BUILD}/sbin:/usr/bin:/bin:/usr/sbin:/sbin"
        return dict(keep, PATH=path, SLURM_CONF=f"{self.home}/etc/slurm.conf", BERTH_DIR=self.home)

    def run(self, command, check=True, user=None, stdin=None, timeout=LIMIT, env=None, cwd=None):
        """Run a shell line (or argv list) where the cluster's commands are on PATH. check: non-zero exit fails the test."""
        argv = ["bash", "-c", command] if isinstance(command, str) else command
        user = user or self.user
        if user and os.geteuid() == 0:
            argv = ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--init-groups", "--reset-env",
                    "env", *[f"{k}={v}" for k, v in {**self.env(), **(env or {})}.items()], *argv]
        done = subprocess.run(argv, cwd=cwd or self.work, env={**self.env(), **(env or {})}, input=stdin,
                              stdin=None if stdin is not None else subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout, errors="replace")
        result = Result(done)
        if check:
            assert result.rc == 0, f"{command}: {result}"
        return result

    def out(self, command, **kw):
        return self.run(command, **kw).out.strip()

    def submit(self, args, **kw):
        return int(self.out(f"sbatch --parsable {args}", **kw).split(";")[0])

    def job(self, job_id, field):
        text = self.run(f"scontrol show job {job_id} -o", check=False).out
        found = re.search(rf"(?:^| ){re.escape(field)}=(.*?)(?= [A-Z][\w:/]*=|\n|$)", text)
        return found.group(1) if found else None

    def state(self, job_id):
        return self.job(job_id, "JobState")

    def wait(self, what, condition, limit=LIMIT):
        """Until condition() is true; its last value is returned. Fails after `limit` seconds, saying what was awaited."""
        end = time.monotonic() + limit
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > end:
                pytest.fail(f"waited {limit} s for: {what}\n" + self.trouble())
            time.sleep(0.05)

    def wait_state(self, job_id, *states, limit=LIMIT):
        return self.wait(f"job {job_id} in {states} (is {self.state(job_id)})", lambda: self.state(job_id) in states and self.state(job_id), limit)

    def wait_end(self, job_id, limit=LIMIT):
        over = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE", "PREEMPTED", "BOOT_FAIL")
        return self.wait_state(job_id, *over, limit=limit)

    def wait_idle(self):
        nodes = self.options.get("nodes", 4)
        return self.wait("all nodes idle", lambda: self.out("sinfo -h -t idle -p main -o %D") == str(nodes))

    def node_state(self, node):
        return self.out(f"sinfo -h -N -n {node} -p main -o %T")

    def read(self, name):
        path = name if os.path.isabs(name) else os.path.join(self.work, name)
        with open(path, errors="replace") as f:
            return f.read()

    def berth(self, args, **kw):
        return self.run(f"berth {args}", **kw)

    def trouble(self):
        logs = self.run("tail -n 15 $BERTH_DIR/log/*", check=False).out
        return self.run("squeue -a; sinfo -N -l", check=False).out[:2000] + logs[-4000:]

    def up(self):
        opts = " ".join(f"--{k} {v}" for k, v in self.options.items())
        return self.berth(f"up {opts}")

    def down(self):
        self.berth("down --purge", check=False)


def make(request, tmp_path_factory, user=None):
    options = dict(nodes=4, cpus=8, gpus=8)
    options.update(getattr(request.module, "CLUSTER", {}))
    extra = options.pop("extra_conf", None)
    directory = tempfile.mkdtemp(prefix="berth-test-")
    cluster = Cluster(directory, user, **options)
    if extra:
        path = os.path.join(directory, "extra.conf")
        with open(path, "w") as f:
            f.write(extra)
        cluster.options["conf"] = path
    cluster.up()
    return cluster


@pytest.fixture(scope="module")
def cluster(request, tmp_path_factory):
    c = make(request, tmp_path_factory)
    yield c
    if os.environ.get("BERTH_KEEP"):       # to look at its logs after a failure
        c.berth("down", check=False)
        return
    c.down()
    shutil.rmtree(c.dir, ignore_errors=True)


def add_user(name, *options):
    """Makes a user where it is missing. One test at a time: files run beside each other, and useradd does not wait for another."""
    with open(os.path.join(tempfile.gettempdir(), f"berth-useradd.{os.getuid()}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            pwd.getpwnam(name)
        except KeyError:
            subprocess.run(["useradd", *options, name], check=True, capture_output=True)


def ordinary_user():
    """An ordinary user for tests run as root: made where it is missing."""
    add_user("berthtest", "--create-home", "--shell", "/bin/bash")
    return "berthtest"


@pytest.fixture(scope="session")
def user():
    if os.geteuid() != 0:
        return pwd.getpwuid(os.getuid()).pw_name
    return ordinary_user()


@pytest.fixture(scope="module")
def user_cluster(request, tmp_path_factory, user):
    c = make(request, tmp_path_factory, user)
    yield c
    c.down()
    shutil.rmtree(c.dir, ignore_errors=True)
