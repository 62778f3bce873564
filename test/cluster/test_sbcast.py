"""sbcast and srun --bcast: a file onto the nodes of a job."""
import os

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


def test_refusals(cluster, job, user):
    for args, rc, text in ((f"-j{job} /no/file x", 255, "Can't open `/no/file`: No such file or directory"), (f"-j{job} /etc x", 255, "Can't mmap file `/etc`"),
                           (f"-j{job} src /no/dir/x", 2, "REQUEST_FILE_BCAST(node-2): No such file or directory"), ("src x", 1, "Need a job id to run this command."),
                           ("-j 99999 src x", 1, "Failed to load JobId=99999: 'Invalid job id specified'"), ("--jobid=foo src x", 1, "Bad job/step specified: foo"),
                           (f"-j{job} src", 1, "Need two file names, have 1 names"), (f"--send-libs -j{job} src x", 1, "'--send-libs' is not supported")):
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
