"""Reservations as an administrator and the users of one type them (R44): text as recorded from the reference, jobs in, beside and after one, restarts."""
import os
import re
import time

CLUSTER = dict(nodes=4, cpus=8, gpus=4)
RECORDED = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "compat", "resv", "scontrol.txt")


def masked(text):
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "YYYY-MM-DDThh:mm:ss", text)
    return re.sub(r"root_N +INACTIVE", "root_N INACTIVE", re.sub(r"(?<=root_)\d+", "N", text))


def remove_all(cluster):
    for line in cluster.out("scontrol -o show reservation").splitlines():
        if line.startswith("ReservationName="):
            cluster.run("scontrol delete reservation=" + line.split()[0].split("=", 1)[1])


def test_text_is_the_references(cluster):
    wrong = []
    for block in re.split(r"(?m)^(?=\$ )", open(RECORDED).read()):
        if not block:
            continue
        command = block.splitlines()[0][2:]
        r = cluster.run(command, check=False)
        got = f"$ {command}\n{r.out}" + "".join(f"2> {line}\n" for line in r.err.splitlines()) + (f"= {r.rc}\n" if r.rc else "")
        if masked(got) != block:
            wrong.append(f"expected\n{block}\ngot\n{masked(got)}")
    remove_all(cluster)
    assert not wrong, "\n".join(wrong)


def test_jobs_in_and_beside_it(cluster):
    cluster.run("scontrol create reservation reservationname=mine starttime=now duration=30 users=root nodes=node-2")
    cluster.wait("shown", lambda: "resv" in cluster.out("sinfo -h -n node-2 -o %t"))
    assert "ReservationName=mine" in cluster.out("scontrol show node node-2")
    inside = cluster.submit("--reservation=mine -t 5 -o in.txt --wrap 'echo $SLURM_JOB_RESERVATION $(hostname)'")
    assert cluster.wait_end(inside) == "COMPLETED" and cluster.read("in.txt").split() == ["mine", "node-2"]
    outside = cluster.submit("-N3 -t 5 -o /dev/null --wrap 'sleep 60'")
    cluster.wait_state(outside, "RUNNING")
    assert cluster.job(outside, "NodeList") == "node-[1,3-4]"
    waits = cluster.submit("-w node-2 -t 5 -o /dev/null --wrap true")
    cluster.wait("its reason", lambda: cluster.job(waits, "Reason") == "ReqNodeNotAvail,_May_be_reserved_for_other_job")
    r = cluster.run("sbatch --reservation=mine -N2 --wrap true", check=False)
    assert r.rc == 1 and "Requested node configuration is not available" in r.err
    r = cluster.run("srun --reservation=nosuch true", check=False)
    assert r.rc == 1 and "Requested reservation is invalid" in r.err
    busy = cluster.submit("--reservation=mine -t 5 -o /dev/null --wrap 'sleep 60'")
    cluster.wait_state(busy, "RUNNING")
    assert cluster.out("squeue -h -R mine -o '%i %v'").split() == [str(busy), "mine"]
    assert "Requested reservation is in use" in cluster.run("scontrol delete reservation mine", check=False).err
    cluster.run(f"scancel {busy} {outside}")
    cluster.wait("it can go", lambda: cluster.run("scontrol delete reservation mine", check=False).rc == 0)
    assert cluster.wait_end(waits) == "COMPLETED"
    assert "mine" in cluster.out(f"sacct -n -X -j {inside} -o reservation%20") or not cluster.out("sacct -n -X").strip()


def test_a_job_does_not_reach_into_a_future_one(cluster):
    start = int(time.time()) + 3600
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(start))
    cluster.run(f"scontrol create reservation reservationname=later starttime={when} duration=60 users=root nodes=ALL flags=maint,ignore_jobs")
    long = cluster.submit("-t 2:00:00 -o /dev/null --wrap true")
    short = cluster.submit("-t 30 -o /dev/null --wrap true")
    assert cluster.wait_end(short) == "COMPLETED"
    cluster.wait("planned", lambda: cluster.job(long, "StartTime") not in ("Unknown", "None"))
    assert cluster.job(long, "Reason") == "ReqNodeNotAvail,_Reserved_for_maintenance"
    planned = time.mktime(time.strptime(cluster.job(long, "StartTime"), "%Y-%m-%dT%H:%M:%S"))
    assert abs(planned - (start + 3600)) <= 1
    assert cluster.job(long, "StartTime") in cluster.out(f"squeue -h --start -j {long} -o %S")
    cluster.run("scontrol update job %d timelimit=20" % long)
    assert cluster.wait_end(long) == "COMPLETED"
    remove_all(cluster)


def test_it_is_there_after_kill_9_of_the_controller(cluster):
    cluster.run("scontrol create reservation reservationname=kept starttime=now duration=30 users=root tres=gres/gpu=2 flags=daily")
    before = cluster.out("scontrol show reservation kept")
    job = cluster.submit("--reservation=kept --gres=gpu:1 -t 5 -o /dev/null --wrap 'sleep 60'")
    cluster.wait_state(job, "RUNNING")
    cluster.berth("kill slurmctld")
    cluster.berth("start slurmctld")
    cluster.wait("it answers", lambda: cluster.run("scontrol ping", check=False).rc == 0)
    assert cluster.out("scontrol show reservation kept") == before
    assert cluster.job(job, "Reservation") == "kept" and cluster.state(job) == "RUNNING"
    cluster.run(f"scancel {job}")
    cluster.wait("it can go", lambda: cluster.run("scontrol delete reservation kept", check=False).rc == 0)


def test_the_end_of_it_ends_its_jobs_and_holds_those_that_wait(cluster):
    end = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 4))
    cluster.run(f"scontrol create reservation reservationname=brief starttime=now endtime={end} users=root nodes=node-1")
    runs = cluster.submit("--reservation=brief --exclusive -t 5 -o brief.txt --wrap 'sleep 60'")
    waits = cluster.submit("--reservation=brief --exclusive -t 5 -o /dev/null --wrap true")
    assert cluster.wait_end(runs) == "TIMEOUT"
    text = cluster.read("brief.txt")
    assert "DUE TO TIME LIMIT" in text and "Reservation brief, which this job was running under, has ended" in text
    cluster.wait("held", lambda: cluster.job(waits, "JobState") == "RESV_DEL_HOLD")
    assert cluster.job(waits, "Reason") == "Reservation_brief_was_deleted" and cluster.job(waits, "Priority") == "0"
    cluster.run(f"scontrol release {waits}")
    assert cluster.wait_end(waits) == "COMPLETED"


def test_a_dead_node_is_replaced(cluster):
    cluster.run("scontrol create reservation reservationname=pool starttime=now duration=30 users=root nodecnt=2")
    assert "Nodes=node-[1-2] " in cluster.out("scontrol show reservation pool")
    cluster.run("scontrol update nodename=node-1 state=drain reason=test")
    cluster.wait("another in its place", lambda: "Nodes=node-[2-3] " in cluster.out("scontrol show reservation pool"))
    cluster.run("scontrol update nodename=node-1 state=resume")
    remove_all(cluster)


def nodes_of(cluster, name):
    return re.search(r" Nodes=(\S+)", cluster.out(f"scontrol show reservation {name}")).group(1)


def test_nodes_with_their_signs(cluster):
    """nodes=+X and nodes=-X mean what nodes+=X and nodes-=X mean, and the kind may be shortened to three letters."""
    cluster.run("scontrol create res=signs starttime=now+1hour duration=10 users=root nodes=node-1")
    for change, nodes in (("nodes=+node-4", "node-[1,4]"), ("nodes+=node-3", "node-[1,3-4]"), ("nodes=-node-1", "node-[3-4]"), ("nodes-=node-3", "node-4"),
                          ("nodes=+node-1,+node-2", "node-[1-2,4]"), ("nodes=-node-[1-2]", "node-4")):
        assert cluster.out(f"scontrol update reserv=signs {change}").strip() == "Reservation updated."
        assert nodes_of(cluster, "signs") == nodes, change
    r = cluster.run("scontrol update res=signs nodes=+node-9", check=False)
    assert r.rc == 1 and "slurm_update error: Invalid node name specified" in r.err and nodes_of(cluster, "signs") == "node-4"
    remove_all(cluster)
