"""Keys of slurm.conf and gres.conf that act far from where they are read: each is seen to make its difference in a job."""
import os
import tempfile

FOLDER = tempfile.mkdtemp(prefix="berth-config-")
CHECK = os.path.join(FOLDER, "check")
with open(CHECK, "w") as f:
    f.write(f"#!/bin/sh\necho run >> {FOLDER}/$SLURMD_NODENAME\n")
os.chmod(CHECK, 0o755)
os.chmod(FOLDER, 0o777)
CLUSTER = dict(nodes=2, cpus=8, gpus=4, extra_conf=f"""JobFileAppend=1
PropagateResourceLimitsExcept=NOFILE,CORE
MaxTasksPerNode=4
DefCpuPerGPU=2
DefMemPerGPU=100
SchedulerParameters=enable_user_top,requeue_delay=0
RequeueExit=3,5-6
RequeueExitHold=7
HealthCheckProgram={CHECK}
HealthCheckInterval=1
HealthCheckNodeState=IDLE
""")


def runs(node):
    path = os.path.join(FOLDER, node)
    if not os.path.exists(path):
        return 0
    with open(path) as f:
        return len(f.readlines())


def test_health_check_runs_only_in_the_named_states(cluster):
    cluster.wait_idle()
    cluster.wait("checks on both", lambda: runs("node-1") > 1 and runs("node-2") > 1)
    job = cluster.submit("-w node-1 -n1 --wrap 'sleep 600'")
    cluster.wait("node-1 is mixed", lambda: cluster.node_state("node-1").startswith("mix"))
    one, two = runs("node-1"), runs("node-2")
    cluster.wait("three more on the idle one", lambda: runs("node-2") >= two + 3)
    assert runs("node-1") <= one + 1     # at most the one that was under way
    cluster.run(f"scancel {job}")
    cluster.wait("again on node-1", lambda: runs("node-1") > one + 1)


def test_output_is_appended_to(cluster):
    out = os.path.join(FOLDER, "appended")
    for word in "first", "second":
        cluster.wait_end(cluster.submit(f"-o {out} --wrap 'echo {word}'"))
    with open(out) as f:
        assert f.read() == "first\nsecond\n"
    cluster.wait_end(cluster.submit(f"-o {out} --open-mode=truncate --wrap 'echo third'"))
    assert cluster.out(f"cat {out}") == "third"
    cluster.run(f"srun -n1 -o {out} echo fourth")
    assert cluster.out(f"cat {out}") == "third\nfourth"


def test_limits_are_sent_but_for_the_named(cluster):
    here, there = 200, cluster.out("bash -c 'ulimit -n 200; ulimit -f 300; srun -n1 bash -c \"ulimit -n; ulimit -f\"'").split()
    assert there[0] != str(here) and there[1] == "300"
    asked = cluster.out("bash -c 'ulimit -n 200; ulimit -f 300; srun --propagate=NOFILE -n1 bash -c \"ulimit -n; ulimit -f\"'").split()
    assert asked[0] == str(here) and asked[1] == "unlimited"
    out = os.path.join(FOLDER, "limits")
    cluster.wait_end(cluster.out(f"bash -c 'ulimit -n 200; ulimit -f 300; sbatch --parsable --open-mode=truncate -o {out} --wrap \"ulimit -n; ulimit -f\"'"))
    got = cluster.out(f"cat {out}").split()
    assert got[0] != str(here) and got[1] in ("300", "600")     # in KiB, or in the 512 bytes of dash


def test_tasks_on_a_node_are_bounded(cluster):
    assert len(cluster.out("srun -N1 -n4 hostname").splitlines()) == 4
    done = cluster.run("srun -N1 -n5 hostname", check=False)
    assert done.rc == 1 and "MaxTasksPerNode allows 4" in done.err
    assert len(cluster.out("srun -N2 -n8 --ntasks-per-node=4 hostname").splitlines()) == 8


def test_gpus_bring_cpus_and_memory(cluster):
    shown = cluster.out("srun --gres=gpu:2 -n1 bash -c 'scontrol show job $SLURM_JOB_ID'")
    assert "cpu=4,mem=200M" in shown and "CpusPerTres=gres/gpu:2" in shown and "MemPerTres=gres/gpu:100" in shown
    own = cluster.out("srun --gres=gpu:2 -n1 -c1 --mem=300 bash -c 'scontrol show job $SLURM_JOB_ID'")
    assert "mem=300M" in own and "CpusPerTres" not in own


def test_exit_codes_that_requeue(cluster):
    again = cluster.submit("-o again.txt --wrap 'echo run $SLURM_RESTART_COUNT; exit $((${SLURM_RESTART_COUNT:-0} ? 0 : 5))'")
    held = cluster.submit("-o /dev/null --wrap 'exit $((${SLURM_RESTART_COUNT:-0} ? 0 : 7))'")
    once = cluster.submit("--no-requeue -o /dev/null --wrap 'exit 7'")
    cluster.wait("held", lambda: cluster.out(f"squeue -h -j {held} -o '%T %r'").split() == ["SPECIAL_EXIT", "JobHeldUser"])
    assert cluster.wait_end(once) == "FAILED"
    assert cluster.wait_end(again) == "COMPLETED" and cluster.read("again.txt").split() == ["run", "run", "1"]
    cluster.run(f"scontrol release {held}")
    assert cluster.wait_end(held) == "COMPLETED" and cluster.job(held, "Restarts") == "1"
