"""What operators type: drain and resume, limits, updates, reconfigure, listing (R03 R04 R05 R06 R07 R09 R10 R11 R12 R13 R14)."""
import json
import re

CLUSTER = dict(nodes=3, cpus=4, gpus=2)


def test_drain_needs_a_reason(cluster):
    result = cluster.run("scontrol update nodename=node-1 state=drain", check=False)
    assert result.rc == 1
    assert "You must specify a reason when DOWNING or DRAINING a node. Request denied" in result.err + result.out


def test_drained_node_finishes_its_job_and_takes_no_other(cluster):
    job = cluster.submit("-w node-1 -o /dev/null --wrap 'while [ ! -e drain-go ]; do sleep 0.1; done'")
    cluster.wait_state(job, "RUNNING")
    cluster.run("scontrol update nodename=node-1 state=drain reason='bad fan'")
    assert cluster.out("sinfo -h -N -n node-1 -p main -o %t") == "drng"
    waiting = cluster.submit("-w node-1 -o /dev/null --wrap true")
    cluster.run("touch drain-go")
    assert cluster.wait_end(job) == "COMPLETED"
    cluster.wait("drained", lambda: cluster.out("sinfo -h -N -n node-1 -p main -o %t") == "drain")
    assert "bad fan" in cluster.out("sinfo -R")
    assert re.search(r"Reason=bad fan \[root@20\d\d-", cluster.out("scontrol show node node-1"))
    assert cluster.state(waiting) == "PENDING"
    cluster.run("scontrol update nodename=node-1 state=resume")
    assert cluster.wait_end(waiting) == "COMPLETED"
    cluster.wait_idle()


def test_time_limit_of_a_running_job(cluster):
    job = cluster.submit("-t 10 -o /dev/null --wrap 'sleep 300'")
    cluster.wait_state(job, "RUNNING")
    cluster.run(f"scontrol update JobID={job} TimeLimit=+10:00:00")
    assert cluster.job(job, "TimeLimit") == "10:10:00"
    cluster.run(f"scontrol update JobID={job} TimeLimit=2-00:00:00")
    assert cluster.job(job, "TimeLimit") == "2-00:00:00"
    assert cluster.run(f"scontrol update JobID={job} numnodes=2 partition=short", check=False).rc == 1
    cluster.run(f"scancel {job}")
    cluster.wait_idle()


def test_user_may_lower_but_not_raise_his_limit(cluster, user):
    job = cluster.submit("-t 30 -o /dev/null --wrap 'sleep 300'", user=user)
    cluster.wait_state(job, "RUNNING")
    assert cluster.run(f"scontrol update JobID={job} TimeLimit=60", user=user, check=False).rc == 1
    cluster.run(f"scontrol update JobID={job} TimeLimit=20", user=user)
    assert cluster.job(job, "TimeLimit") == "00:20:00"
    other = cluster.run(f"scancel {job}", user="nobody", check=False)
    assert "Access/permission denied" in other.err
    cluster.run(f"scancel {job}", user=user)
    assert cluster.wait_end(job) == "CANCELLED"


def test_pending_job_is_changed(cluster):
    job = cluster.submit("-H -o /dev/null --wrap true")
    cluster.run(f"scontrol update jobid={job} numnodes=2 partition=short jobname=renamed")
    assert cluster.job(job, "Partition") == "short"
    assert cluster.job(job, "NumNodes") in ("2", "2-2")
    assert cluster.job(job, "JobName") == "renamed"
    cluster.run(f"scancel {job}")


def test_time_limit_kills_and_says_so(cluster):
    job = cluster.submit("-t 1 -o limit-%j.txt --wrap 'sleep 600'")
    cluster.wait_state(job, "RUNNING")
    assert cluster.wait_end(job, limit=100) == "TIMEOUT"
    assert "DUE TO TIME LIMIT" in cluster.read(f"limit-{job}.txt")


def test_hold_and_release(cluster):
    job = cluster.submit("-H -o /dev/null --wrap true")
    assert cluster.job(job, "Reason") == "JobHeldUser"
    assert cluster.job(job, "Priority") == "0"
    cluster.run(f"scontrol release {job}")
    assert cluster.wait_end(job) == "COMPLETED"


def test_requeue(cluster):
    job = cluster.submit("--open-mode=append -o requeue-%j.txt --wrap 'echo run ${SLURM_RESTART_COUNT:-0}; [ \"$SLURM_RESTART_COUNT\" ] || sleep 300'")
    cluster.wait("first run", lambda: cluster.run(f"grep -q 'run 0' requeue-{job}.txt", check=False).rc == 0)
    cluster.run(f"scontrol requeue {job}")
    assert cluster.wait_end(job) == "COMPLETED"
    assert "run 1" in cluster.read(f"requeue-{job}.txt")
    assert cluster.job(job, "Restarts") == "1"


def test_suspend_and_resume(cluster):
    job = cluster.submit("-o /dev/null --wrap 'while [ ! -e resume-go ]; do sleep 0.1; done'")
    cluster.wait_state(job, "RUNNING")
    cluster.run(f"scontrol suspend {job}")
    assert cluster.state(job) == "SUSPENDED"
    cluster.run("touch resume-go")
    cluster.run(f"scontrol resume {job}")
    assert cluster.wait_end(job) == "COMPLETED"


def test_reconfigure_applies_without_touching_a_running_job(cluster):
    job = cluster.submit("-o /dev/null --wrap 'while [ ! -e reconf-go ]; do sleep 0.1; done'")
    cluster.wait_state(job, "RUNNING")
    cluster.run("sed -i s/^KillWait=.*/KillWait=7/ $SLURM_CONF && scontrol reconfigure")
    cluster.wait("new value", lambda: re.search(r"^KillWait\s+= 7 sec$", cluster.out("scontrol show config"), re.M))
    assert cluster.state(job) == "RUNNING"
    cluster.run("touch reconf-go")
    assert cluster.wait_end(job) == "COMPLETED"


def test_bad_configuration_is_refused_and_the_old_stays(cluster):
    cluster.run("cp $SLURM_CONF saved && echo KillWiat=9 >> $SLURM_CONF")
    line = len(cluster.read("../c/etc/slurm.conf").splitlines())
    result = cluster.run("scontrol reconfigure", check=False)
    cluster.run("cp saved $SLURM_CONF")
    assert result.rc == 1
    text = result.out + result.err
    assert "KillWiat" in text and str(line) in text and "KillWait" in text, text
    assert re.search(r"^KillWait\s+= 7 sec$", cluster.out("scontrol show config"), re.M)


def test_reconfigure_with_an_unknown_node_says_where(cluster):
    cluster.run("cp $SLURM_CONF saved && echo PartitionName=odd Nodes=node-99 >> $SLURM_CONF")
    line = len(cluster.read("../c/etc/slurm.conf").splitlines())
    result = cluster.run("scontrol reconfigure", check=False)
    cluster.run("cp saved $SLURM_CONF && scontrol reconfigure")
    assert result.rc == 1 and result.err.startswith("slurm_reconfigure error: Invalid argument\n")
    assert result.err.endswith(f"/slurm.conf:{line}:25: partition odd names node node-99, which is not defined\n"), result


def test_host_lists(cluster):
    assert cluster.out("scontrol show hostnames node-[42,49-51]").split() == ["node-42", "node-49", "node-50", "node-51"]
    assert cluster.out("scontrol show hostlist a1,a2,a4") == "a[1-2,4]"


def test_show_commands_of_unknown_things(cluster):
    for what, text in (("partition nope", "Partition nope not found"), ("node nope", "Node nope not found"), ("job 999999", "Invalid job id specified")):
        result = cluster.run(f"scontrol show {what}", check=False)
        assert result.rc == 1 and text in result.out + result.err, (what, result)


def test_takeover_is_refused_clearly(cluster):
    result = cluster.run("scontrol takeover", check=False)
    assert result.rc == 1 and result.err.strip()


def test_reboot_needs_a_program(cluster):
    got = cluster.run("scontrol reboot node-1", check=False)
    assert got.rc == 1 and "scontrol: error: RebootProgram isn't defined" in got.err + got.out
    got = cluster.run("scontrol reboot ASAP nextstate=BAD node-1", check=False)
    assert got.rc == 1 and "Invalid state: BAD" in got.err + got.out
    got = cluster.run("scontrol cancel_reboot node-1", check=False)
    assert got.rc == 1 and "Invalid node state" in got.err + got.out
    assert cluster.node_state("node-1") == "idle"


def test_partition_taken_out_and_put_back(cluster):
    """Jobs that wait for a partition which is gone for a while start when slurm.conf has it again, without another restart."""
    path = f"{cluster.home}/etc/slurm.conf"
    before = cluster.read(path)
    alone = cluster.submit("-H -p short -o /dev/null --wrap true")
    either = cluster.submit("-H -p short,main -o /dev/null --wrap true")
    try:
        with open(path, "w") as f:
            f.writelines(line for line in before.splitlines(True) if not line.startswith("PartitionName=short"))
        cluster.berth("kill slurmctld")
        cluster.berth("start slurmctld")
        assert "short" not in cluster.out("sinfo -h -o %R")
    finally:
        with open(path, "w") as f:
            f.write(before)
    cluster.run("scontrol reconfigure")
    cluster.run(f"scontrol release {alone} {either}")
    assert cluster.wait_end(alone) == "COMPLETED" and cluster.wait_end(either) == "COMPLETED"


def test_kinds_and_keys_may_be_shortened(cluster):
    """As recorded from the reference: three letters of partition and node, of job too."""
    job = cluster.submit("--hold -o /dev/null --wrap true")
    for line in ("create par=brief nodes=node-1", "update part=brief maxtime=10", "update partitionn=brief maxt=11", "update nod=node-1 comment=a", f"update jobi={job} comment=b"):
        assert cluster.run(f"scontrol {line}").out == ""
    assert "MaxTime=00:11:00" in cluster.out("scontrol show partition brief")
    assert "Comment=a" in cluster.out("scontrol show node node-1") and cluster.job(job, "Comment") == "b"
    cluster.run("scontrol delete part=brief")
    for line in ("pa=main maxtime=10", "no=node-1 comment=c", f"jo={job} comment=c", "partitionnamex=main maxtime=10"):
        r = cluster.run(f"scontrol update {line}", check=False)
        assert r.rc == 1 and r.err.startswith("No valid entity in update command\n"), r
    for line, text in (("create pa=x", "scontrol: error: Invalid creation entity: pa=x\n"), ("delete pa=main", "Invalid deletion entity: pa=main\n"),
                       ("delete part=brief", "delete_partition part=brief: Invalid partition name specified\n")):
        r = cluster.run(f"scontrol {line}", check=False)
        assert r.rc == 1 and r.err.startswith(text), r
    assert cluster.run("scontrol update part=main max=10", check=False).rc == 1
    cluster.run(f"scancel {job}")
    cluster.run("scontrol update nodename=node-1 comment=")


def test_resume_of_all_helps_those_that_need_it(cluster):
    cluster.run("scontrol update nodename=node-2 state=drain reason=fan")
    cluster.run("scontrol update nodename=node-3 state=down reason=disk")
    r = cluster.run("scontrol update nodename=ALL state=resume", check=False)
    assert r.rc == 1 and r.err.startswith("slurm_update error: Invalid node state transition\n"), r
    cluster.wait("both", lambda: set(cluster.out("sinfo -h -N -o %t").split()) == {"idle"})
    cluster.run("scontrol update nodename=ALL state=idle")


def test_wrong_values_are_told_in_the_words_of_the_reference(cluster):
    """Recorded from the reference: what scripts match when an update is refused."""
    error = "scontrol: error: "
    cluster.run("scontrol create partition=brief nodes=node-1")
    for key, told in (("MaxTime=x", "Invalid input MaxTime=x"), ("GraceTime=x", "Invalid GraceTime value: x"), ("PriorityTier=70000", "Invalid PriorityTier value: 70000"),
                      ("MaxNodes=-1", 'Invalid numeric value "-1" for MaxNodes.'), ("DefMemPerCPU=x", "Invalid DefMemPerCPU value: x"), ("PreemptMode=x", "Invalid input: PreemptMode=x"),
                      ("Hidden=x", f"Invalid input: Hidden=x\n{error}Acceptable Hidden values are YES and NO"),
                      ("Exclusive=x", f"Invalid input: Exclusive=x\n{error}Acceptable Exclusive values are NO, NODE, USER, TOPO"),
                      ("OverSubscribe=x", f"Invalid input: OverSubscribe=x\n{error}Acceptable OverSubscribe values are NO, EXCLUSIVE, YES:#, and FORCE:#"),
                      ("SuspendTime=5", f"Update of this parameter is not supported: SuspendTime=5\n\n{error}Request aborted")):
        r = cluster.run(f"scontrol update partition=brief {key}", check=False)
        assert (r.rc, r.err) == (1, f"{error}{told}\n"), r
    cluster.run("scontrol update partition=brief Nodes+=node-2 OverSubscribe=yes AllocNodes=node-9 Priority=7 MaxNodes=UNLIMITED")
    shown = cluster.out("scontrol show -o partition brief")
    for word in ("Nodes=node-[1-2]", "OverSubscribe=YES:4", "AllocNodes=node-9", "PriorityTier=7", "PriorityJobFactor=7", "MinNodes=1"):
        assert f" {word} " in shown, shown
    r = cluster.run("sbatch -p brief --wrap true", check=False)
    assert r.rc == 1 and "Access/permission denied" in r.err, r
    cluster.run("scontrol delete partition=brief")
    job = cluster.submit("--hold -t 20 -o /dev/null --wrap true")
    for key, told in (("MinMemoryNode=10G", f"{error}Invalid MinMemoryNode value: 10G\n"), ("CPUsPerTask=x", f"{error}Invalid CPUsPerTask value: x\n"), ("ReqProcs=2-4", f"{error}Invalid NumTasks value: 2-4\n"),
                      ("Requeue=yes", f"{error}Invalid Requeue value: yes\n"), ("DelayBoot=x", f"{error}Invalid DelayBoot value\n"), ("NtasksPerNode=2", "Update of this parameter is not supported: NtasksPerNode=2\nRequest aborted\n"),
                      ("UserID=0", "No changes specified\n"), ("UserID=nobody-there", "Invalid UserID: nobody-there\nRequest aborted\n")):
        r = cluster.run(f"scontrol update job {job} {key}", check=False)
        assert (r.rc, r.err) == (1, told), r
    cluster.run(f"scancel {job}")


def test_resume_after_and_active_features(cluster):
    r = cluster.run("scontrol update node=node-1 ResumeAfter=5", check=False)
    assert (r.rc, r.err.splitlines()[0]) == (1, "slurm_update error: You can only specify a resume time when DOWNING or DRAINING a node. Request denied"), r
    for bad in ("Weight=x", "ResumeAfter=x"):
        r = cluster.run(f"scontrol update node=node-1 {bad}", check=False)
        assert (r.rc, r.err) == (1, f"scontrol: error: Invalid value {bad} for {bad.split('=')[0]}\n"), r
    cluster.run("scontrol update node=node-1 State=DRAIN Reason=x ResumeAfter=3600")
    assert re.search(r"ResumeAfterTime=20\d\d-", cluster.out("scontrol show node node-1"))
    assert json.loads(cluster.out("scontrol show node node-1 --json"))["nodes"][0]["resume_after"]["number"] > 0
    cluster.run("scontrol update node=node-1 State=DRAIN Reason=x ResumeAfter=1")
    cluster.wait("resumed by itself", lambda: cluster.node_state("node-1") == "idle")
    assert "ResumeAfterTime=None" in cluster.out("scontrol show node node-1")
    cluster.run("scontrol update node=node-1 AvailableFeatures=a,b")
    cluster.run("scontrol update node=node-1 ActiveFeatures=a")
    shown = cluster.out("scontrol show node node-1")
    assert "AvailableFeatures=a,b" in shown and "ActiveFeatures=a\n" in shown, shown
    r = cluster.run("scontrol update node=node-1 ActiveFeatures=c", check=False)
    assert r.rc == 1 and "Active features not subset of available features" in r.err, r
    cluster.run("scontrol update node=node-1 AvailableFeatures= ActiveFeatures=")
    r = cluster.run("sbatch -n1 --gpus=2 --gpus-per-node=1 --wrap true", check=False)
    assert r.rc == 1 and "sbatch: error: Batch job submission failed: Task count specification invalid\n" in r.err, r
