"""Daemons as an administrator starts them by hand, in the background: ready when the command returns, and what is wrong is said there."""
import os
import re
import socket

import pytest

CLUSTER = dict(nodes=1, cpus=2, gpus=0)


@pytest.fixture
def conf(cluster):
    """A configuration beside that of the cluster, for daemons started by hand; they are stopped at the end."""
    free = socket.create_server(("127.0.0.1", 0))
    port, folder = free.getsockname()[1], os.path.join(cluster.work, "hand")
    free.close()
    cluster.run(f"rm -rf {folder}; mkdir -p {folder}/etc && cp $BERTH_DIR/etc/slurm.key {folder}/etc && chown --reference=$BERTH_DIR/etc/slurm.key {folder}/etc/slurm.key")
    user = cluster.out("stat -c %U $BERTH_DIR/etc/slurm.key")
    path = f"{folder}/etc/slurm.conf"

    def write(**more):
        keys = dict(ClusterName="hand", SlurmctldHost=f"{socket.gethostname()}(127.0.0.1)", SlurmctldPort=port, SlurmUser=user, SlurmdUser=cluster.out("id -un"),
                    AuthInfo=f"sack={folder}/sack.socket", StateSaveLocation=f"{folder}/state", SlurmdSpoolDir=f"{folder}/spool", SlurmdPort=port + 1,
                    SlurmctldPidFile=f"{folder}/ctld.pid", SlurmdPidFile=f"{folder}/d.pid", SlurmdParameters="config_overrides")
        with open(path, "w") as f:
            f.writelines(f"{k}={v}\n" for k, v in {**keys, **more}.items())
            f.write("NodeName=one NodeAddr=127.0.3.1 CPUs=2 RealMemory=100\nPartitionName=all Nodes=ALL Default=YES\n")
        return path

    yield write
    cluster.run(f"for f in {folder}/*.pid; do [ -e $f ] && kill $(cat $f); done; true")


def test_daemon_is_ready_when_its_command_returns(cluster, conf):
    path = conf()
    assert cluster.run(f"slurmctld -f {path}").err == ""
    assert "is UP" in cluster.out("scontrol ping", env=dict(SLURM_CONF=path))
    assert cluster.run(f"slurmd -f {path} -N one").err == ""
    cluster.wait("its node", lambda: cluster.out("sinfo -h -o %T", env=dict(SLURM_CONF=path)) == "idle")
    assert cluster.out("srun hostname", env=dict(SLURM_CONF=path)) == socket.gethostname()


def test_daemon_that_cannot_start_says_why(cluster, conf):
    for daemon, key, value in (("slurmctld", "StateSaveLocation", "/nonesuch/state"), ("slurmctld", "SlurmctldPidFile", "/nonesuch/pid"),
                               ("slurmd -N one", "SlurmdSpoolDir", "/proc/nonesuch")):
        result = cluster.run(f"{daemon} -f {conf(**{key: value})}", check=False)
        assert result.rc == 1 and value.rsplit("/", 1)[0] in result.err and "fatal" in result.err, (daemon, key, result)
    again = cluster.run("slurmctld -f $SLURM_CONF", check=False)
    assert again.rc == 1 and "fatal" in again.err and ("running" in again.err or "in use" in again.err), again


@pytest.mark.parametrize("daemon", ["slurmctld", "slurmd", "slurmdbd", "sackd"])
def test_help_and_version_need_no_configuration(cluster, daemon):
    for option in ("--help", "-h"):
        got = cluster.run(f"{daemon} {option}", env={"SLURM_CONF": "/nonexistent"})
        assert got.out.lower().startswith("usage: " + daemon) and got.err == ""
    for option in ("--version", "-V"):
        assert re.fullmatch(r"slurm 26\.05\.\d+\n", cluster.run(f"{daemon} {option}", env={"SLURM_CONF": "/nonexistent"}).out)
    got = cluster.run(f"{daemon} --nonsense", check=False)
    assert got.rc == 1 and got.out == "" and "nonsense" in got.err


# Every option of the manual pages: what it does here, or that it is refused by its name.
REFUSED = {
    "slurmd": ["--authinfo x", "--ca-cert-file x", "--conf x", "--extra x", "-F", "-Ffeature", "--instance-id x", "--instance-type x", "--parameters x", "-Z"],
    "sackd": ["--ca-cert-file x", "--conf-server h", "--disable-reconfig", "--jwks-file x", "--port 5"],
}
HELP = {
    "slurmctld": "-c -D -f -h -i -L -n -r -R -s --systemd -v -V",
    "slurmd": "-b -c -C -d -D -f -G -h -L -M -n -N -s --systemd -v -V --conf-server",
    "slurmdbd": "-D -h -n -s -u -v -V",
    "sackd": "-D -f -h --key-file --systemd -v -V",
}


@pytest.mark.parametrize("daemon, option", [(d, o) for d, options in REFUSED.items() for o in options])
def test_option_that_does_not_work_is_refused_by_name(cluster, daemon, option):
    found = cluster.run(f"{daemon} {option}", check=False)
    name = option.split()[0][:2] if option[1] != "-" else option.split()[0]
    assert found.rc == 1 and name in found.err and "does not work yet" in found.err and not found.out


@pytest.mark.parametrize("daemon", HELP)
def test_options_of_the_manual(cluster, daemon):
    """All are told of by -h; what is none is named, and nothing starts."""
    text = cluster.run(f"{daemon} -h").out
    for option in HELP[daemon].split():
        assert re.search(rf"(^|[ ,]){re.escape(option)}\b", text, re.M), option
    assert re.match(r"slurm \S+\n$", cluster.run(f"{daemon} -V").out)
    for wrong in "--nonesuch", "-y", "word":
        found = cluster.run(f"timeout 20 {daemon} {wrong}", check=False)
        assert found.rc == 1 and wrong.lstrip("-") in found.err, (wrong, found)


def test_slurmdbd_says_whether_the_database_is_to_be_converted(cluster):
    found = cluster.run("slurmdbd -u")
    assert re.match(r"Slurm Database already at the highest version '\d+'. No conversion needed.\n$", found.out)
    cluster.run("cp $BERTH_DIR/etc/slurmdbd.conf old.conf; sed -i \"s|^StorageLoc=.*|StorageLoc=$PWD/old.db|\" old.conf; chmod 600 old.conf; : > old.db")
    old = cluster.run("slurmdbd -u -f old.conf", check=False)
    assert old.rc == 1 and "Conversion needed" in old.out and os.path.getsize(f"{cluster.work}/old.db") == 0     # only looked at
    gone = cluster.run("rm old.db; slurmdbd -u -f old.conf", check=False)
    assert gone.rc == 1 and "old.db" in gone.err and not os.path.exists(f"{cluster.work}/old.db")


def test_slurmd_locks_itself_in_memory(cluster, conf):
    if os.geteuid():
        pytest.skip("needs root")
    path = conf()
    cluster.run(f"slurmctld -f {path}")
    cluster.run(f"slurmd -M -f {path} -N one")
    pid = cluster.read("hand/d.pid").strip()
    assert int(re.search(r"VmLck:\s+(\d+)", open(f"/proc/{pid}/status").read())[1]) > 1000
    cluster.wait("its node", lambda: cluster.out("sinfo -h -o %T", env=dict(SLURM_CONF=path)) == "idle")
    assert cluster.out("srun hostname", env=dict(SLURM_CONF=path)) == socket.gethostname()
