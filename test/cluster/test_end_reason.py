"""SLURM_JOB_END_REASON: a job's signal handler reads why it is told to end and how long it has left."""
CLUSTER = dict(nodes=2, cpus=4, gpus=0, extra_conf="""PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=requeue_delay=0
DefMemPerCPU=10
KillWait=20
PartitionName=low Nodes=node-1 PriorityTier=1 GraceTime=30
PartitionName=high Nodes=node-1 PriorityTier=10
""")

SCRIPT = """#!/bin/bash
trap 'cp "$SLURM_JOB_END_REASON" %s.txt; exit 3' %s
trap '' CONT
echo ready > %s.ready
[ -s "$SLURM_JOB_END_REASON" ] && echo not empty >> %s.ready
while :; do sleep 60 & wait; done
"""


def begin(cluster, name, args, signal="TERM"):
    with open(f"{cluster.work}/{name}.sh", "w") as f:
        f.write(SCRIPT % (name, signal, name, name))
    job = cluster.submit(f"{args} -o {name}.out {name}.sh")
    cluster.wait("its handler is set", lambda: cluster.out(f"cat {name}.ready 2>&1 || true") == "ready")
    return job


def reason(cluster, name):
    cluster.wait("its handler has read it", lambda: "seconds_left" in cluster.out(f"cat {name}.txt 2>&1 || true") or "cause=signal" in cluster.out(f"cat {name}.txt 2>&1 || true"))
    return dict(line.split("=", 1) for line in cluster.read(f"{name}.txt").splitlines())


def test_preempted(cluster):
    low = begin(cluster, "low", "-p low -c4 --no-requeue")
    high = cluster.submit("-p high -c4 -o /dev/null --wrap true")
    told = reason(cluster, "low")
    assert told["cause"] == "preempted"
    assert told["by"].startswith(f"job {high} (") and told["by"].endswith("partition high)")
    assert told["seconds_left"] == "30"
    assert cluster.wait_end(high) == "COMPLETED"
    assert cluster.wait_end(low) == "PREEMPTED"
    assert f"job {high}" in cluster.out(f"scontrol why {low}")


def test_cancelled(cluster):
    job = begin(cluster, "gone", "-c1")
    cluster.run(f"scancel {job}")
    told = reason(cluster, "gone")
    assert told["cause"] == "cancelled"
    assert told["by"] == cluster.out("id -un")
    assert told["seconds_left"] == "20"
    assert int(told["ends_at"]) > 1600000000
    cluster.wait_end(job)


def test_warned_before_its_limit(cluster):
    job = begin(cluster, "near", "-c1 -t 1 --signal=B:USR1@59", "USR1")
    told = reason(cluster, "near")
    assert told["cause"] == "time_limit"
    assert 50 <= int(told["seconds_left"]) <= 59
    assert cluster.wait_end(job) == "FAILED"


def test_requeued(cluster):
    job = begin(cluster, "again", "-c1 --requeue")
    cluster.run(f"scontrol requeue {job}")
    assert reason(cluster, "again")["cause"] == "requeued"
    cluster.wait("it runs again", lambda: cluster.job(job, "Restarts") == "1")
    cluster.run(f"scancel {job}")
    cluster.wait_end(job)


def test_signalled_and_in_a_step(cluster):
    job = begin(cluster, "sig", "-c1", "USR2")
    cluster.run(f"scancel -b -s USR2 {job}")
    told = reason(cluster, "sig")
    assert told == {"cause": "signal", "by": cluster.out("id -un")}
    cluster.wait_end(job)
    paths = cluster.out("""srun -N2 bash -c 'echo $SLURM_JOB_END_REASON; stat -c %a.%s "$SLURM_JOB_END_REASON"'""").split()
    assert len(paths) == 4 and paths.count("400.0") == 2
    cluster.wait("the files go with the steps", lambda: not cluster.out("ls -d $BERTH_DIR/spool/*/end.* 2>/dev/null || true"))
