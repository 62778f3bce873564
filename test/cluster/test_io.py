"""Input and output of steps and jobs, beside what 26.05.5 did (test/compat/io); and 10,000 tasks that print at once."""
import collections
import os
import re

import pytest

import conftest

CLUSTER = dict(nodes=4, cpus=8, gpus=0, extra_conf="MaxTasksPerNode=3000\n")
HERE = f"{conftest.ROOT}/test/compat/io"
BETTER = {   # ours says which file it is; and what is wrong, where the reference says that a connection failed
    "srun -n1 -o /proc/no/such/dir/f echo b": "rc 1\n2 srun: error: Could not open stdout file /proc/no/such/dir/f: No such file or directory\n",
    "srun -n2 -i /proc/no/such/f-%t cat": "rc 1\n2 srun: error: Task launch for StepId=J.0 failed on node node-1: Could not open stdin file /proc/no/such/f-0: No such file or directory\n",
}


def blocks(text):
    found = collections.OrderedDict()
    for block in re.split(r"^--- ", text, flags=re.M)[1:]:
        command, _, rest = block.partition("\n")
        rest = re.sub(r"StepId=\d+", "StepId=J", rest)
        found[command] = re.sub(r"\[[-0-9T:.]+\] error", "[T] error", rest)
    return found


with open(f"{HERE}/io.txt", errors="replace") as f:
    RECORDED = blocks(f.read())


@pytest.fixture(scope="module")
def ours(cluster):
    return blocks(cluster.run(f"mkdir io && cd io && bash {HERE}/io.sh", timeout=300).out)


@pytest.mark.parametrize("command", RECORDED)
def test_as_recorded(ours, command):
    assert ours[command] == BETTER.get(command, RECORDED[command])


def test_what_is_better_differs():
    assert all(RECORDED[c] != text for c, text in BETTER.items())


def test_ten_thousand_tasks_lose_no_line(cluster):
    cluster.run("srun -N4 -n10000 -O -l sh -c 'echo one; echo two' > many 2> many.err", timeout=300)
    with open(f"{cluster.work}/many") as f:
        lines = f.read().splitlines()
    assert sorted(lines) == sorted(f"{t:>4}: {word}" for t in range(10000) for word in ("one", "two"))
    assert os.path.getsize(f"{cluster.work}/many.err") == 0
