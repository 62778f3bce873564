"""The disk of slurmctld's state, and that of slurmdbd's file, turn read-only under them: nothing is acknowledged, that is said, and all goes on by itself afterwards."""
import os
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
CLUSTER = dict(nodes=1, cpus=4, gpus=0)


class Disk:
    """A folder that can be made read-only for the daemon that was started with the shim."""
    def __init__(self, cluster, folder):
        self.folder, self.flag = folder, folder + ".readonly"

    def read_only(self):
        with open(self.flag, "w"):
            pass

    def writable(self):
        if os.path.exists(self.flag):
            os.unlink(self.flag)


@pytest.fixture
def disk(cluster, request):
    daemon, name = request.param
    shim = f"{cluster.dir}/readonly.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, f"{HERE}/readonly.c", "-ldl"], check=True)
    made = Disk(cluster, f"{cluster.home}/{name}")
    cluster.berth(f"kill {daemon}")
    cluster.run(f"berth start {daemon}", env={"LD_PRELOAD": shim, "READONLY_FOLDER": made.folder})
    yield made
    made.writable()
    cluster.berth(f"kill {daemon}", check=False)
    cluster.berth(f"start {daemon}")


@pytest.mark.parametrize("disk", [("slurmctld", "state")], indirect=True)
def test_state_of_slurmctld(cluster, disk):
    running = cluster.submit("-o ro-%j.txt --wrap 'while [ ! -e ro-go ]; do sleep 0.1; done; exit 3'")
    cluster.wait_state(running, "RUNNING")
    kept = [cluster.submit("-H -J kept --wrap true") for _ in range(3)]
    disk.read_only()
    # whoever asked just before has no answer; from then on it is no
    cluster.wait("slurmctld to see it", lambda: cluster.run("sbatch -H -J unknown --wrap true", check=False).rc)
    again = cluster.run("sbatch -H -J refused --wrap true", check=False)
    assert again.rc and not again.out, again
    assert "cannot store the change now" in again.err
    # what only reads is answered, what runs goes on
    assert cluster.out("squeue -h -n kept -o %i | sort").split() == [str(j) for j in kept]
    assert cluster.state(running) == "RUNNING"
    log = f"{cluster.home}/log/slurmctld.log"
    assert "new changes are refused until it can be written again" in cluster.read(log)
    cluster.run("touch ro-go")
    disk.writable()
    assert cluster.wait_end(running) == "FAILED" and cluster.job(running, "ExitCode") == "3:0"
    later = cluster.wait("it takes jobs again", lambda: cluster.run("sbatch -H -J kept --parsable --wrap true", check=False).out.strip())
    assert "can be written again; changes are taken" in cluster.read(log)
    cluster.berth("kill slurmctld")
    cluster.berth("start slurmctld")
    assert cluster.out("squeue -h -n kept -o %i | sort").split() == [str(j) for j in kept] + [later]
    assert cluster.out("squeue -h -n refused -o %i") == ""
    cluster.run("scancel -n kept,unknown")


@pytest.mark.parametrize("disk", [("slurmdbd", "db")], indirect=True)
def test_file_of_slurmdbd(cluster, disk):
    disk.read_only()
    jobs = [cluster.submit("-o /dev/null --wrap true") for _ in range(3)]
    for job in jobs:
        assert cluster.wait_end(job) == "COMPLETED"
    log = f"{cluster.home}/log/slurmctld.log"
    cluster.wait("slurmctld says that it keeps them", lambda: "accounting records are kept until it answers" in cluster.read(log))
    disk.writable()
    want = {f"{job}|COMPLETED" for job in jobs}
    cluster.wait("all in accounting", lambda: want <= set(cluster.run("sacct -a -n -X -P -S now-1hour -o JobIDRaw,State", check=False).out.split()))
