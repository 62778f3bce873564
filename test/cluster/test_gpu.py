"""GPUs are tracked one by one: environment, indexes, parts of a job's devices for a step (R20, R21, R33)."""
import pytest

CLUSTER = dict(nodes=2, cpus=8, gpus=8)


def gpu_env(text):
    return dict(line.split("=", 1) for line in text.split() if "=" in line)


def test_job_sees_its_devices_only(cluster):
    job = cluster.submit("--gres=gpu:2 -o gpu-%j.txt --wrap 'env | grep -E \"^(CUDA|SLURM_JOB_GPUS|SLURM_GPUS_ON_NODE)\"; sleep 30'")
    other = cluster.submit("--gres=gpu:h100:3 -w node-1 -o gpu-%j.txt --wrap 'env | grep ^CUDA; sleep 30'")
    cluster.wait("both print", lambda: all(cluster.run(f"test -s gpu-{j}.txt", check=False).rc == 0 for j in (job, other)))
    env = gpu_env(cluster.read(f"gpu-{job}.txt"))
    assert env["SLURM_JOB_GPUS"] == env["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert env["SLURM_GPUS_ON_NODE"] == "2"
    assert gpu_env(cluster.read(f"gpu-{other}.txt"))["CUDA_VISIBLE_DEVICES"] == "2,3,4"
    detail = cluster.out(f"scontrol show job {job} -d")
    assert "GRES=gpu:h100:2(IDX:0-1)" in detail
    assert "gres/gpu=2" in cluster.job(job, "AllocTRES")
    assert "gpu:h100:5(IDX:0-4)" in cluster.out("scontrol show node node-1 -d")
    cluster.run(f"scancel {job} {other}")
    cluster.wait_idle()


def test_no_gpu_no_variable(cluster):
    assert cluster.run("srun bash -c 'echo ${CUDA_VISIBLE_DEVICES-none}'").out.strip() == "none"


def test_step_takes_fewer_than_the_job(cluster):
    job = cluster.submit("--gres=gpu:4 -o part-%j.txt --wrap 'srun --gres=gpu:1 printenv CUDA_VISIBLE_DEVICES SLURM_STEP_GPUS; "
                         "srun --gres=gpu:0 bash -c \"echo none=\\${CUDA_VISIBLE_DEVICES-unset}\"; srun printenv CUDA_VISIBLE_DEVICES'")
    assert cluster.wait_end(job) == "COMPLETED", cluster.read(f"part-{job}.txt")
    lines = cluster.read(f"part-{job}.txt").split()
    assert lines[:2] == ["0", "0"] and lines[2].startswith("none=") and lines[3] == "0,1,2,3"


def test_two_steps_side_by_side_get_distinct_devices(cluster):
    script = "for i in 1 2; do srun --exact -n1 --gres=gpu:2 bash -c \"echo \\$CUDA_VISIBLE_DEVICES; sleep 1\" & done; wait"
    job = cluster.submit(f"-n2 --gres=gpu:4 -o side-%j.txt --wrap '{script}'")
    assert cluster.wait_end(job) == "COMPLETED"
    assert sorted(cluster.read(f"side-{job}.txt").split()) == ["0,1", "2,3"]


def test_too_many_is_refused_at_once(cluster):
    result = cluster.run("sbatch --gres=gpu:9 --wrap true", check=False)
    assert result.rc == 1 and "Requested node configuration is not available" in result.err


def test_unknown_gres_is_refused(cluster):
    result = cluster.run("sbatch --gres=quantum:1 --wrap true", check=False)
    assert result.rc == 1 and "Invalid generic resource (gres) specification" in result.err


def test_no_device_is_given_twice(cluster):
    jobs = [cluster.submit(f"--gres=gpu:{n} -o twice-%j.txt --wrap 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES; sleep 20'") for n in (3, 3, 2, 4, 4)]
    for job in jobs:
        cluster.wait_state(job, "RUNNING")
    cluster.wait("all print", lambda: all(cluster.run(f"test -s twice-{j}.txt", check=False).rc == 0 for j in jobs))
    seen = set()
    for job in jobs:
        node, devices = cluster.read(f"twice-{job}.txt").split()
        for device in devices.split(","):
            assert (node, device) not in seen
            seen.add((node, device))
    assert len(seen) == 16
    cluster.run("scancel " + " ".join(map(str, jobs)))
    cluster.wait_idle()


@pytest.mark.parametrize("job", ["--gpus=4", "--gpus-per-node=2", "--gres=gpu:2", "--gpus-per-task=1"])
def test_a_step_asks_in_other_words_than_its_job(cluster, job):
    """R33: what srun itself says of GPUs replaces what the job was asked for in SLURM_GPUS, SLURM_GPUS_PER_NODE, SLURM_TRES_PER_TASK."""
    wants = {"--gpus-per-node=1": "node-1:0 node-1:0 node-2:0 node-2:0", "--gpus-per-task=1 -n2": "node-1:0 node-2:0", "-n2 --gres=gpu:1": "node-1:0 node-2:0",
             "-n1 --gres=gpu:0": "node-1:", "-n1 --gres=none": "node-1:", "-N1 -n1 --gpus=1": "node-1:0",
             "-N1 -n1 --gpus-per-socket=1 --gpus=1": "node-1:0"}
    script = "".join(f"srun {step} bash -c 'echo $SLURMD_NODENAME:$CUDA_VISIBLE_DEVICES' | sort | tr '\\n' ' '; echo\n" for step in wants)
    out = cluster.out(f"sbatch -W -N2 -n4 --ntasks-per-node=2 {job} -o words.out >/dev/null; cat words.out", stdin="#!/bin/bash\n" + script)
    told = "srun: warning: Ignoring --gpus-per-socket because it can only be specified at job allocation time, not during step allocation."
    lines = [line.strip() for line in out.splitlines() if not line.startswith("srun: warning: can't run 1 processes")]
    assert [line for line in lines if line != told] == list(wants.values())
    assert lines.count(told) == 1


def test_what_a_running_step_holds_and_asked_for(cluster):
    """R14: scontrol show step names the GPUs, by name of TRES, and what they were asked for by; sacct of a running job has them in its batch row."""
    job = cluster.submit("-N2 -n2 -c2 --mem=100 --gres=gpu:2 -o /dev/null --wrap 'srun sleep 60 & srun --overlap --gpus=2 -c1 sleep 60 & wait'")
    cluster.wait("two steps", lambda: cluster.out(f"squeue -h -s -j {job} -o %i | grep -c '[.][01]$' || true") == "2")
    text = cluster.out(f"scontrol show step {job}").split("\n\n")
    lines = {t.split()[0].split(".")[1]: [line.strip() for line in t.splitlines() if "TRES=" in line or "Tres" in line] for t in text}
    by_steps = sorted((lines["0"], lines["1"]), key=len)   # which of the two was first is not said
    assert sorted(map(tuple, by_steps)) == [("TRES=cpu=2,gres/gpu=2,mem=200M,node=2", "TresPerStep=gres/gpu:2", "TresPerTask=cpu=1"),
                                           ("TRES=cpu=4,gres/gpu=4,mem=200M,node=2", "TresPerNode=gres/gpu:2", "TresPerTask=cpu=2")]
    cluster.wait("in accounting", lambda: cluster.out(f"sacct -n -P -j {job}.batch -o AllocTRES --units=K") == "cpu=2,gres/gpu=2,mem=102400K,node=1")
    cluster.run(f"scancel {job}")
    cluster.wait_idle()
