"""What a node measures beside processes: GPUs by NVIDIA's library (one of our own here), energy by it or by the kernel's counters (a folder of our own)."""
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
AcctGatherNodeFreq=1
JobAcctGatherFrequency=1
AccountingStorageTRES=gres/gpu
NodeName=gpu1 NodeAddr=127.0.0.1 Port={PORT} CPUs=4 RealMemory=400 Gres=gpu:4
PartitionName=gpus Nodes=gpu1 State=UP
""")
TASK = """
import os, time
n = os.environ["SLURM_PROCID"]
with open(f"pid.{n}.new", "w") as f:
    f.write(str(os.getpid()))
os.rename(f"pid.{n}.new", f"pid.{n}")
while not os.path.exists("go"):
    time.sleep(0.05)
"""


class Node:
    """gpu1 with a library and counters of the test's own."""
    def __init__(self, cluster, folder):
        self.cluster, self.folder, self.proc = cluster, folder, None

    def start(self, energy, **env):
        c = self.cluster
        conf = f"{c.home}/etc/slurm.conf"
        lines = [line for line in open(conf) if not line.startswith("AcctGatherEnergyType")]
        with open(conf, "w") as f:
            f.writelines(lines + [f"AcctGatherEnergyType=acct_gather_energy/{energy}\n"])
        with open(f"{c.home}/etc/gres.conf", "w") as f:
            f.write("NodeName=gpu1 AutoDetect=nvml\n")
        c.run("scontrol reconfigure")
        self.proc = subprocess.Popen([f"{BUILD}/sbin/slurmd", "-D", "-N", "gpu1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                     env={**c.env(), "LD_LIBRARY_PATH": self.folder, "FAKE_GPUS": "4", "FAKE_GPU_PIDS": f"{self.folder}/pids", **env})
        c.wait("node idle", lambda: c.node_state("gpu1").lower().startswith("idle"))

    def stop(self):
        if self.proc:
            self.proc.send_signal(signal.SIGTERM)
            self.proc.wait(20)
        self.proc = None


@pytest.fixture
def node(cluster, tmp_path):
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libnvidia-ml.so.1", f"{HERE}/nvml/fake.c"], check=True)
    node = Node(cluster, str(tmp_path))
    yield node
    node.stop()


def rows(text):
    lines = text.splitlines()
    return [dict(zip(lines[0].split("|"), line.split("|"))) for line in lines[1:]]


def tres(text):
    return dict(part.split("=", 1) for part in text.split(",") if part)


def run_tasks(cluster, options):
    for name in ("go", "pid.0", "pid.1"):
        if os.path.exists(f"{cluster.work}/{name}"):
            os.remove(f"{cluster.work}/{name}")
    with open(f"{cluster.work}/task.py", "w") as f:
        f.write(TASK)
    job = cluster.submit(f"-p gpus -n2 --mem=100 {options} -o /dev/null --wrap 'srun -n2 python3 task.py'")
    cluster.wait("tasks run", lambda: all(os.path.exists(f"{cluster.work}/pid.{n}") for n in (0, 1)))
    return job, [int(cluster.read(f"pid.{n}")) for n in (0, 1)]


def sstat(cluster, job, field):
    r = rows(cluster.out(f"sstat -P --noconvert -j {job} -o JobID,{field}"))
    return r[0][field] if r else ""


def end(cluster, job):
    open(f"{cluster.work}/go", "w").close()
    assert cluster.wait_end(job) == "COMPLETED"


def test_gpus_and_their_energy(cluster, node):
    """Task 0 works on two cards, task 1 on one; another process on a third card is nobody's."""
    node.start("gpu")
    job, pid = run_tasks(cluster, "--gres=gpu:3")
    with open(f"{node.folder}/pids.new", "w") as f:
        f.write(f"{pid[0]} 3 50 100\n{pid[0]} 2 40 200\n{pid[1]} 1 20 1000\n1 0 99 5000\n")
    os.rename(f"{node.folder}/pids.new", f"{node.folder}/pids")
    cluster.wait("GPUs in sstat", lambda: tres(sstat(cluster, job, "TRESUsageInMax")).get("gres/gpuutil") == "90")
    top = tres(sstat(cluster, job, "TRESUsageInMax"))
    assert top["gres/gpumem"] == str(1000 << 20) and tres(sstat(cluster, job, "TRESUsageInTot"))["gres/gpumem"] == str(1300 << 20)
    assert tres(sstat(cluster, job, "TRESUsageInMaxTask"))["gres/gpumem"] == "1" and tres(sstat(cluster, job, "TRESUsageInMaxTask"))["gres/gpuutil"] == "0"
    assert list(top) == sorted(top) and tres(sstat(cluster, job, "TRESUsageInMaxNode"))["gres/gpuutil"] == "gpu1"
    cluster.wait("energy in sstat", lambda: int(sstat(cluster, job, "ConsumedEnergyRaw") or 0) > 0)
    cluster.wait("power of the node: four cards of 200 W", lambda: re.search(r"CurrentWatts=(7\d\d|8\d\d|9\d\d) AveWatts=[789]\d\d", cluster.out("scontrol show node gpu1")))
    assert "CurrentWatts=0 AveWatts=0" in cluster.out("scontrol show node node-1")
    end(cluster, job)
    fields = "JobID,TRESUsageInMax,TRESUsageInAve,TRESUsageInMin,ConsumedEnergyRaw,ConsumedEnergy,ElapsedRaw"
    found = cluster.wait("accounting", lambda: [r for r in rows(cluster.out(f"sacct -P --noconvert -j {job} -o {fields}")) if r["JobID"] == f"{job}.0" and r["TRESUsageInMax"]])
    most, mean, least = (tres(found[0][f"TRESUsageIn{w}"]) for w in ("Max", "Ave", "Min"))
    assert most["gres/gpuutil"] == "90" and most["gres/gpumem"] == str(1000 << 20) and least["gres/gpumem"] == str(300 << 20)
    assert 0 < int(mean["gres/gpuutil"]) <= 55 and int(least["gres/gpuutil"]) <= 20
    joules = int(found[0]["ConsumedEnergyRaw"])
    assert 0 < joules <= 600 * (int(found[0]["ElapsedRaw"]) + 2) and most["energy"] == str(joules)
    whole = rows(cluster.out(f"sacct -P -j {job} -o ConsumedEnergyRaw,ConsumedEnergy"))[0]
    assert int(whole["ConsumedEnergyRaw"]) >= joules and re.fullmatch(r"\d+|\d+\.\d\d[KM]", whole["ConsumedEnergy"])
    listed = {t["name"]: t["count"] for t in __import__("json").loads(cluster.out(f"sacct --json -j {job}"))["jobs"][0]["steps"][-1]["tres"]["requested"]["max"]}
    assert listed["gpuutil"] == 90 and listed["gpumem"] == 1000 << 20
    # A step without GPUs has no such figures.
    job, _ = run_tasks(cluster, "")
    cluster.wait("figures", lambda: "mem=" in sstat(cluster, job, "TRESUsageInTot"))
    assert "gres/" not in sstat(cluster, job, "TRESUsageInTot")
    end(cluster, job)


def test_a_driver_that_does_not_tell_of_processes(cluster, node):
    """Then the share of the whole card counts; and when the process that asks is killed, the step goes on and the last figures stand."""
    node.start("none", FAKE_GPU_WHOLE="1")
    job, pid = run_tasks(cluster, "--gres=gpu:1")
    with open(f"{node.folder}/pids", "w") as f:
        f.write(f"{pid[1]} 3 0 10\n")
    cluster.wait("GPUs in sstat", lambda: tres(sstat(cluster, job, "TRESUsageInMax")).get("gres/gpuutil") == "77")
    assert "CurrentWatts=0" in cluster.out("scontrol show node gpu1") and sstat(cluster, job, "ConsumedEnergyRaw") == "0"
    children = open(f"/proc/{node.proc.pid}/task/{node.proc.pid}/children").read().split()
    watcher = [int(p) for p in children if open(f"/proc/{p}/comm").read() == "slurmd-gpus\n"]
    assert len(watcher) == 1
    os.kill(watcher[0], signal.SIGKILL)
    cluster.wait("the watcher to be gone", lambda: not os.path.exists(f"/proc/{watcher[0]}"))
    end(cluster, job)
    assert cluster.node_state("gpu1").lower().startswith("idle")


def test_energy_of_the_processors(cluster, node):
    """acct_gather_energy/rapl: packages and memory, not cores; a counter that runs over is followed."""
    root = f"{node.folder}/powercap"
    zones = {"intel-rapl:0": ("package-0", 10**9 - 10**6), "intel-rapl:1": ("package-1", 5), "intel-rapl:0:0": ("core", 77), "intel-rapl:0:1": ("dram", 0)}

    def count(zone, uj):
        with open(f"{root}/{zone}/energy_uj.new", "w") as f:
            f.write(f"{uj}\n")
        os.rename(f"{root}/{zone}/energy_uj.new", f"{root}/{zone}/energy_uj")
    for zone, (name, uj) in zones.items():
        os.makedirs(f"{root}/{zone}")
        for file, text in (("name", name), ("max_energy_range_uj", 10**9)):
            with open(f"{root}/{zone}/{file}", "w") as f:
                f.write(f"{text}\n")
        count(zone, uj)
    node.start("rapl", BERTH_POWERCAP=root)
    job, _ = run_tasks(cluster, "")
    cluster.wait("a first look", lambda: sstat(cluster, job, "ConsumedEnergyRaw") == "0")
    count("intel-rapl:0", 2 * 10**6)             # ran over: 1 + 2 J
    count("intel-rapl:1", 1000 * 10**6 + 5)      # 1000 J
    count("intel-rapl:0:0", 10**9)               # in its package
    count("intel-rapl:0:1", 497 * 10**6)         # 497 J
    cluster.wait("1500 J", lambda: sstat(cluster, job, "ConsumedEnergyRaw") == "1500")
    assert rows(cluster.out(f"sstat -P -j {job} -o ConsumedEnergy"))[0]["ConsumedEnergy"] == "1.50K"
    assert tres(sstat(cluster, job, "TRESUsageInTot"))["energy"] == "1500"
    end(cluster, job)
    found = cluster.wait("accounting", lambda: [r for r in rows(cluster.out(f"sacct -P -j {job} -o JobID,ConsumedEnergyRaw")) if r["JobID"] == f"{job}.0" and r["ConsumedEnergyRaw"] == "1500"])
    assert found and rows(cluster.out(f"sacct -P -j {job} -o ConsumedEnergyRaw"))[0]["ConsumedEnergyRaw"] == "1500"      # the script's is the same energy


def test_no_counters(cluster, node):
    node.start("rapl", BERTH_POWERCAP=f"{node.folder}/nothing")
    log = cluster.out("scontrol show config | sed -n 's/^SlurmdLogFile *= //p'").strip().replace("%n", "gpu1")
    cluster.wait("what the log says", lambda: "no counter of /sys/class/powercap can be read" in open(log).read())
