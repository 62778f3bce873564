"""sbcast and srun --bcast: a file onto the nodes of a job."""
import os
import signal
import subprocess

import pytest

CLUSTER = dict(nodes=4, cpus=8, gpus=0)


@pytest.fixture(scope="module")
def job(cluster):
    """A job on all nodes; its id."""
    number = cluster.submit("-N4 --wrap 'sleep 1000'")
    cluster.wait_state(number, "RUNNING")
    yield number
    cluster.run(f"scancel {number}")


def named(cluster, name):
    """Nodes share the machine's file system here: the folder form of the destination gives each node a file of its own."""
    return sorted(f for f in os.listdir(cluster.work) if f.startswith(name))


@pytest.mark.parametrize("options", ["", "-C", "-Clz4 -s64k", "-s8k", "-Cnone"])
def test_every_node_gets_the_whole_file(cluster, job, options):
    cluster.run("head -c 3000000 /dev/urandom > blob; cat blob /dev/zero | head -c 5000000 > big; mkdir -p into; rm -f into/*")
    cluster.run(f"sbcast {options} -j {job} big into/")
    assert sorted(os.listdir(f"{cluster.work}/into")) == [f"slurm_bcast_{job}.0_node-{n}" for n in range(1, 5)]
    cluster.run("for f in into/*; do cmp big $f || exit 1; done")


def test_mode_times_and_force(cluster, job):
    cluster.run("echo one > src; chmod 754 src; touch -d '2020-01-02 03:04:05' src; rm -f into/*")
    cluster.run(f"sbcast -p -j{job} src into/")
    found = os.stat(f"{cluster.work}/into/slurm_bcast_{job}.0_node-3")
    assert found.st_mode & 0o7777 == 0o754 and found.st_mtime == os.stat(f"{cluster.work}/src").st_mtime
    again = cluster.run(f"sbcast -j{job} src into/", check=False)
    assert again.rc == 17 and sorted(again.err.splitlines()) == [f"sbcast: error: REQUEST_FILE_BCAST(node-{n}): File exists" for n in range(1, 5)]
    cluster.run(f"echo two > src; sbcast -f -j{job} src into/; grep -q two into/*_node-1")


def test_empty_file(cluster, job):
    cluster.run(f": > empty; rm -f into/*; sbcast -j{job} empty into/")
    assert [os.path.getsize(f"{cluster.work}/into/{f}") for f in os.listdir(f"{cluster.work}/into")] == [0] * 4


def test_inside_a_job(cluster):
    job = cluster.submit("-N1 -o sb-%j.txt --wrap 'echo inside > s2; sbcast s2 inside-copy; cat inside-copy'", cwd=cluster.work)
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.read(f"sb-{job}.txt") == "inside\n"


def test_libraries_and_nodes(cluster, job):
    """--send-libs puts a program's libraries beside it, those of excluded folders not; -w sends to some nodes only."""
    here = cluster.work
    cluster.run(f"sbcast -f -j{job} --send-libs --exclude=NONE /bin/sh {here}/shell")
    libs = os.listdir(f"{here}/shell_libs")
    assert "libc.so.6" in libs and cluster.out(f"LD_LIBRARY_PATH={here}/shell_libs {here}/shell -c 'grep -c {here}/shell_libs/libc /proc/$$/maps'") != "0"
    cluster.run(f"sbcast -f -j{job} --send-libs --exclude=/lib,/usr/lib,/lib64,/usr/lib64 /bin/sh {here}/bare")
    assert os.path.exists(f"{here}/bare") and not os.path.exists(f"{here}/bare_libs")
    r = cluster.run(f"sbcast -f -j{job} --send-libs=maybe src {here}/copy; sbcast -f -j{job} --send-libs --exclude=rel src {here}/copy")
    assert "Ignoring unrecognized --send-libs value 'maybe'" in r.err and "Ignoring non-absolute excluded path: 'rel'" in r.err and "Cannot autodetect libraries for 'src'" in r.err
    os.mkdir(f"{here}/some")
    cluster.run(f"sbcast -j{job} -w node-1 src {here}/some/file")          # the second node of one file system would say that it exists
    assert os.listdir(f"{here}/some") == ["file"]


def test_refusals(cluster, job, user):
    for args, rc, text in ((f"-j{job} /no/file x", 255, "Can't open `/no/file`: No such file or directory"), (f"-j{job} /etc x", 255, "Can't mmap file `/etc`"),
                           (f"-j{job} src /no/dir/x", 2, "REQUEST_FILE_BCAST(node-2): No such file or directory"), ("src x", 1, "Need a job id to run this command."),
                           ("-j 99999 src x", 1, "Failed to load JobId=99999: 'Invalid job id specified'"), ("--jobid=foo src x", 1, "Bad job/step specified: foo"),
                           (f"-j{job} src", 1, "Need two file names, have 1 names"), (f"-w node-9 -j{job} src x", 255, "Not all nodes in --nodelist/-w 'node-9' are in job")):
        result = cluster.run(f"sbcast {args}", check=False)
        assert result.rc == rc and text in result.err, args
    assert "Compression type 'foo' unknown" in cluster.run(f"sbcast -f -Cfoo -j{job} src /tmp/berth-sbcast-{job}; rm /tmp/berth-sbcast-{job}").err
    if os.geteuid() == 0:
        other = cluster.run(f"sbcast -j{job} /etc/hosts /tmp/berth-x", user=user, check=False)
        assert other.rc == 1 and "denied" in other.err and not os.path.exists("/tmp/berth-x")


def test_written_as_the_user(cluster, user):
    if os.geteuid():
        pytest.skip("needs root")
    job = cluster.submit("-N1 -n1 -o user-%j.txt --wrap 'sbcast /etc/hosts /etc/berth-evil; sbcast /etc/hosts mine-alone; stat -c %U mine-alone'", user=user)
    cluster.wait_end(job)
    out = cluster.read(f"user-{job}.txt")
    assert not os.path.exists("/etc/berth-evil")
    assert "REQUEST_FILE_BCAST(node-" in out and "Permission denied" in out and user in out


def test_srun_bcast(cluster):
    cluster.run("mkdir -p prog; rm -f prog/*")
    out = cluster.run("srun --bcast=prog/ --compress=lz4 -N2 -n2 bash -c 'readlink /proc/$$/exe; true'").out
    assert len(set(out.splitlines())) == 2 and all("/prog/slurm_bcast_" in x for x in out.splitlines())
    cluster.run("srun --bcast=/tmp/berth-bcast-prog -N1 -n1 hostname")
    assert cluster.run("cmp /tmp/berth-bcast-prog $(readlink -f $(which hostname)); rm -f /tmp/berth-bcast-prog").rc == 0


def receivers():
    found = {}
    for p in os.listdir("/proc"):
        try:
            if p.isdigit() and open(f"/proc/{p}/cmdline").read().startswith("slurmstepd: [sbcast]"):
                found[os.readlink(f"/proc/{p}/cwd").split("/")[-1]] = int(p)        # the spool of its node
        except OSError:
            continue
    return found


def kept(cluster, folder):
    """The nodes that have the whole file."""
    return sorted(f.split("_")[-1] for f in os.listdir(f"{cluster.work}/{folder}") if cluster.run(f"cmp large {folder}/{f}", check=False).rc == 0)


def begun(cluster, job, folder, options=""):
    """A sender that has begun and is stopped, and its receivers: a file larger than all buffers is under way."""
    cluster.run(f"truncate -s 300M large; mkdir -p {folder}; rm -f {folder}/*")
    sender = subprocess.Popen(["sbcast", *options.split(), "-f", f"-j{job}", "large", f"{folder}/"], cwd=cluster.work, env=cluster.env(), stderr=subprocess.PIPE, text=True)
    cluster.wait("four receivers", lambda: len(receivers()) == 4)
    sender.send_signal(signal.SIGSTOP)
    return sender, receivers()


def test_a_receiver_that_stands_still_is_given_up(cluster, job):
    sender, at = begun(cluster, job, "still", "--timeout=3")
    os.kill(at["node-2"], signal.SIGSTOP)
    sender.send_signal(signal.SIGCONT)
    err = sender.communicate(timeout=60)[1]
    os.kill(at["node-2"], signal.SIGKILL)
    assert sender.returncode == 110 and err.splitlines() == ["sbcast: error: REQUEST_FILE_BCAST(node-2): Connection timed out"]
    assert kept(cluster, "still") == ["node-1", "node-3", "node-4"]


def test_a_receiver_that_is_killed_harms_no_other(cluster, job):
    sender, at = begun(cluster, job, "killed")
    os.kill(at["node-3"], signal.SIGKILL)
    sender.send_signal(signal.SIGCONT)
    err = sender.communicate(timeout=60)[1]
    assert sender.returncode and err.splitlines() == ["sbcast: error: REQUEST_FILE_BCAST(node-3): Connection reset by peer"]
    assert kept(cluster, "killed") == ["node-1", "node-2", "node-4"]


def test_receivers_end_with_their_sender(cluster, job):
    sender, at = begun(cluster, job, "alone")
    sender.kill()
    sender.wait()
    cluster.wait("no receiver", lambda: not receivers())
    assert os.listdir(f"{cluster.work}/alone") == []


def slurmd_of(cluster, node):
    return cluster.out(f"berth status | awk '$1 == \"{node}\" {{ print $3 }}'")


def test_a_slurmd_that_is_stopped_or_dead(cluster, job):
    cluster.run("truncate -s 3M large; mkdir -p dead; rm -f dead/*")
    pid = slurmd_of(cluster, "node-2")
    cluster.run(f"kill -STOP {pid}")
    found = cluster.run(f"sbcast -f -j{job} large dead/", check=False)
    cluster.run(f"kill -CONT {pid}")
    assert found.rc and len(found.err.splitlines()) == 2 and "node-2" in found.err, found
    assert kept(cluster, "dead")[:1] + kept(cluster, "dead")[-2:] == ["node-1", "node-3", "node-4"]
    cluster.wait("node-2 answers", lambda: cluster.node_state("node-2") in ("mixed", "allocated", "idle"))


def test_a_full_disk(cluster):
    """One node's disk is full: it says so, the others have the file."""
    if os.geteuid():
        pytest.skip("needs root")
    cluster.wait("four nodes", lambda: cluster.out("sinfo -h -p main -t idle,mix,alloc -o %D") == "4")
    job = cluster.submit("-N4 --wrap 'sleep 1000'")
    cluster.wait_state(job, "RUNNING")
    cluster.run("truncate -s 30M large; mkdir -p full; rm -f full/*")
    pid = slurmd_of(cluster, "node-4")
    mounted = cluster.run(f"nsenter -t {pid} -m mount -t tmpfs -o size=1m none {cluster.work}/full", check=False)
    if mounted.rc:
        pytest.skip("mounting a tmpfs is not permitted here")
    found = cluster.run(f"sbcast -j{job} large full/", check=False)
    left = cluster.out(f"nsenter -t {pid} -m ls {cluster.work}/full")
    cluster.run(f"nsenter -t {pid} -m umount {cluster.work}/full; scancel {job}")
    assert found.rc == 28 and found.err.splitlines() == ["sbcast: error: REQUEST_FILE_BCAST(node-4): No space left on device"]
    assert left == "" and kept(cluster, "full") == ["node-1", "node-2", "node-3"]


def test_nodes_with_one_file_system_and_force(cluster, job):
    """All four replace the same file at once; each may find that of another in its way."""
    for _ in range(5):
        cluster.run(f"head -c 100000 /dev/urandom > large; sbcast -f -j{job} large same")
        assert cluster.run("cmp large same").rc == 0
