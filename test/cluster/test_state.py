"""StateSaveLocation in bad hands: damaged, taken away, of another program, of a newer version (R47); a node that left slurm.conf while it ran a job."""
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


def shut_down(cluster):
    cluster.run("scontrol shutdown slurmctld", check=False)
    cluster.wait("slurmctld is gone", lambda: cluster.run("scontrol ping", check=False).rc)
    cluster.wait("its pid file is free", lambda: not os.path.exists(f"{cluster.home}/run/slurmctld.slurmpid") or cluster.run(f"flock -n {cluster.home}/run/slurmctld.slurmpid true", check=False).rc == 0)


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


def set_owner(state):
    subprocess.run(["chown", "-R", f"--reference={state}.copy", state], check=True)


@pytest.mark.parametrize("table", ["job", "script", "node"])
def test_damaged_record(cluster, state, table):
    """Refused by name; with -i all else is there, and the start after it needs no -i."""
    with sqlite3.connect(f"{state}/state.db") as db:
        key, data = db.execute(f"SELECT key, data FROM {table} ORDER BY key DESC").fetchone()
        changed = bytes(data[:-1]) + bytes([data[-1] ^ 1])
        assert db.execute(f"UPDATE {table} SET data=? WHERE key=?", (changed, key)).rowcount == 1
        jobs = db.execute("SELECT count(*) FROM job").fetchone()[0]
    set_owner(state)
    rc, said = start(cluster)
    assert rc == 1 and f"state.db: record {key} in table {table} is damaged" in said and "slurmctld -i" in said
    cluster.run("slurmctld -i")
    assert len(cluster.out("squeue -h -t all").split("\n")) == jobs - (table == "job")
    shut_down(cluster)
    cluster.run("slurmctld")
    shut_down(cluster)


def test_log_cut_off(cluster, state):
    """The end of the log is lost: acknowledged jobs are missing, and that is said."""
    log = f"{state}/state.db-wal"
    with open(log, "rb") as f:
        text = f.read()
    frame = 4096 + 24
    used = [i for i in range((len(text) - 32) // frame) if text[32 + i * frame + 8:32 + i * frame + 16] == text[16:24]]   # those with the salts of the head
    os.truncate(log, 32 + used[-1] * frame)
    rc, said = start(cluster)
    assert rc == 1 and "state.db is older than what slurmctld has acknowledged: its last 1 changes are missing" in said and "slurmctld -i" in said
    cluster.run("slurmctld -i")
    shut_down(cluster)


def test_another_programs_database(cluster, state):
    for name in os.listdir(state):
        if name.startswith("state.db"):
            os.unlink(f"{state}/{name}")
    with sqlite3.connect(f"{state}/state.db") as db:
        db.execute("CREATE TABLE songs(name TEXT)")
    set_owner(state)
    rc, said = start(cluster)
    assert rc == 1 and "is no state file of slurmctld: it has a table songs" in said
    with sqlite3.connect(f"{state}/state.db") as db:
        assert [row[0] for row in db.execute("SELECT name FROM sqlite_master")] == ["songs"]


def test_state_of_a_newer_version(cluster, state):
    with sqlite3.connect(f"{state}/state.db") as db:
        db.execute("UPDATE meta SET data=CAST('99' AS BLOB) WHERE key=1")
    set_owner(state)
    rc, said = start(cluster)
    assert rc == 1 and "schema version 99, newer than this program knows" in said


def test_r47_back_from_a_newer_version(cluster):
    """A newer program has changed the file and left in it how that is undone: this one takes it back. Running jobs go on, what waits still waits, ids go on."""
    path = f"{cluster.home}/state/state.db"
    running = cluster.submit("-n1 -o /dev/null --wrap 'while [ ! -e back-go ]; do sleep 0.1; done; exit 3'")
    cluster.wait_state(running, "RUNNING")
    held = cluster.submit("-H -a 1-5 -o /dev/null --wrap true")
    after = cluster.submit(f"-d afterany:{running} -o /dev/null --wrap true")
    cluster.berth("kill slurmctld")
    before = os.stat(path)
    with sqlite3.connect(path) as db:
        known = int(db.execute("SELECT data FROM meta WHERE key=1").fetchone()[0])
        db.execute("ALTER TABLE job ADD COLUMN later TEXT DEFAULT 'x'")
        db.execute("INSERT INTO migration(version, down) VALUES(?, 'ALTER TABLE job DROP COLUMN later')", (known + 1,))
        db.execute("UPDATE meta SET data=CAST(? AS BLOB) WHERE key=1", (str(known + 1),))
    for name in os.listdir(os.path.dirname(path)):
        os.chown(os.path.join(os.path.dirname(path), name), before.st_uid, before.st_gid)
    cluster.berth("start slurmctld")
    assert f"going back from schema version {known + 1}" in cluster.read(f"{cluster.home}/log/slurmctld.log")
    assert cluster.state(running) == "RUNNING" and cluster.job(after, "Reason") == "Dependency" and cluster.out(f"squeue -h -r -j {held} -o %i | wc -l") == "5"
    cluster.run("touch back-go")
    assert cluster.wait_end(running) == "FAILED" and cluster.job(running, "ExitCode") == "3:0" and cluster.job(running, "Restarts") == "0"
    assert cluster.wait_end(after) == "COMPLETED"
    assert cluster.submit("-H -o /dev/null --wrap true") > after
    cluster.run("scancel -u root")
    cluster.wait_idle()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_folder_of_somebody_else(cluster, state):
    os.chown(state, 0, 0)
    os.chmod(state, 0o755)
    rc, said = start(cluster)
    assert rc == 1 and f"StateSaveLocation {state}: Permission denied" in said and "It is a folder that SlurmUser" in said


def without(text, node):
    text = re.sub(rf"^NodeName={node} .*\n", "", text, flags=re.M)
    return text.replace(f"node-[1-{node[-1]}]", f"node-[1-{int(node[-1]) - 1}]")


def test_where_a_job_ran_is_known_after_a_restart(cluster):
    job = cluster.submit(f"-N2 -w node-[2-3] -o {cluster.work}/%N-%j --wrap true")
    cluster.wait_end(job)
    before = {k: cluster.job(job, k) for k in ("BatchHost", "StdOut", "NodeList")}
    assert before == {"BatchHost": "node-2", "StdOut": f"{cluster.work}/node-2-{job}", "NodeList": "node-[2-3]"}
    cluster.berth("kill slurmctld")
    cluster.berth("start slurmctld")
    assert {k: cluster.job(job, k) for k in before} == before


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
        shut_down(cluster)
        with open(conf, "w") as f:
            f.write(before)
        cluster.berth("start slurmctld")
        cluster.run("scancel -u root")
        cluster.wait_idle()
