"""What `make install` puts beside the programs: the units of systemd, and a configuration to start from."""
import configparser
import os
import re
import shlex
import signal
import socket
import subprocess

import pytest

from conftest import BUILD, ROOT

CLUSTER = dict(nodes=1, gpus=0)
DAEMONS = {"slurmctld": "slurmctld", "slurmd": "node-1", "slurmdbd": "slurmdbd", "sackd": "sackd"}   # of the unit -> of `berth`


@pytest.fixture(scope="module")
def installed(cluster):
    there = os.path.join(cluster.work, "installed")
    build = os.environ.get("BERTH_BUILD", os.path.join(ROOT, "build"))
    cluster.run(["env", f"DESTDIR={there}", "meson", "install", "-C", build, "--no-rebuild", "--quiet"])
    return there


def found(installed, name):
    return next(os.path.join(root, name) for root, _, files in os.walk(installed) if name in files)


def unit_of(installed, daemon):
    parser = configparser.ConfigParser(interpolation=None, strict=True, delimiters=("=",))
    parser.optionxform = str
    parser.read(found(installed, f"{daemon}.service"))
    return parser


@pytest.mark.parametrize("daemon", DAEMONS)
def test_a_unit_starts_reloads_and_ends_its_daemon(cluster, installed, daemon):
    service = unit_of(installed, daemon)["Service"]
    assert service["Type"] == "notify" and service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    argv = shlex.split(service["ExecStart"])
    assert os.path.exists(installed + argv[0]), "the unit names a program that is installed"
    argv = [os.path.join(BUILD, "sbin", os.path.basename(argv[0])), *argv[1:], *(["-N", "node-1"] if daemon == "slurmd" else [])]
    cluster.berth(f"kill {DAEMONS[daemon]}")
    ears = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ears.bind("")       # a free name without a file: slurmctld tells it as SlurmUser
    ears.settimeout(30)
    with open(cluster.work + f"/{daemon}.out", "w") as out:
        process = subprocess.Popen(argv, env=dict(cluster.env(), NOTIFY_SOCKET="@" + ears.getsockname()[1:].decode()), cwd="/", stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        assert "READY=1" in ears.recv(4096).decode().split("\n")
        process.send_signal(signal.SIGHUP)
        assert cluster.wait("a job to run", lambda: cluster.run("srun -t1 true", check=False).rc == 0)
        assert process.poll() is None
        process.terminate()
        assert process.wait(30) == 0, cluster.read(f"{daemon}.out")
    finally:
        process.kill()
        process.wait()
        ears.close()
        cluster.berth(f"start {DAEMONS[daemon]}")
    cluster.wait_idle()


def test_units_are_what_systemd_knows(installed):
    """Where systemd's own checker is there: no unknown section, key or value."""
    try:
        subprocess.run(["systemd-analyze", "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("systemd-analyze is not installed")
    for daemon in DAEMONS:
        path = found(installed, f"{daemon}.service")
        seen = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True)
        ours = [line for line in seen.stderr.splitlines() if f"{daemon}.service" in line and "is not executable" not in line]
        assert not ours, ours


def test_sample_configuration_is_read(cluster, installed):
    """The whole of slurm.conf, gres.conf and cgroup.conf, and slurmdbd.conf but for its folder and user."""
    sample = os.path.dirname(found(installed, "gres.conf"))
    with open(f"{cluster.work}/one.swf", "w") as f:
        f.write("1 0 0 60 1 -1 -1 1 600 -1 1 1 1 1 1 1 -1 -1\n")
    seen = cluster.out(f"berth sim --conf {sample}/slurm.conf --trace {cluster.work}/one.swf --summary")
    assert re.search(r"^jobs 1 jobs$", seen, re.M) and re.search(r"^refused 0 jobs$", seen, re.M), seen
    text = open(f"{sample}/slurmdbd.conf").read()
    own = re.sub(r"(?m)^(StorageLoc|LogFile)=.*/", rf"\1={cluster.work}/", re.sub(r"(?m)^SlurmUser=.*", f"SlurmUser={os.geteuid()}", text))
    with open(f"{cluster.work}/slurmdbd.conf", "w") as f:
        f.write(own)
    os.chmod(f"{cluster.work}/slurmdbd.conf", 0o600)
    cluster.run(f"touch {cluster.work}/accounting.db && chmod 666 {cluster.work}/accounting.db")
    asked = cluster.run(f"slurmdbd -f {cluster.work}/slurmdbd.conf -u", check=False)
    assert asked.rc in (0, 1) and not re.search(r"error|fatal", asked.err), asked
