"""R13: slurmctld's log says in one line each why a job ended before its time, why a node went down, and who changed what."""
import os

UID = os.getuid()
CLUSTER = dict(nodes=2, cpus=4, gpus=0)


def line(cluster, *words):
    """The one line of the log that has all the words."""
    def found():
        text = cluster.read(f"{cluster.home}/log/slurmctld.log")
        return [l.split("] ", 1)[1] for l in text.splitlines() if all(w in l for w in words)]
    cluster.wait(f"a line of the log with {words}", found)
    assert len(found()) == 1, found()
    return found()[0]


def test_a_job_from_start_to_end(cluster):
    j = cluster.submit("-o /dev/null --wrap 'exit 3'")
    cluster.wait_end(j)
    assert line(cluster, "Allocate", f"JobId={j} ") == f"sched: Allocate JobId={j} NodeList=node-1 #CPUs=1 Partition=main"
    end = line(cluster, "job end", f"JobId={j} ")
    assert end.startswith(f"job end: JobId={j} State=FAILED ExitCode=3:0 NodeList=node-1 RunTime="), end
    assert end.endswith(" Reason=NonZeroExitCode"), end


def test_cancelled_jobs_name_who_did_it(cluster):
    running = cluster.submit("-o /dev/null --wrap 'sleep 600'")
    cluster.wait_state(running, "RUNNING")
    cluster.run(f"scancel {running}")
    assert line(cluster, "kill:", f"JobId={running} ") == f"kill: JobId={running} by uid={UID}"
    assert " State=CANCELLED " in line(cluster, "job end", f"JobId={running} ") and f" by uid={UID}" in line(cluster, "job end", f"JobId={running} ")
    for _ in range(10):
        cluster.submit("-H -J many -o /dev/null --wrap true")
    cluster.run("scancel -n many")
    told = line(cluster, "kill:", "name=many")
    assert told.endswith(f" and 2 more name=many by uid={UID}"), told


def test_changes_name_what_and_who(cluster):
    j = cluster.submit("-H -o /dev/null --wrap true")
    cluster.run(f"scontrol update jobid={j} timelimit=7")
    assert line(cluster, "update:", f"JobId={j} ") == f"update: JobId={j} timelimit=7 by uid={UID}"
    cluster.run(f"scontrol release {j}")
    assert line(cluster, "scontrol release", f"JobId={j} ")
    cluster.wait_end(j)
    cluster.run("scontrol update nodename=node-2 state=drain reason='two\nlines'")
    assert line(cluster, "update:", "node-2", "drain").endswith(f" reason=two lines by uid={UID}")
    cluster.run("scontrol update nodename=node-2 state=resume")
    refused = cluster.run(f"scontrol update jobid={j} timelimit=nonsense", check=False)
    assert refused.rc
    assert "nonsense" not in cluster.read(f"{cluster.home}/log/slurmctld.log")


def test_a_lost_node_and_the_job_on_it(cluster):
    j = cluster.submit("-w node-2 --requeue -o /dev/null --wrap 'sleep 600'")
    cluster.wait_state(j, "RUNNING")
    cluster.berth("kill node-2")
    assert line(cluster, "node node-2 is down") == "error: node node-2 is down: Not responding"
    assert line(cluster, "requeue:", f"JobId={j} ").startswith(f"requeue: JobId={j} Restarts=1 FailedNode=node-2")
    cluster.run(f"scancel {j}")
    cluster.berth("start node-2")
