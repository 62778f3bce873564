"""StateSaveLocation in bad hands: damaged, taken away, of another program, read-only; a node that left slurm.conf while it ran a job."""
import os
import re
import shutil
import sqlite3
import subprocess

import pytest

CLUSTER = dict(nodes=3, cpus=4, gpus=0)


def start(cluster, *options):
    """slurmctld in the foreground, that should not come up: (exit status, what it said)."""
    done = subprocess.run([shutil.which("slurmctld", path=cluster.env()["PATH"]), "-D", "-f", f"{cluster.home}/etc/slurm.conf", *options],
                          env=cluster.env(), capture_output=True, text=True, errors="replace", timeout=30)
    return done.returncode, done.stderr


@pytest.fixture()
def state(cluster):
    """The folder of a controller that was killed; put back and started afterwards."""
    jobs = [cluster.submit("-n1 -o /dev/null --hold --wrap true") for _ in range(3)]
    folder, copy = f"{cluster.home}/state", f"{cluster.home}/state.copy"
    cluster.berth("kill slurmctld")
    subprocess.run(["cp", "-a", folder, copy], check=True)
    yield folder
    shutil.rmtree(folder)
    os.rename(copy, folder)
    cluster.berth("start slurmctld")
    for job in jobs:
        assert cluster.state(job) == "PENDING"
    cluster.run("scancel " + " ".join(map(str, jobs)))


def test_damaged_file(cluster, state):
    owner = os.stat(f"{state}/state.db")
    for wal in "state.db-wal", "state.db-shm":
        if os.path.exists(f"{state}/{wal}"):
            os.unlink(f"{state}/{wal}")
    with open(f"{state}/state.db", "r+b") as f:
        f.write(b"no database at all ".ljust(4096, b"."))
    rc, said = start(cluster)
    assert rc == 1 and "state.db" in said and "not a database" in said and "Put back a copy" in said
    with open(f"{state}/state.db", "rb") as f:
        assert f.read(11) == b"no database"
    assert os.stat(f"{state}/state.db").st_uid == owner.st_uid


def test_log_taken_away(cluster, state):
    os.unlink(f"{state}/state.db-wal")
    rc, said = start(cluster)
    assert rc == 1 and "state.db-wal is gone" in said and "slurmctld -i" in said


def test_record_that_cannot_be_read(cluster, state):
    with sqlite3.connect(f"{state}/state.db") as db:
        assert db.execute("UPDATE job SET data=x'ffffff' WHERE key=(SELECT max(key) FROM job)").rowcount == 1
    subprocess.run(["chown", "-R", f"--reference={state}.copy", state], check=True)
    rc, said = start(cluster)
    assert rc == 1 and "1 records in StateSaveLocation" in said and "slurmctld -i" in said


def test_another_programs_database(cluster, state):
    for name in os.listdir(state):
        if name.startswith("state.db"):
            os.unlink(f"{state}/{name}")
    with sqlite3.connect(f"{state}/state.db") as db:
        db.execute("CREATE TABLE songs(name TEXT)")
    subprocess.run(["chown", "-R", f"--reference={state}.copy", state], check=True)
    rc, said = start(cluster)
    assert rc == 1 and "is no state file of slurmctld: it has a table songs" in said
    with sqlite3.connect(f"{state}/state.db") as db:
        assert [row[0] for row in db.execute("SELECT name FROM sqlite_master")] == ["songs"]


def test_state_of_a_newer_version(cluster, state):
    with sqlite3.connect(f"{state}/state.db") as db:
        db.execute("UPDATE meta SET data=CAST('99' AS BLOB) WHERE key=1")
    subprocess.run(["chown", "-R", f"--reference={state}.copy", state], check=True)
    rc, said = start(cluster)
    assert rc == 1 and "schema version 99, newer than this program knows" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_folder_of_somebody_else(cluster, state):
    os.chown(state, 0, 0)
    os.chmod(state, 0o755)
    rc, said = start(cluster)
    assert rc == 1 and f"StateSaveLocation {state}: Permission denied" in said and "It is a folder that SlurmUser" in said


def without(text, node):
    text = re.sub(rf"^NodeName={node} .*\n", "", text, flags=re.M)
    return text.replace(f"node-[1-{node[-1]}]", f"node-[1-{int(node[-1]) - 1}]")


def test_node_taken_out_of_the_configuration(cluster):
    """Its batch job goes back to the queue; what was not to be requeued ends NODE_FAIL; ids go on."""
    conf = f"{cluster.home}/etc/slurm.conf"
    before = cluster.read(conf)
    again = cluster.submit("-N3 -n3 --requeue -o /dev/null --wrap 'sleep 600'")
    cluster.wait_state(again, "RUNNING")
    once = cluster.submit("-w node-3 -n1 --no-requeue -o /dev/null --wrap 'sleep 600'")
    here = cluster.submit("-w node-1 -n1 -o /dev/null --wrap 'sleep 600'")
    for job in once, here:
        cluster.wait_state(job, "RUNNING")
    cluster.berth("kill slurmctld")
    changed = without(before, "node-3")
    assert changed != before
    with open(conf, "w") as f:
        f.write(changed)
    try:
        cluster.run("slurmctld")
        assert cluster.state(here) == "RUNNING"
        assert cluster.state(once) == "NODE_FAIL"
        assert cluster.state(again) == "PENDING" and cluster.job(again, "Restarts") == "1"
        cluster.run(f"scontrol update job {again} NumNodes=2")
        cluster.wait_state(again, "RUNNING")
        assert cluster.submit("--hold -o /dev/null --wrap true") > here
    finally:
        cluster.run("scontrol shutdown slurmctld", check=False)
        cluster.wait("slurmctld is gone", lambda: cluster.run("scontrol ping", check=False).rc)
        with open(conf, "w") as f:
            f.write(before)
        cluster.berth("start slurmctld")
        cluster.run("scancel -u root")
        cluster.wait_idle()
