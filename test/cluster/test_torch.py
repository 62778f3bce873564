"""Real PyTorch on gloo: started by plain srun and by torchrun (R31, R32), and the loss of a node in mid-training (R42)."""
import os
import shutil

import pytest

CLUSTER = dict(nodes=3, cpus=8, gpus=8)
DDP = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "examples", "ddp")


@pytest.fixture(scope="module", autouse=True)
def example(cluster):
    for name in os.listdir(DDP):
        shutil.copy(os.path.join(DDP, name), cluster.work)


def test_training_survives_the_loss_of_a_node(cluster):
    job = cluster.submit("train.sbatch --epochs 8 --epoch-seconds 0.7")
    out = f"digits-{job}.out"
    cluster.wait("epoch 2", lambda: os.path.exists(f"{cluster.work}/{out}") and "epoch  2" in cluster.read(out))
    victim = cluster.out(f"scontrol show hostnames {cluster.job(job, 'NodeList')}").split()[-1]
    cluster.berth(f"kill {victim}")
    assert cluster.wait_end(job, limit=120) == "COMPLETED", cluster.read(out)
    text = cluster.read(out)
    assert "resuming at epoch" in text and "restart 1" in text, text
    assert float(text.split("done: accuracy ")[1].split("%")[0]) > 90
    rows = cluster.wait("both attempts in sacct", lambda: (lambda r: r if len(r) == 2 and "COMPLETED" in r[-1] else None)(cluster.out(f"sacct -n -X -P -D -j {job} -o state").splitlines()))
    assert rows == ["NODE_FAIL", "COMPLETED"] or rows == ["REQUEUED", "COMPLETED"], rows
    cluster.berth(f"start {victim}")


def test_torchrun(cluster):
    cluster.wait_idle()
    job = cluster.submit("torchrun.sbatch --epochs 2")
    assert cluster.wait_end(job, limit=120) == "COMPLETED", cluster.read(f"digits-torchrun-{job}.out")
    text = cluster.read(f"digits-torchrun-{job}.out")
    assert "4 ranks" in text and "done: accuracy" in text
