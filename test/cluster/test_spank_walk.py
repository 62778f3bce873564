"""SPANK from end to end: spank/walk.c asks for everything of slurm/spank.h in each callback of each context; what it got is compared with what it got from 26.05.5."""
import os
import re
import subprocess

import pytest

import conftest
import spank_walk

CLUSTER = dict(nodes=2, cpus=8, gpus=0, extra_conf="PrologFlags=Contain\nDefMemPerCPU=100\n")
HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(conftest.ROOT, "test", "compat", "spank")
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="slurmd as root: plugins see who they are")

CASES = {
    "srun": ("srun -t1 -N2 --ntasks-per-node=2 --walk=hello --walk-flag --walk-may --walk-quiet --walk-table=tab "
             "bash -c 'env | grep -E \"SPANK|WALK\" | sort | sed \"s/^/$SLURM_PROCID /\"; exit 3'", 3),
    "cpus": ("srun -t1 -N1 -n1 -c3 --mem=300 --walk-may=x true", 0),
    "sbatch": ("sbatch -W -t1 -N2 --ntasks-per-node=1 --mem=200 -a 4 --walk=batch --walk-quiet -o /dev/null --wrap 'env | grep -E \"SPANK|WALK\" | sort > $PWD/batch.env; "
               "srun --mem=100 bash -c \"env | grep -E \\\"SPANK|WALK\\\" | sort | sed s/^/\\$SLURM_PROCID\\ / > $PWD/step.env.\\$SLURM_PROCID\"; exit 4'", 4),
    "salloc": ("salloc -t1 -N1 -n2 --walk=alloc --walk-may=y bash -c 'env | grep -E \"SPANK|WALK\" | sort; srun --walk=instep -n1 env | grep -E \"SPANK|WALK\" | sort'", 0),
}

# Where we differ: of an option with a value that may be left out a job script gets no text "(null)", and options of a table reach it; the extern step knows its array task.
DIFFERENT = {
    "srun": [("value (null)", "value NULL"), ("getopt walk-table rc 3000 value NULL", "getopt walk-table rc 0 value tab")],
    "cpus": [], "salloc": [], "sbatch": [("S_JOB_ARRAY_TASK_ID 4294967294\n", "")],
}


class Walk:
    def __init__(self, cluster, user):
        self.cluster, self.user, self.record, self.so = cluster, user, f"{cluster.work}/walk", f"{cluster.dir}/walk.so"
        self.uid = cluster.out("id -u", user=user)
        subprocess.run(["gcc", "-O1", "-fPIC", "-shared", "-Wall", "-Werror", "-I", f"{conftest.ROOT}/include", "-o", self.so, f"{HERE}/spank/walk.c"], check=True)

    def set(self, text):
        with open(f"{self.cluster.home}/etc/plugstack.conf", "w") as f:
            f.write(text.format(so=self.so, record=self.record))
        with open(self.record, "w"):
            pass
        os.chmod(self.record, 0o666)

    def read(self):
        with open(self.record) as f:
            return f.read()


@pytest.fixture(scope="module")
def walk(cluster, user):
    w = Walk(cluster, user)
    w.set("required {so} {record}\n")
    for node in ("node-1", "node-2"):            # slurmd loads plugins when it starts
        cluster.berth(f"kill {node}")
    cluster.up()
    cluster.wait_idle()
    yield w
    os.unlink(f"{cluster.home}/etc/plugstack.conf")


@pytest.mark.parametrize("case", CASES)
def test_as_recorded(cluster, walk, user, case):
    walk.set("required {so} {record}\n")
    line, rc = CASES[case]
    done = cluster.run(line, user=user, check=False)
    assert done.rc == rc, done
    cluster.wait_idle()
    cluster.wait("epilogs", lambda: walk.read().count("@script job_epilog") >= walk.read().count("@script job_prolog") > 0)
    with open(os.path.join(GOLDEN, f"{case}.txt")) as f:
        golden = f.read()
    for theirs, ours in DIFFERENT[case]:
        assert theirs in golden
        golden = golden.replace(theirs, ours)
    seen = spank_walk.normal(walk.read(), [walk.uid])
    assert seen.splitlines() == golden.splitlines()
