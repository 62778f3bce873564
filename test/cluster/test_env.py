"""Every SLURM_* variable of scripts, tasks and salloc's command, against what the reference gave (test/compat/env)."""
import importlib.util
import os
import re

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("envcases", os.path.join(os.path.dirname(HERE), "compat", "env", "cases.py"))
envcases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(envcases)

CLUSTER = dict(gpus=4, extra_conf="DefMemPerCPU=100\nTaskPlugin=task/none\n")
# No accounts without slurmdbd's associations; --hint=multithread leaves a stray 65535 on the reference.
OURS = r"SLURM_(JOB_ACCOUNT|JOB_QOS|WORKING_CLUSTER|NTASKS_PER_CORE=65535)"


def only_common(lines):
    return [line for line in lines if not re.match(OURS, line)]


def difference(got, want):
    return [f"missing {line}" for line in want if line not in got] + [f"not there {line}" for line in got if line not in want]


@pytest.mark.parametrize("name,line", envcases.cases(), ids=lambda v: v if " " not in v else "")
def test_as_recorded(cluster, name, line):
    run = lambda line, env, cwd: cluster.run(line, env=env, cwd=cwd, check=False)
    got = envcases.run_case(line, run, cluster.work)
    want = envcases.recorded(name)
    assert sorted(got) == sorted(want)
    wrong = {part: difference(only_common(got[part]), only_common(want[part])) for part in want}
    assert not any(wrong.values()), "\n".join(f"{part}: {line}" for part in wrong for line in wrong[part])


TORCH = "env | grep -cE '^(MASTER_ADDR|MASTER_PORT|RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|GROUP_RANK)=' || true"


def test_torch_variables_can_be_turned_off(cluster):
    assert cluster.out(f"srun -n1 bash -c \"{TORCH}\"") == "7"
    assert cluster.out(f"srun -n1 --export-torch=no bash -c \"{TORCH}\"") == "0"
    assert cluster.out(f"sbatch -Q --wait -n1 --export-torch=no -o torch.out --wrap \"srun bash -c \\\"{TORCH}\\\"\"; cat torch.out").endswith("0")
    bad = cluster.run("srun -n1 --export-torch=maybe true", check=False)
    assert bad.rc != 0 and "export-torch" in bad.err


def test_torch_variables_of_the_user_win(cluster):
    out = cluster.out("MASTER_ADDR=me MASTER_PORT=77 srun -n2 bash -c 'echo $MASTER_ADDR $MASTER_PORT $WORLD_SIZE'")
    assert out.splitlines() == ["me 77 2"] * 2


def test_torch_variables_off_for_a_site(cluster):
    conf = f"{cluster.home}/etc/slurm.conf"
    before = cluster.read(conf)
    try:
        with open(conf, "a") as f:
            f.write("LaunchParameters=disable_torch_env\n")
        assert cluster.out(f"srun -n1 bash -c \"{TORCH}\"") == "0"
    finally:
        with open(conf, "w") as f:
            f.write(before)
