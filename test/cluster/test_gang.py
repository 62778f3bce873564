"""PreemptMode=SUSPEND,GANG, end to end: processes are stopped (SIGTSTP, then SIGSTOP) and go on."""
import os

CLUSTER = dict(nodes=2, cpus=4, gpus=0, extra_conf="""PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
DefMemPerCPU=10
PreemptParameters=suspend_grace_time=1
SchedulerTimeSlice=5
PartitionName=low Nodes=node-1 PriorityTier=1 OverSubscribe=FORCE:1
PartitionName=high Nodes=node-1 PriorityTier=10 OverSubscribe=FORCE:1
PartitionName=turns Nodes=node-2 OverSubscribe=FORCE:2
""")


def stopped(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(") ", 1)[1][0] == "T"


def test_suspended_and_resumed(cluster):
    with open(f"{cluster.work}/low.py", "w") as f:
        f.write("import os, signal, time\nsignal.signal(signal.SIGTSTP, lambda *_: print('told', flush=True))\nprint('pid', os.getpid(), flush=True)\n"
                "while not os.path.exists('over'): time.sleep(0.1)\nprint('end', flush=True)\n")
    low = cluster.submit("-p low -c4 -o low.txt --wrap 'exec /usr/bin/python3 low.py'")
    cluster.wait("it runs", lambda: "pid" in cluster.out("cat low.txt 2>&1 || true"))
    pid = int(cluster.read("low.txt").split()[1])
    high = cluster.submit("-p high -c2 -o high.txt --wrap 'while [ ! -e high-over ]; do sleep 0.1; done'")
    cluster.wait_state(high, "RUNNING")
    cluster.wait_state(low, "SUSPENDED")
    cluster.wait("its shell is stopped", lambda: stopped(pid))
    assert "told" in cluster.read("low.txt")
    assert cluster.out(f"squeue -h -j {low} -o %t").strip() == "S"
    assert cluster.job(low, "SuspendTime") not in (None, "None")
    text = cluster.run(f"scontrol resume {low}", check=False)
    assert text.rc != 0 and "busy" in text.err
    cluster.berth("kill slurmctld")
    cluster.berth("start slurmctld")
    cluster.wait("it answers", lambda: cluster.state(low) == "SUSPENDED")
    cluster.run("touch high-over")
    assert cluster.wait_end(high) == "COMPLETED"
    cluster.wait_state(low, "RUNNING")
    cluster.wait("its shell goes on", lambda: not stopped(pid))
    cluster.run("touch over")
    assert cluster.wait_end(low) == "COMPLETED"
    assert cluster.read("low.txt").split()[-1] == "end"


def test_cancelled_while_suspended(cluster):
    low = cluster.submit("-p low -c4 -o gone.txt --wrap 'echo pid $$; sleep 600'")
    cluster.wait("it runs", lambda: "pid" in cluster.out("cat gone.txt 2>&1 || true"))
    pid = int(cluster.read("gone.txt").split()[1])
    high = cluster.submit("-p high -c4 -o /dev/null --wrap 'sleep 600'")
    cluster.wait("it is stopped", lambda: cluster.state(low) == "SUSPENDED" and stopped(pid))
    cluster.run(f"scancel {low}")
    assert cluster.wait_end(low) == "CANCELLED"
    cluster.wait("its shell is gone", lambda: not os.path.exists(f"/proc/{pid}"))
    assert cluster.state(high) == "RUNNING"
    cluster.run(f"scancel {high}")
    cluster.wait_end(high)


def test_jobs_take_turns(cluster):
    loop = "i=0; while [ ! -e turns-over ]; do i=$((i+1)); echo $i; sleep 0.1; done"
    a = cluster.submit(f"-p turns -c4 -o a.txt --wrap '{loop}'")
    cluster.wait_state(a, "RUNNING")
    b = cluster.submit(f"-p turns -c4 -o b.txt --wrap '{loop}'")
    c = cluster.submit(f"-p turns -c4 -o /dev/null --wrap '{loop}'")
    cluster.wait_state(b, "SUSPENDED")
    assert cluster.state(a) == "RUNNING"
    assert cluster.state(c) == "PENDING"
    cluster.wait("the other's turn", lambda: cluster.state(a) == "SUSPENDED" and cluster.state(b) == "RUNNING")
    cluster.wait("b is launched", lambda: cluster.out("cat b.txt 2>&1 || true").startswith("1"))
    cluster.wait("and back", lambda: cluster.state(a) == "RUNNING" and cluster.state(b) == "SUSPENDED")
    cluster.run("touch turns-over")
    for job in (a, b, c):
        assert cluster.wait_end(job) == "COMPLETED"
