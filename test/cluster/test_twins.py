"""Two clusters in folders of one name on one machine, as in two chroots or containers: neither touches what the other runs."""
import os
import subprocess
import tempfile

import pytest

CLUSTER = dict(nodes=2, cpus=4, gpus=0)


@pytest.fixture(scope="module")
def place():
    if os.geteuid() != 0:
        pytest.skip("needs root: a cluster run by an ordinary user has no cgroups to share")
    path = tempfile.mkdtemp(prefix="berth-twin-")
    yield path
    os.rmdir(path)


class Twin:
    """A shell in a mount namespace of its own, where the folder `place` is another one. Commands are run in it one after the other."""

    def __init__(self, cluster, place):
        self.cluster, self.place = cluster, place
        env = dict(cluster.env(), SLURM_CONF=f"{place}/c/etc/slurm.conf", BERTH_DIR=f"{place}/c")
        self.shell = subprocess.Popen(["unshare", "-m", "bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.out(f"mount -t tmpfs none {place} && chmod 755 {place} && cd {place} && berth up --nodes 1 --cpus 4 --gpus 0")

    def out(self, command):
        self.shell.stdin.write(f"{{ {command}\n}} </dev/null 2>&1; echo \"#$?\"\n")
        self.shell.stdin.flush()
        lines = []
        for line in self.shell.stdout:
            if line.startswith("#"):
                assert line == "#0\n", f"{command}: {line}{''.join(lines)}"
                return "".join(lines).strip()
            lines.append(line)
        pytest.fail(f"{command}: the shell is gone: {''.join(lines)}")

    def state(self, job):
        return self.out(f"scontrol show job {job} -o | grep -o 'JobState=[A-Z]*'").partition("=")[2]

    def steps(self):
        return self.out("squeue -h -s -o %i").split()

    def down(self):
        self.out("cd /; berth down")
        self.shell.stdin.close()
        self.shell.wait(timeout=30)
        self.shell.stdout.close()


@pytest.fixture(scope="module")
def twins(cluster, place):
    made = []
    try:
        for _ in range(2):
            made.append(Twin(cluster, place))
        yield made
    finally:
        for twin in made:
            twin.down()


def test_end_of_a_job_leaves_the_job_of_that_number_elsewhere_alone(cluster, twins):
    one, two = twins
    jobs = [twin.out("sbatch --parsable -o job.txt --wrap 'srun sleep 300'") for twin in twins]
    assert jobs == ["1", "1"]
    for twin in twins:
        cluster.wait("the step runs", lambda: "1.0" in twin.steps())
    two.out(f"scancel {jobs[1]}")
    cluster.wait("the cancelled one ends", lambda: two.out("squeue -h -o %i") == "")
    assert one.state(jobs[0]) == "RUNNING"
    assert f"{jobs[0]}.0" in one.steps()
    one.out(f"scancel {jobs[0]}")
    cluster.wait("the other ends", lambda: one.out("squeue -h -o %i") == "")


def test_death_of_a_node_leaves_the_node_of_that_name_elsewhere_alone(cluster, twins):
    one, two = twins
    job = two.out("sbatch --parsable -o job.txt --wrap 'srun sleep 300'")
    cluster.wait("the step runs", lambda: f"{job}.0" in two.steps())
    one.out("berth kill node-1")
    assert two.state(job) == "RUNNING"
    two.out("berth kill node-1; berth start node-1")  # gets the namespace's number that the other's node had
    one.out("berth kill node-1")
    assert two.out("berth status | grep -c ' up '") == "4"
    one.out("berth start node-1")


def test_death_of_a_dead_node_leaves_its_neighbour_alone(cluster):
    cluster.run("berth kill node-1; berth kill node-2; berth start node-2; berth kill node-1")
    assert cluster.out("berth status | grep node-2 | awk '{ print $2 }'") == "up"
    cluster.run("berth start node-1")
