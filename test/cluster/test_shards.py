"""GPUs shared by several jobs (Gres=shard:N): who shares with whom, what a job sees, what is shown. Texts as the reference prints them."""
import json
import re

import pytest

CLUSTER = dict(nodes=2, cpus=8, gpus=4, extra_conf="GresTypes=gpu,shard\nAccountingStorageTRES=gres/gpu,gres/shard\n")
SHOW = "env | grep -E \"^(CUDA_VISIBLE|SLURM_(JOB_GPUS|STEP_GPUS|GPUS_ON|SHARDS_ON))\" | sort"


@pytest.fixture(scope="module", autouse=True)
def shared(cluster):
    """Sixteen shards on each node: four of each GPU."""
    path = f"{cluster.home}/etc/slurm.conf"
    with open(path) as f:
        text = re.sub(r"(Gres=gpu:h100:4)\b", r"\1,shard:16", f.read())
    assert "shard:16" in text
    with open(path, "w") as f:
        f.write(text)
    for daemon in "slurmctld", "node-1", "node-2":
        cluster.berth(f"kill {daemon}")
        cluster.berth(f"start {daemon}")
    cluster.wait_idle()


@pytest.fixture(autouse=True)
def idle(cluster):
    yield
    cluster.run("scancel --me", check=False)
    cluster.wait_idle()


def held(cluster, arguments):
    """A job on node-1 that has printed what it sees, and its output."""
    job = cluster.submit(f"-w node-1 {arguments} -o shard-%j.txt --wrap '{SHOW}; echo end; sleep 60'")
    cluster.wait(f"job {job} prints", lambda: "end" in cluster.run(f"cat shard-{job}.txt", check=False).out)
    return job, cluster.read(f"shard-{job}.txt").split()[:-1]


def test_jobs_share_a_gpu_and_leave_whole_ones_alone(cluster):
    assert "Gres=gpu:h100:4,shard:h100:16\n" in cluster.out("scontrol show node node-1")
    one, seen = held(cluster, "--gres=shard:1")
    assert seen == ["CUDA_VISIBLE_DEVICES=0", "SLURM_GPUS_ON_NODE=1", "SLURM_JOB_GPUS=0", "SLURM_SHARDS_ON_NODE=1"]
    assert "CUDA_VISIBLE_DEVICES=0" in held(cluster, "--gres=shard:2")[1]
    three, seen = held(cluster, "--gres=shard:h100:2")
    assert "CUDA_VISIBLE_DEVICES=1" in seen and "SLURM_SHARDS_ON_NODE=2" in seen
    _, seen = held(cluster, "--gres=gpu:1")
    assert seen == ["CUDA_VISIBLE_DEVICES=2", "SLURM_GPUS_ON_NODE=1", "SLURM_JOB_GPUS=2"]
    node = cluster.out("scontrol show node node-1 -d")
    assert "GresUsed=gpu:h100:1(IDX:2),shard:h100:5(3/4,2/4,-/4,0/4)\n" in node and "gres/gpu=1,gres/shard=5" in node
    assert cluster.out("sinfo -h -N -n node-1 -p main -O GresUsed:60").strip() == "gpu:h100:1(IDX:2),shard:h100:5(3/4,2/4,-/4,0/4)"
    shown = cluster.out(f"scontrol show job -d {three}")
    assert "JOB_GRES=shard:2\n" in shown and "GRES=shard:2(0/4,2/4,0/4,0/4)\n" in shown and "TresPerNode=gres/shard:h100:2" in shown
    assert cluster.job(one, "AllocTRES").endswith("gres/shard=1")
    assert json.loads(cluster.out(f"scontrol show job -d {three} --json"))["jobs"][0]["gres_detail"] == ["shard:2(0/4,2/4,0/4,0/4)"]
    two = cluster.submit("-w node-1 --gres=gpu:2 --wrap 'sleep 60'")
    cluster.wait("it waits for GPUs", lambda: cluster.job(two, "Reason") == "Resources")
    cluster.run(f"scancel {one}")
    assert cluster.job(two, "JobState") == "PENDING"
    cluster.run(f"scancel {three}")
    cluster.wait_state(two, "RUNNING")


def test_a_restart_keeps_who_shares_what(cluster):
    held(cluster, "--gres=shard:3")
    held(cluster, "--gres=gpu:h100:1")
    held(cluster, "--gres=shard:2")
    before = re.search("GresUsed=.*", cluster.out("scontrol show node node-1 -d")).group()
    assert before == "GresUsed=gpu:h100:1(IDX:1),shard:h100:5(3/4,-/4,2/4,0/4)"
    cluster.berth("kill slurmctld")
    cluster.berth("start slurmctld")
    cluster.wait("the node is there again", lambda: "State=MIXED" in cluster.out("scontrol show node node-1").replace("NOT_RESPONDING", "no"))
    assert before in cluster.out("scontrol show node node-1 -d")
    assert "CUDA_VISIBLE_DEVICES=0" in held(cluster, "--gres=shard:1")[1]


def test_steps_take_some_of_the_jobs_shards(cluster):
    job = cluster.submit(f"-N1 -n2 --tres-per-task=gres/shard:1 -o steps.txt --wrap '"
                         "srun bash -c \"echo all \\$CUDA_VISIBLE_DEVICES \\$SLURM_SHARDS_ON_NODE\"; "
                         "srun -n1 --exact --gres=shard:1 bash -c \"echo part \\$SLURM_STEP_GPUS \\$SLURM_SHARDS_ON_NODE \\$SLURM_GPUS_ON_NODE\"; "
                         "srun -n1 --gres=shard:3 true || echo refused; srun -n1 --gres=none bash -c \"echo none \\${CUDA_VISIBLE_DEVICES-unset}\"'")
    assert cluster.wait_end(job) == "COMPLETED"
    lines = cluster.read("steps.txt").splitlines()
    assert lines.count("all 0 2") == 2 and "part 0 1 1" in lines and "refused" in lines and "none unset" in lines
    assert "gres/shard=2" in cluster.out(f"sacct -n -P -j {job} -X -o AllocTRES").split(",")


@pytest.mark.parametrize("arguments", ["--gres=shard:1,gpu:1", "--gres=shard:1 --gpus=1"])
def test_shards_do_not_go_with_whole_gpus(cluster, arguments):
    result = cluster.run(f"sbatch {arguments} --wrap true", check=False)
    assert (result.rc, result.err.strip()) == (1, "sbatch: error: Invalid generic resource (gres) specification")


def test_more_than_one_gpu_has_is_refused(cluster):
    result = cluster.run("sbatch --gres=shard:5 --wrap true", check=False)
    assert result.rc == 1 and "Requested node configuration is not available" in result.err


def test_equal_shares_on_several_nodes(cluster):
    assert sorted(cluster.out("srun -N2 -l --gres=shard:2 bash -c 'echo $CUDA_VISIBLE_DEVICES $SLURM_SHARDS_ON_NODE'").splitlines()) == ["0: 0 2", "1: 0 2"]
