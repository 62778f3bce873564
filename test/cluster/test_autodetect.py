"""AutoDetect of gres.conf: NVIDIA's library (one of our own here) and what the kernel's driver shows; nothing of NVIDIA's is needed to build or to start."""
import os
import re
import shutil
import signal
import subprocess

import pytest

from conftest import BUILD, free_port

HERE = os.path.dirname(os.path.abspath(__file__))


PORT = free_port()
CLUSTER = dict(nodes=1, cpus=2, gpus=0, extra_conf=f"""GresTypes=gpu
NodeName=gpu1 NodeAddr=127.0.0.1 Port={PORT} CPUs=2 RealMemory=100 Gres=gpu:h100:4
PartitionName=gpus Nodes=gpu1 State=UP
""")


@pytest.fixture(scope="module")
def nvml(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nvml")
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", f"{HERE}/nvml/fake.c"], check=True)
    return str(folder)


@pytest.fixture
def site(tmp_path):
    """slurmd -G of one node, with these GPUs configured and these lines in gres.conf."""
    def ask(gres, gres_conf, cards=None, library=None):
        (tmp_path / "slurm.conf").write_text(f"ClusterName=a\nSlurmctldHost=localhost\nGresTypes=gpu\nStateSaveLocation={tmp_path}\n"
                                             f"NodeName=n1 CPUs=2 Gres={gres}\nPartitionName=p Nodes=ALL\n")
        (tmp_path / "gres.conf").write_text(gres_conf)
        env = {**os.environ, "LD_LIBRARY_PATH": library or "", **({"FAKE_GPUS": str(cards)} if cards else {})}
        r = subprocess.run([f"{BUILD}/sbin/slurmd", "-G", "-N", "n1", "-f", tmp_path / "slurm.conf"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        return r.returncode, r.stdout
    return ask


def rows(text):
    return [dict(w.split("=", 1) for w in line.split()[1:]) for line in text.splitlines() if line.startswith("Gres ")]


@pytest.mark.parametrize("how", ["nvml", "full"])
def test_devices_are_found(site, nvml, how):
    rc, out = site("gpu:h100:4", f"AutoDetect={how}\n", 4, nvml)
    found = rows(out)
    assert rc == 0 and [g["File"] for g in found] == [f"/dev/nvidia{i}" for i in range(4)]
    assert [g["Index"] for g in found] == list("0123") and {g["Type"] for g in found} == {"h100"}
    assert {g["Flags"] for g in found} == {"nvidia_gpu_env"}
    assert [g["Links"] for g in found] == ["-1,2,0,0", "2,-1,0,0", "0,0,-1,2", "0,0,2,-1"]


def test_a_type_must_be_part_of_the_name_found(site, nvml):
    rc, out = site("gpu:a100:4", "AutoDetect=nvml\n", 4, nvml)
    assert rc == 1 and "gres/gpu:a100 count reported lower than configured (0 < 4)" in out
    assert site("gpu:nvidia_h100_80gb_hbm3:2", "AutoDetect=nvml\n", 4, nvml)[0] == 0


def test_case_82_the_types_that_are_there_are_named(site, nvml):
    """A configured type that no device has: the reason names it, and what was detected instead."""
    rc, out = site("gpu:h100_3g.40gb:1", "AutoDetect=nvml\n", 2, nvml)
    assert rc == 1 and "gres/gpu:h100_3g.40gb count reported lower than configured (0 < 1); detected and of another type: nvidia_h100_80gb_hbm3" in out
    assert "of another type" not in site("gpu:4", "AutoDetect=nvml\n", 3, nvml)[1]


def test_fewer_than_configured(site, nvml):
    rc, out = site("gpu:4", "AutoDetect=nvml\n", 3, nvml)
    assert rc == 1 and "gres/gpu count reported lower than configured (3 < 4)" in out and len([g for g in rows(out) if "File" in g]) == 3


def test_devices_of_gres_conf_are_held_against_it(site, nvml):
    assert site("gpu:h100:2", "AutoDetect=nvml\nName=gpu Type=h100 File=/dev/nvidia[2-3]\n", 4, nvml)[0] == 0
    rc, out = site("gpu:h100:2", "AutoDetect=nvml\nName=gpu Type=h100 File=/dev/nvidia[3-4]\n", 4, nvml)
    assert rc == 1 and "/dev/nvidia4" in out


@pytest.mark.parametrize("how", ["nvml", "nvidia", "full"])
def test_without_a_driver(site, how):
    if os.path.exists("/proc/driver/nvidia"):
        pytest.skip("this machine has GPUs")
    rc, out = site("gpu:4", f"AutoDetect={how}\n")
    assert rc == 1 and f"AutoDetect={how}: no GPU was found" in out


def test_off_for_a_node_wins(site):
    rc, out = site("gpu:2", "AutoDetect=nvml\nNodeName=n1 AutoDetect=off\n")
    assert rc == 0 and rows(out)[0]["Count"] == "2"


def test_a_cluster_uses_them(cluster, nvml):
    """The node registers; a step gets its devices; with a card less the node is drained and says so."""
    def slurmd(cards):
        env = {**cluster.env(), "LD_LIBRARY_PATH": nvml, "FAKE_GPUS": str(cards)}
        return subprocess.Popen([f"{BUILD}/sbin/slurmd", "-D", "-N", "gpu1"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(f"{cluster.home}/etc/gres.conf", "w") as f:
        f.write("NodeName=gpu1 AutoDetect=nvml\n")
    cluster.run("scontrol reconfigure")
    proc = slurmd(4)
    try:
        cluster.wait("node idle", lambda: cluster.node_state("gpu1").lower().startswith("idle"))
        assert cluster.out("srun -p gpus --mem=10 --gres=gpu:h100:2 printenv CUDA_VISIBLE_DEVICES") == "0,1"
        first = cluster.submit("-p gpus --mem=10 --gres=gpu:1 -o /dev/null --wrap 'sleep 100'")
        cluster.wait_state(first, "RUNNING")
        assert cluster.out("srun -p gpus --mem=10 --gres=gpu:2 printenv CUDA_VISIBLE_DEVICES") == "2,3"                   # the pair that is joined
        cluster.run(f"scancel {first}")
        assert cluster.run("srun -p gpus --mem=10 --gres=gpu:2 printenv ROCR_VISIBLE_DEVICES", check=False).rc != 0      # as nvidia_gpu_env says
    finally:
        proc.send_signal(signal.SIGTERM)
        proc.wait(20)
    proc = slurmd(3)
    try:
        cluster.wait("node drained", lambda: "drain" in cluster.node_state("gpu1").lower())
        assert re.search(r"gres/gpu:h100 count reported lower than configured \(3 < 4\)", cluster.out("scontrol show node gpu1"))
    finally:
        proc.send_signal(signal.SIGTERM)
        proc.wait(20)
