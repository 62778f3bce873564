"""srun and sbatch --container: tasks in containers of an OCI runtime (crun), with a bundle made here. Form of the generated bundle: observed on 26.05.5."""
import glob
import json
import os
import shutil
import signal
import subprocess

import pytest

CLUSTER = dict(nodes=2, cpus=8, gpus=0)

# crun wants a cgroup v2 mount: where the machine has the older kinds it gets one of its own to look at.
RUNTIME = """#!/bin/sh
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then exec crun --cgroup-manager=disabled "$@"; fi
[ "$(id -u)" = 0 ] && map= || map=-r
exec unshare -m $map sh -c 'mount -t tmpfs none /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null; exec crun --cgroup-manager=disabled "$@"' crun "$@"
"""
OCI = """
EnvExclude="^(SLURM_CONF|SECRET)="
CreateEnvFile=newline
MountSpoolDir=/spool
RunTimeQuery="{run} --root={root}/%U state %n.%u.%j.%s.%t"
RunTimeKill="{run} --root={root}/%U kill --all %n.%u.%j.%s.%t"
RunTimeDelete="{run} --root={root}/%U delete --force %n.%u.%j.%s.%t; echo delete %j.%s.%t >> {root}/log"
"""
RUN = 'RunTimeRun="mkdir -p {root}/%U; {run} --root={root}/%U run --bundle %b %n.%u.%j.%s.%t"\n'
CREATE = ('RunTimeCreate="mkdir -p {root}/%U; {run} --root={root}/%U create --bundle %b %n.%u.%j.%s.%t"\n'
          'RunTimeStart="{run} --root={root}/%U start %n.%u.%j.%s.%t"\n')


def bundle_make(folder):
    """A bundle whose root has the host's /usr and nothing else of it."""
    root = f"{folder}/rootfs"
    for name in ("usr", "proc", "dev", "tmp", "sys", "spool"):
        os.makedirs(f"{root}/{name}")
    for name in ("bin", "lib", "lib64", "sbin"):
        os.symlink(f"usr/{name}", f"{root}/{name}")
    with open(f"{root}/inside", "w") as f:
        f.write("the root of the bundle\n")
    bind = [{"destination": d, "type": "none", "source": d, "options": ["rbind"]} for d in ("/usr", "/dev")]
    config = {"ociVersion": "1.0.0", "hostname": "inside",
              "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": ["/bin/sh", "-c", "exit 7"], "env": ["OF_THE_BUNDLE=1"], "cwd": "/"},
              "root": {"path": "rootfs", "readonly": False}, "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}] + bind,
              "linux": {"namespaces": [{"type": t} for t in ("pid", "uts", "user", "mount")]}}
    with open(f"{folder}/config.json", "w") as f:
        json.dump(config, f)
    os.chmod(f"{root}/tmp", 0o1777)


@pytest.fixture(scope="module")
def oci(cluster):
    if not shutil.which("crun"):
        pytest.skip("crun is not installed (deps.sh mpi)")
    folder = f"{cluster.work}/oci"
    os.makedirs(f"{folder}/bundle")
    os.chmod(folder, 0o1777)
    bundle_make(f"{folder}/bundle")
    with open(f"{folder}/run", "w") as f:
        f.write(RUNTIME)
    os.chmod(f"{folder}/run", 0o755)
    probe = subprocess.run([f"{folder}/run", f"--root={folder}/probe", "run", "--bundle", f"{folder}/bundle", "probe"], capture_output=True, text=True,
                           stdin=subprocess.DEVNULL)
    if probe.returncode != 7:          # of the bundle's own program: no runtime that fails ends so
        pytest.skip(f"crun cannot run here: {probe.stderr}")
    configured(cluster, RUN)
    return folder


def configured(cluster, more):
    folder = f"{cluster.work}/oci"
    with open(f"{cluster.home}/etc/oci.conf", "w") as f:
        f.write((OCI + more).format(run=f"{folder}/run", root=f"{folder}/state"))
    os.makedirs(f"{folder}/state", exist_ok=True)
    os.chmod(f"{folder}/state", 0o1777)
    cluster.run("scontrol reconfigure")


def nothing_left(cluster):
    spool = f"{cluster.home}/spool"
    left = [f"{n}/{f}" for n in os.listdir(spool) for f in os.listdir(f"{spool}/{n}") if f.startswith("oci-")]
    return not left


def test_step(cluster, oci):
    done = cluster.run(f"SECRET=1 srun -N2 -n2 -l --container {oci}/bundle sh -c 'hostname; cat /inside; echo $SLURM_PROCID $SECRET $OF_THE_BUNDLE $SLURM_CONTAINER; pwd; exit 3'",
                       check=False)
    assert done.rc == 3
    for rank in (0, 1):
        lines = [line[3:] for line in done.out.splitlines() if line.startswith(f"{rank}: ")]
        assert lines == ["inside", "the root of the bundle", f"{rank} {oci}/bundle", "/"]
    assert "srun: error: node-1: task 0: Exited with exit code 3" in done.err
    cluster.wait("folders to be gone", lambda: nothing_left(cluster))


def test_user_and_input(cluster, oci, user):
    done = cluster.run(f"srun -n1 --container {oci}/bundle sh -c 'id -u; cat; hostname'", user=user, stdin="through the pipe\n")
    assert done.out == "0\nthrough the pipe\ninside\n"


def test_folder_with_a_link_planted_in_it(cluster, oci, user):
    """What a killed slurmstepd left is the user's: a link in it must not lead root to another folder."""
    if os.geteuid():
        pytest.skip("needs root")
    victim = f"{cluster.work}/roots-folder"
    os.mkdir(victim, 0o755)
    job = cluster.submit(f"-H -w node-1 -D /tmp -o /dev/null --container {oci}/bundle --wrap true", user=user)
    left = f"{cluster.home}/spool/node-1/oci-job{job}-batch"
    os.mkdir(left)
    os.symlink(victim, f"{left}/task-0")
    shutil.chown(left, user)
    cluster.run(f"scontrol release {job}")
    assert cluster.wait_end(job) == "FAILED"
    assert os.stat(victim).st_uid == 0
    assert cluster.node_state("node-1") in ("idle", "completing")
    shutil.rmtree(left, ignore_errors=True)


def test_script_and_steps(cluster, oci):
    """The batch script runs inside; steps of the job do not unless they ask."""
    script = f"{cluster.work}/in.sh"
    with open(script, "w") as f:
        f.write("#!/bin/sh\nhostname\ncat /inside\necho $SLURM_JOB_ID $1\n")
    job = cluster.submit(f"--container {oci}/bundle -o script.out {script} arg")
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.read("script.out").splitlines() == ["inside", "the root of the bundle", f"{job} arg"]
    assert cluster.job(job, "Container") == f"{oci}/bundle"
    found = cluster.wait("accounting", lambda: cluster.out(f"sacct -nP -X -j {job} -o container"))
    assert found == f"{oci}/bundle"
    cluster.wait("folders to be gone", lambda: nothing_left(cluster))


def test_create_and_start(cluster, oci):
    """Without RunTimeRun: created, started, and its exit code is the container's."""
    configured(cluster, CREATE)
    try:
        done = cluster.run(f"srun -n1 --container {oci}/bundle sh -c 'sleep 0.2; hostname; exit 5'", check=False)
        assert (done.rc, done.out) == (5, "inside\n")
    finally:
        configured(cluster, RUN)


@pytest.mark.parametrize("how", ["", "-s KILL"])
def test_cancel(cluster, oci, how):
    out = f"{cluster.work}/cancel{how[-4:]}.out"
    job = cluster.submit(f"-o {out} --wrap 'srun -n1 --container {oci}/bundle sh -c \"echo begun; exec sleep 1000\"'")
    cluster.wait("the container runs", lambda: os.path.exists(out) and "begun" in cluster.read(out))
    cluster.run(f"scancel {how} {job}")
    assert cluster.wait_end(job) == "CANCELLED"
    cluster.wait("folders to be gone", lambda: nothing_left(cluster))
    assert not os.listdir(f"{oci}/state/{os.geteuid()}")
    assert f"delete {job}.0.0" in cluster.read(f"{oci}/state/log").splitlines()


def slurmstepd_of(cluster, step):
    """Its process id; other clusters run here too."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path) as f:
                mine = f.read().startswith(f"slurmstepd: [{step}]") and f"{cluster.home}/" in os.readlink(path.replace("cmdline", "cwd"))
        except OSError:
            continue
        if mine:
            return int(path.split("/")[2])
    return None


def test_slurmstepd_is_killed(cluster, oci, user):
    """Its folders in the spool go all the same, and a link in them leads nowhere."""
    victim = f"{cluster.work}/not-theirs"
    os.makedirs(f"{victim}/deep")
    job = cluster.submit(f"-o /dev/null -D /tmp --wrap 'srun -n1 --container {oci}/bundle sleep 1000'", user=user)
    spool = f"{cluster.home}/spool"
    folder = cluster.wait("the container's folder", lambda: glob.glob(f"{spool}/*/oci-job{job}-0/task-0"))[0]
    stepd = cluster.wait("its slurmstepd", lambda: slurmstepd_of(cluster, f"{job}.0"))
    os.symlink(victim, f"{folder}/link")
    os.kill(stepd, signal.SIGKILL)
    cluster.wait("folders to be gone", lambda: nothing_left(cluster))
    assert os.path.isdir(f"{victim}/deep")
    cluster.run(f"scancel {job}")
    cluster.wait_end(job)


def test_bundle(cluster, oci):
    """What the runtime gets: the user's bundle with the program, the environment and the root's whole path."""
    show = f"{oci}/show"
    with open(show, "w") as f:
        f.write('#!/bin/sh\ncat $1/config.json > "$2.json"; cp $4 $2.env; shift 2; echo "$@"\n')
    os.chmod(show, 0o755)
    configured(cluster, f'RunTimeRun="{show} %b {oci}/%j %m %e %r %n %s %t %u %U %Z %%"\n')
    try:
        job = cluster.submit(f"-n1 -o bundle.out --wrap \"srun -n1 --container {oci}/bundle --chdir=/tmp echo 'a b'\"")
        assert cluster.wait_end(job) == "COMPLETED"
    finally:
        configured(cluster, RUN)
    with open(f"{oci}/{job}.json") as f:
        config = json.load(f)
    spool = f"{cluster.home}/spool/node-1/oci-job{job}-0"
    assert config["root"] == {"path": f"{oci}/bundle/rootfs", "readonly": False} and config["process"]["cwd"] == "/"
    assert config["process"]["args"] == [shutil.which("echo"), "a b"] and config["process"]["terminal"] is False
    env = config["process"]["env"]
    assert f"SLURM_JOB_ID={job}" in env and not [e for e in env if e.startswith(("SLURM_CONF=", "OF_THE_BUNDLE="))]
    assert config["mounts"][-1] == {"destination": "/spool", "type": "none", "source": spool, "options": ["bind"]}
    user = cluster.out("id -un")
    assert cluster.read("bundle.out").split() == [spool, f"{spool}/task-0/environment", f"{oci}/bundle/rootfs", "node-1", "0", "0", user, str(os.geteuid()), "/tmp", "%"]
    assert sorted(cluster.read(f"{oci}/{job}.env").splitlines()) == sorted(e for e in env if "\n" not in e)


def test_refused(cluster, oci):
    done = cluster.run("srun -n1 --container /nowhere true", check=False)
    assert done.rc != 0 and "container setup failed: No such file or directory" in done.err
    cluster.wait("folders to be gone", lambda: nothing_left(cluster))
    cluster.wait_idle()


def test_without_configuration(cluster, oci):
    """No oci.conf: the option is a note and the step runs as it is."""
    os.rename(f"{cluster.home}/etc/oci.conf", f"{cluster.home}/etc/oci.not")
    cluster.run("scontrol reconfigure")
    try:
        assert cluster.out("srun -n1 --container /nowhere printenv SLURM_CONTAINER") == "/nowhere"
    finally:
        os.rename(f"{cluster.home}/etc/oci.not", f"{cluster.home}/etc/oci.conf")
        cluster.run("scontrol reconfigure")
