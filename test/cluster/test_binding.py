"""--cpu-bind, --mem-bind and --hint of srun in all their forms, beside what the reference 26.05.5 printed (test/compat/binding.txt)."""
import os
import re

import pytest

from conftest import ROOT

CLUSTER = dict(nodes=1, cpus=2, gpus=0)
TASK = """#!/bin/bash
echo "$SLURM_PROCID $(sed -n 's/^Cpus_allowed:[\t0,]*//p' /proc/self/status) $(env | grep -E '^(SLURM_CPU_BIND|SLURMD?_(CPU|MEM)_BIND|SLURM_MEM_BIND|SBATCH_(CPU|MEM)_BIND)' | sort | tr '\n' ' ')"
"""


def recorded():
    with open(f"{ROOT}/test/compat/binding.txt") as f:
        blocks = re.split(r"^== ", f.read(), flags=re.M)[1:]
    return [block.split("\n", 1) for block in blocks]


@pytest.fixture(scope="module")
def task(cluster):
    if os.sched_getaffinity(0) < {0, 1}:
        pytest.skip("needs CPUs 0 and 1")
    path = f"{cluster.work}/task.sh"
    with open(path, "w") as f:
        f.write(TASK)
    os.chmod(path, 0o755)
    return path


def run(cluster, options, task):
    cluster.wait_idle()                 # what ran before has given its CPU back
    done = cluster.run(f"srun {options} {task}", check=False)
    err = re.sub(r"\[\d+\]", "[PID]", re.sub(r"StepId=[\d.]+", "StepId=N", re.sub(r"srun: job \d+", "srun: job N", done.err)))
    return "".join(f"{line}\n" for line in sorted(done.out.splitlines()) + [f"! {line}" for line in sorted(err.splitlines())] + [f"rc {done.rc}"])


def test_forms(cluster, task):
    wrong = []
    for options, want in recorded():
        got = run(cluster, options, task)
        if got != want:
            wrong.append(f"== {options}\n--- reference\n{want}--- ours\n{got}")
    assert not wrong, "\n".join(wrong)


def test_memory_that_is_not_there(cluster, task):
    for form, said in (("map_mem:7", "NUMA node 7 does not exist; cannot bind local task 0 to it (--mem-bind=map_mem)"),
                       ("mask_mem:0x8", "NUMA node 3 does not exist; cannot bind local task 0 to it (--mem-bind=mask_mem; 0x8)")):
        if os.path.exists("/sys/devices/system/node/node3"):
            pytest.skip("this machine has four memory nodes")
        done = cluster.run(f"srun -n1 --mem-bind={form} true", check=False)
        assert done.rc == 1 and said in done.err, done


def test_hints_of_jobs(cluster):
    """What a hint makes of a request; the last word about cores or threads counts, and who says himself what the cores are to be is believed."""
    rows = {"memory_bound": "1:1", "compute_bound": "*:1", "compute_bound,memory_bound": "1:1", "memory_bound,compute_bound": "*:1", "nomultithread,memory_bound": "1:1",
            "nomultithread,multithread": "*:*", "multithread": "*:*", "memory_bound --cores-per-socket=1": "1:*"}
    for hint, shape in rows.items():
        job = cluster.submit(f"-H -n1 -o /dev/null --hint={hint} --wrap true")
        assert cluster.job(job, "ReqB:S:C:T") == f"0:0:{shape}", hint
        cluster.run(f"scancel {job}")
    job = cluster.submit("-n1 -o hint.out --hint=memory_bound --wrap 'echo $SLURM_HINT $SLURM_THREADS_PER_CORE; srun bash -c \"echo \\$SLURM_CPU_BIND\"'")
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.read("hint.out").splitlines() == ["memory_bound 1", "quiet,mask_cpu:0x1"]
