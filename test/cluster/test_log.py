"""R13: slurmctld's log says in one line each why a job ended before its time, why a node went down, and who changed what."""
import os
import re
import signal

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


def configure(cluster, text):
    """Takes the lines of the test before out, these in."""
    cluster.run("sed -i '/ # of this test$/d' $SLURM_CONF")
    with open(cluster.env()["SLURM_CONF"], "a") as f:
        f.write("".join(f"{l} # of this test\n" for l in text.splitlines()))
    return cluster.run("scontrol reconfigure", check=False)


def said_since(cluster, daemon, start):
    return cluster.read(f"{cluster.home}/log/{daemon}.log")[start:]


def test_each_subsystem_of_debugflags_has_lines(cluster):
    """DebugFlags: the lines begin with the word; without it there is none."""
    told = configure(cluster, "DebugFlags=Agent,AuditRPCs,Backfill,Dependency,License,Priority,Protocol,SelectType,Steps,TraceJobs\nLicenses=tool:4")
    assert not told.rc, told
    first = cluster.submit("-L tool -o /dev/null --wrap 'srun -n1 true; srun -n99 true; sleep 1'")
    then = cluster.submit(f"-d afterok:{first} -o /dev/null --wrap true")
    cluster.submit("-N2 --exclusive -o /dev/null --wrap true")
    cluster.wait_idle()
    expected = [f"Agent: D_BATCH of JobId={first} to node node-", f"Agent: D_BATCH of JobId={first} answered by node", f"AuditRPCs: SUBMIT from uid {UID} at ", "Protocol: SUBMIT took ",
                f"Backfill: JobId={then} StartTime=Unknown Reason=Dependency", "Priority: JobId=", f"Dependency: JobId={then} waits for afterok:{first}(unfulfilled)",
                f"License: JobId={first} holds tool:1", "License: LicenseName=tool Total=4 Used=1 ", f"SelectType: JobId={first} Nodes=node-1 CPUs=1 CPU_IDs=",
                f"Steps: StepId={first}.0 State=RUNNING Nodes=node-1 Tasks=1", f"Steps: StepId={first}.0 State=COMPLETED", f"Steps: a step of JobId={first} is refused: 99 tasks ",
                f"TraceJobs: JobId={first} State=RUNNING Reason=None "]
    for text in expected:
        cluster.wait(f"a line with {text}", lambda: f"] {text}" in cluster.read(f"{cluster.home}/log/slurmctld.log"))
    for text in (f"AuditRPCs: D_BATCH from uid ", f"Steps: StepId={first}.0 ended with status 0"):
        cluster.wait(f"a line with {text}", lambda: text in cluster.read(f"{cluster.home}/log/node-1.log"))
    configure(cluster, "")
    start = len(cluster.read(f"{cluster.home}/log/slurmctld.log"))
    j = cluster.submit("-o /dev/null --wrap 'srun true'")
    cluster.wait_end(j)
    said = said_since(cluster, "slurmctld", start)
    assert f"JobId={j} " in said and not re.search(r"\] [A-Z]\w+: ", said), said


def test_debugflags_of_a_node(cluster):
    cluster.run("scontrol setdebugflags +steps,auditrpcs nodes=node-2")
    for node, told in (("node-2", True), ("node-1", False)):
        j = cluster.submit(f"-w {node} -o /dev/null --wrap 'srun true'")
        cluster.wait_end(j)
        cluster.wait(f"the step's end on {node}", lambda: (f"Steps: StepId={j}.0 ended" in cluster.read(f"{cluster.home}/log/{node}.log")) == told)
    cluster.run("scontrol setdebugflags -steps nodes=node-2")
    assert "DebugFlags set to AuditRPCs by uid" in cluster.read(f"{cluster.home}/log/node-2.log")
    cluster.run("scontrol reconfigure")


def test_unknown_debugflags_are_refused(cluster):
    told = cluster.run("scontrol setdebugflags +Nonsense", check=False)
    assert told.rc == 1 and told.err == "scontrol: error: Invalid DebugFlag: Nonsense\ninvalid debug flag: +Nonsense\n"
    told = configure(cluster, "DebugFlags=Steps,Nonsense")
    assert told.rc == 1 and "DebugFlags" in told.err and "Nonsense" in told.err, told
    configure(cluster, "")


STAMPS = {"iso8601": r"\[2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\] ", "iso8601_ms": r"\[2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\] ",
          "rfc5424": r"\[2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d\] ", "rfc5424_ms": r"\[2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d\] ",
          "rfc3339": r"\[2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d\] ", "clock": r"\[\d+\] ", "short": r"\[[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d\] ",
          "thread_id": r"\[[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d\.\d{6} \d+ slurm\S* +0x[0-9a-f]+\] "}


def test_time_stamps_of_the_log(cluster):
    """LogTimeFormat, as the reference writes them; slurmstepd's too."""
    for word, stamp in STAMPS.items():
        start = {d: len(cluster.read(f"{cluster.home}/log/{d}.log")) for d in ("slurmctld", "node-1")}
        assert not configure(cluster, f"LogTimeFormat={word}").rc
        j = cluster.submit("-w node-1 -o /dev/null --wrap 'srun true'")
        cluster.wait_end(j)
        for daemon, text in (("slurmctld", f"job end: JobId={j} "), ("node-1", f"launch task StepId={j}.0 ")):
            cluster.wait(f"{word} in the log of {daemon}", lambda: re.search("^" + stamp + re.escape(text), said_since(cluster, daemon, start[daemon]), re.M))
    configure(cluster, "")


def test_the_log_is_opened_anew_at_sigusr2(cluster):
    """As logrotate does it: move the file away, send SIGUSR2."""
    pids = dict(re.findall(r"^(\S+) +up +(\d+)", cluster.out("berth status"), re.M))
    for daemon in ("slurmctld", "slurmdbd", "node-1"):
        path = f"{cluster.home}/log/{daemon}.log"
        cluster.run(f"mv {path} {path}.1")
        os.kill(int(pids[daemon]), signal.SIGUSR2)
        cluster.wait(f"a new log of {daemon}", lambda: os.path.exists(path))
    j = cluster.submit("-w node-1 -o /dev/null --wrap true")
    cluster.wait_end(j)
    assert f"job end: JobId={j} " in cluster.read(f"{cluster.home}/log/slurmctld.log") and f"JobId={j} " in cluster.read(f"{cluster.home}/log/node-1.log")
