"""Preemption by partition, end to end: PREEMPTED and requeued jobs as scripts and sacct see them."""
CLUSTER = dict(nodes=1, cpus=4, gpus=0, extra_conf="""SchedulerParameters=requeue_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=low Nodes=ALL PriorityTier=1 GraceTime=2
PartitionName=dear Nodes=ALL PriorityTier=1 PreemptMode=CANCEL
PartitionName=high Nodes=ALL PriorityTier=10
""")


def test_requeued_after_its_grace(cluster):
    low = cluster.submit("-p low -c4 -t 30 --requeue -o low.txt --open-mode=append --wrap 'echo run $SLURM_RESTART_COUNT; "
                         "trap : TERM; echo ready; while :; do sleep 0.2; done'")
    cluster.wait("it runs", lambda: cluster.out("cat low.txt 2>&1 || true").count("ready"))
    high = cluster.submit("-p high -c4 -t 5 -o /dev/null --wrap 'sleep 1'")
    cluster.wait("told", lambda: cluster.job(low, "PreemptTime") not in (None, "None"))
    assert cluster.wait_end(high) == "COMPLETED"
    cluster.wait("it runs again", lambda: "run 1" in cluster.read("low.txt"))
    assert cluster.job(low, "Restarts") == "1"
    cluster.run(f"scancel {low}")
    text = cluster.read("low.txt")
    assert "DUE TO PREEMPTION" in text
    cluster.wait("accounted", lambda: "PREEMPTED" in cluster.out(f"sacct -n -D -X -j {low} -o state%20"))


def test_cancelled_where_the_partition_says_so(cluster):
    dear = cluster.submit("-p dear -c4 -t 30 --requeue -o dear.txt --wrap 'echo on; sleep 60'")
    cluster.wait("it runs", lambda: cluster.out("cat dear.txt 2>&1 || true").startswith("on"))
    high = cluster.submit("-p high -c4 -t 5 -o /dev/null --wrap true")
    assert cluster.wait_end(dear) == "PREEMPTED"
    assert cluster.wait_end(high) == "COMPLETED"
    assert "DUE TO PREEMPTION" in cluster.read("dear.txt")
