"""GPUs are tracked one by one: environment, indexes, parts of a job's devices for a step (R20, R21, R33)."""
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
