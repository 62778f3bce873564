"""sattach: the streams of a running step, for a second reader (R33)."""
import os
import subprocess

import pytest

CLUSTER = dict(nodes=2, cpus=8, gpus=0)


@pytest.fixture
def step(cluster):
    """A step of two tasks that answer each line of stdin and go on until they read "end". Its srun's stdin is a pipe."""
    script = "for (( ; ; )); do read x || sleep 0.2; [ -z \"$x\" ] || echo $SLURM_PROCID:$x; [ \"$x\" != err ] || echo to-stderr-$SLURM_PROCID >&2; [ \"$x\" != end ] || exit 3; done"
    srun = subprocess.Popen(["srun", "-N2", "-n2", "bash", "-c", script], cwd=cluster.work, env=cluster.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    name = cluster.wait("the step runs", lambda: cluster.out("squeue -h -s -o %i | grep -v batch || true"))
    srun.stdin.write("hello\n")
    srun.stdin.flush()
    assert sorted([srun.stdout.readline(), srun.stdout.readline()]) == ["0:hello\n", "1:hello\n"]
    yield name.split()[0], srun
    srun.kill()
    srun.wait()
    cluster.run("scancel -u root; scancel -u $(id -un)", check=False)
    cluster.wait("no steps", lambda: not cluster.out("squeue -h -s"))


def attach(cluster, args):
    return subprocess.Popen(f"exec sattach {args}", shell=True, cwd=cluster.work, env=cluster.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def test_output_input_and_end(cluster, step):
    name, srun = step
    extra = attach(cluster, f"-l {name}")
    extra.stdin.write("one\n")
    extra.stdin.flush()
    assert sorted([extra.stdout.readline(), extra.stdout.readline()]) == ["0: 0:one\n", "1: 1:one\n"]
    assert sorted([srun.stdout.readline(), srun.stdout.readline()]) == ["0:one\n", "1:one\n"]        # srun goes on reading
    srun.stdin.write("end\n")
    srun.stdin.flush()
    out, err = extra.communicate(timeout=60)
    assert sorted(out.splitlines()) == ["0: 0:end", "1: 1:end"]
    assert sorted(err.splitlines()) == [f"sattach: error: task {t} exited with exit code 3" for t in range(2)] and extra.returncode == 3
    srun.communicate(timeout=60)
    assert srun.returncode == 3


def test_filters(cluster, step):
    name, srun = step
    extra = attach(cluster, f"--output-filter=1 --error-filter 0 --input-filter=1 {name}")
    extra.stdin.write("mine\n")
    extra.stdin.flush()
    assert extra.stdout.readline() == "1:mine\n"
    assert srun.stdout.readline() == "1:mine\n"
    srun.stdin.write("err\nend\n")
    srun.stdin.flush()
    out, err = extra.communicate(timeout=60)
    assert out.splitlines() == ["1:err", "1:end"]
    assert "to-stderr-0" in err and "to-stderr-1" not in err


def test_interrupted_sattach_leaves_the_step(cluster, step):
    name, srun = step
    extra = attach(cluster, name)
    extra.stdin.write("x\n")
    extra.stdin.flush()
    extra.stdout.readline()
    extra.terminate()
    extra.wait(60)
    srun.stdin.write("still\n")
    srun.stdin.flush()
    assert {srun.stdout.readline() for _ in range(4)} == {"0:x\n", "1:x\n", "0:still\n", "1:still\n"}


def test_layout(cluster, step):
    out = cluster.run(f"sattach --layout {step[0]}").out
    assert out == "Job step layout:\n\t2 tasks, 2 nodes (node-[1-2])\n\n\tNode 0 (node-1), 1 task(s): 0 \n\tNode 1 (node-2), 1 task(s): 1 \n"


def test_a_job_that_waits_or_has_ended_is_told_apart_from_an_unknown_one(cluster):
    held = cluster.run("sbatch -H --parsable -o /dev/null --wrap true").out.strip()
    text = "sattach: error: Could not get job step info: "
    for step in (f"{held}.0", f"{held}.5"):
        result = cluster.run(f"sattach {step}", check=False)
        assert result.rc == 1 and result.err == text + "Job is pending execution\n"
    cluster.run(f"scancel {held}")
    result = cluster.run(f"sattach {held}.0", check=False)
    assert result.rc == 1 and result.err == text + "Job/step already completing or completed\n"


def test_refusals(cluster, step, user):
    for args, text in (("99999.0", "Could not get job step info: Invalid job id specified"), (f"{step[0].split('.')[0]}.77", "Could not get job step info: Invalid job id"),
                       ("5", "Failed to parse stepid from command line options"), ("foo", "Bad job/step specified: foo: JobID can not be zero"),
                       ("", "too many parameters"), (f"--output-filter=x {step[0]}", 'Invalid numeric value "x" for output-filter.'),
                       (f"--output-filter=7 {step[0]}", "there is no task 7")):
        result = cluster.run(f"sattach {args}", check=False)
        assert result.rc == 1 and f"sattach: " in result.err and text in result.err, args
    if os.geteuid() == 0:
        other = cluster.run(f"sattach {step[0]}", user=user, check=False)
        assert other.rc == 1 and "denied" in other.err
