"""GPUs near a task's CPUs (gres.conf Cores, --gpu-bind=closest), what bindings say, which variables name the devices (Flags)."""
import os

import pytest

CLUSTER = dict(nodes=1, cpus=2, gpus=2, extra_conf="TaskPlugin=task/affinity\nTaskPluginParam=Cores\n")
SHOW = "bash -c 'echo $SLURM_PROCID ${CUDA_VISIBLE_DEVICES-none} ${ROCR_VISIBLE_DEVICES-none} ${GPU_DEVICE_ORDINAL-none} ${ZE_AFFINITY_MASK-none}'"


@pytest.fixture(scope="module", autouse=True)
def devices(cluster):
    """One device near each of the two cores, in the reverse order, and variables of one maker only."""
    text = "".join(f"Name=gpu Type=h100 File={cluster.home}/gpu{i} Cores={1 - i} Flags=nvidia_gpu_env\n" for i in range(2))
    for i in range(2):
        os.mknod(f"{cluster.home}/gpu{i}", 0o666)
    with open(f"{cluster.home}/etc/gres.conf", "w") as f:
        f.write(text)
    for daemon in "slurmctld", "node-1":
        cluster.berth(f"kill {daemon}")
        cluster.berth(f"start {daemon}")
    cluster.wait_idle()


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a task must be bound to one of two CPUs")
def test_closest_is_the_device_at_the_tasks_core(cluster):
    lines = sorted(cluster.out(f"srun -n2 --gpus=2 --cpu-bind=cores --gpu-bind=closest {SHOW}").splitlines())
    assert [line.split()[1] for line in lines] == ["1", "0"]
    lines = sorted(cluster.out(f"srun -n2 --gpus=2 --cpu-bind=none --gpu-bind=closest {SHOW}").splitlines())
    assert [line.split()[1] for line in lines] == ["0,1", "0,1"]


def test_only_the_named_variables_are_set(cluster):
    assert cluster.out(f"srun -n1 --gpus=1 {SHOW}") == "0 0 none none none"
    job = cluster.submit("-n1 --gpus=1 -o flags.txt --wrap 'echo ${CUDA_VISIBLE_DEVICES-none} ${ROCR_VISIBLE_DEVICES-none}'")
    cluster.wait_end(job)
    assert cluster.read("flags.txt").strip() == "0 none"


def test_verbose_says_what_was_bound(cluster):
    done = cluster.run(f"srun -n2 --gpus=2 --gpu-bind=verbose,single:1 {SHOW}")
    assert sorted(done.err.splitlines()) == [
        "gpu-bind: usable_gres=0x1; bit_alloc=0x3; local_inx=0; global_list=0; local_list=0",
        "gpu-bind: usable_gres=0x2; bit_alloc=0x3; local_inx=0; global_list=1; local_list=1"]


def test_a_device_that_is_not_there_is_told(cluster):
    done = cluster.run(f"srun -n2 --gpus=2 --gpu-bind=mask_gpu:0x1,0x8 {SHOW}")
    assert sorted(line.split()[1] for line in done.out.splitlines()) == ["0", "0"]
    assert done.err.count("does not specify any devices within the allocation for task 1") == 1 and "for task 0" not in done.err
