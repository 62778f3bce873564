"""Full disks under real daemons: what cannot be kept is refused and said, nothing acknowledged is lost, and all of it goes on when there is room.

Each daemon's folder is put on a small tmpfs of its own; where mounting is not permitted the tests are skipped.
"""
import os
import re
import shutil
import subprocess
import threading

import pytest

CLUSTER = dict(nodes=2, cpus=4, gpus=0)


def owner(path):
    return os.stat(path).st_uid, os.stat(path).st_gid


class SmallDisk:
    """A folder of a daemon on a tmpfs; the daemon is stopped while it moves there."""

    def __init__(self, cluster, daemon, folder, size):
        self.cluster, self.daemon, self.folder, self.fill = cluster, daemon, os.path.join(cluster.home, folder), None
        cluster.berth(f"kill {daemon}")
        self.old = self.folder + ".old"
        os.rename(self.folder, self.old)
        os.mkdir(self.folder)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "none", self.folder], capture_output=True, text=True)
        if mounted.returncode:
            os.rmdir(self.folder)
            os.rename(self.old, self.folder)
            cluster.berth(f"start {daemon}")
            pytest.skip("mounting a tmpfs is not permitted here: " + mounted.stderr.strip())
        shutil.copystat(self.old, self.folder)
        shutil.chown(self.folder, *owner(self.old))
        self.copy(self.old, self.folder)
        cluster.berth(f"start {daemon}")

    @staticmethod
    def copy(source, target):
        for name in os.listdir(source):
            path = os.path.join(source, name)
            if os.path.isfile(path) and name != "filler":
                # without the empty part of a log, which is larger than the disk
                subprocess.run(["cp", "-p", "--sparse=always", path, target], check=True)

    def make_full(self):
        self.fill = os.path.join(self.folder, "filler")
        with open(self.fill, "wb", buffering=0) as f:
            for size in (65536, 4096, 1):
                try:
                    while f.write(b"x" * size) == size:
                        pass
                except OSError:
                    continue

    def make_room(self):
        os.unlink(self.fill)

    def close(self):
        self.cluster.berth(f"kill {self.daemon}", check=False)
        self.copy(self.folder, self.old)
        subprocess.run(["umount", "-l", self.folder], check=False)
        os.rmdir(self.folder)
        os.rename(self.old, self.folder)
        self.cluster.berth(f"start {self.daemon}")


@pytest.fixture
def disk(request, cluster):
    if os.geteuid():
        pytest.skip("mounting a tmpfs needs root")
    made = SmallDisk(cluster, *request.param)
    yield made
    made.close()


@pytest.mark.parametrize("disk", [("slurmctld", "state", "3m")], indirect=True)
def test_state_of_the_controller(cluster, disk):
    acked, refused, stop = [], [], threading.Event()

    def submitter():
        while not stop.is_set():
            got = cluster.run("sbatch -H --parsable -J full --wrap true", check=False)
            (refused if got.rc else acked).append(got.err if got.rc else int(got.out))

    threads = [threading.Thread(target=submitter) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        cluster.wait("some submissions", lambda: len(acked) > 10)
        disk.make_full()
        cluster.wait("refusals", lambda: len(refused) > 3)
        assert "disk full" in refused[-1], refused[-1]
        assert cluster.run("scontrol ping").out
        assert cluster.run("squeue -h -n full").out
        before = len(acked)
        disk.make_room()
        cluster.wait("more submissions", lambda: len(acked) > before + 10)
    finally:
        stop.set()
        for t in threads:
            t.join()
    log = cluster.read(f"{cluster.home}/log/slurmctld.log")
    assert "new changes are refused until it can be written again" in log and "can be written again; changes are taken" in log
    cluster.berth("kill slurmctld")
    cluster.berth("start slurmctld")
    known = [int(i) for i in cluster.out("squeue -h -n full -o %i").split()]
    assert len(known) == len(set(known)) and set(acked) <= set(known), f"lost: {sorted(set(acked) - set(known))}"
    cluster.run("scancel -n full")


@pytest.mark.parametrize("disk", [("slurmctld", "state", "3m")], indirect=True)
def test_controller_killed_while_its_disk_is_full(cluster, disk):
    acked = [cluster.submit("-H -J kept --wrap true") for _ in range(5)]
    running = cluster.submit("-o late-%j.txt --wrap 'while [ ! -e late-go ]; do sleep 0.1; done; exit 3'")
    cluster.wait_state(running, "RUNNING")
    disk.make_full()
    cluster.wait("a refusal", lambda: "disk full" in cluster.run("sbatch -H --wrap true", check=False).err)
    cluster.run("touch late-go")
    cluster.berth("kill slurmctld")
    cluster.berth("start slurmctld", check=False)     # may say that it cannot
    disk.make_room()
    cluster.wait("slurmctld is up", lambda: cluster.berth("start slurmctld", check=False).rc == 0 or cluster.run("scontrol ping | grep -q UP", check=False).rc == 0)
    assert cluster.wait_end(running) == "FAILED"
    assert cluster.job(running, "ExitCode") == "3:0"
    assert set(acked) <= {int(i) for i in cluster.out("squeue -h -n kept -o %i").split()}
    cluster.run("scancel -n kept")


@pytest.mark.parametrize("disk", [("node-2", "spool/node-2", "1m")], indirect=True)
def test_case_79_spool_of_a_node(cluster, disk):
    cluster.wait_idle()
    at_work = cluster.submit("-w node-2 -o spool-%j.txt --wrap 'touch spool-begun; while [ ! -e spool-go ]; do sleep 0.1; done; echo over; exit 6'")
    cluster.wait("the script begins", lambda: os.path.exists(os.path.join(cluster.work, "spool-begun")))
    disk.make_full()
    # what ends there is known although nothing can be written any more
    cluster.run("touch spool-go")
    assert cluster.wait_end(at_work) == "FAILED"
    assert cluster.job(at_work, "ExitCode") == "6:0"
    # what begins there does not, through the node's own fault: drained, with the reason; the job waits and is not held
    job = cluster.submit("-w node-2 -o spool-%j.txt --wrap 'echo ran'")
    cluster.wait("node-2 is drained", lambda: "drain" in cluster.node_state("node-2"))
    reason = re.search(r"Reason=(.*)", cluster.out("scontrol show node node-2")).group(1)
    assert "No space left on device" in reason and disk.folder in reason, reason
    cluster.wait_state(job, "PENDING")
    assert cluster.job(job, "Restarts") == "1" and cluster.job(job, "Priority") != "0"
    other = cluster.submit("-o spool-%j.txt --wrap 'echo ran'")
    assert cluster.wait_end(other) == "COMPLETED"
    assert cluster.job(other, "NodeList") == "node-1"
    disk.make_room()
    cluster.run("scontrol update nodename=node-2 state=resume")
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.read(f"spool-{job}.txt") == "ran\n"


@pytest.mark.parametrize("disk", [("node-2", "spool/node-2", "1m")], indirect=True)
def test_step_on_a_full_spool(cluster, disk):
    cluster.run("scontrol update nodename=node-2 state=resume", check=False)
    cluster.wait_idle()
    disk.make_full()
    got = cluster.run("srun -w node-2 true", check=False)
    assert got.rc and "No space left on device" in got.err, got
    cluster.wait("node-2 is drained", lambda: "drain" in cluster.node_state("node-2"))
    assert "No space left on device" in cluster.out("scontrol show node node-2")
    disk.make_room()
    cluster.run("scontrol update nodename=node-2 state=resume")
    assert cluster.run("srun -w node-2 hostname").out.strip()


@pytest.mark.parametrize("disk", [("slurmdbd", "db", "16m")], indirect=True)
def test_file_of_slurmdbd(cluster, disk):
    disk.make_full()
    jobs = [cluster.submit("-o /dev/null --wrap true") for _ in range(40)]
    for job in jobs:
        assert cluster.wait_end(job) == "COMPLETED"
    log = f"{cluster.home}/log/slurmctld.log"
    cluster.wait("slurmctld says that it keeps them", lambda: "accounting records are kept until it answers" in cluster.read(log))

    def missing():
        rows = cluster.out("sacct -a -n -X -P -S now-1hour -o JobIDRaw,State", check=False).split()
        return {f"{job}|COMPLETED" for job in jobs} - set(rows)
    assert missing()
    cluster.berth("kill slurmctld")
    cluster.berth("start slurmctld")
    disk.make_room()
    cluster.wait("all in accounting", lambda: not missing())
