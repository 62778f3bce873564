"""Whatever is killed, no acknowledged job is lost or run twice, and all of it comes back by itself (R42, R46)."""
import threading

CLUSTER = dict(nodes=3, cpus=4, gpus=2)


def test_acknowledged_jobs_survive_kill_of_the_controller(cluster):
    acked, stop = [], threading.Event()

    def submitter():
        while not stop.is_set():
            result = cluster.run("sbatch -H --parsable -J durable --wrap true", check=False)
            if result.rc == 0:
                acked.append(int(result.out))

    threads = [threading.Thread(target=submitter) for _ in range(4)]
    for t in threads:
        t.start()
    cluster.wait("some submissions", lambda: len(acked) > 40)
    cluster.berth("kill slurmctld")
    before = len(acked)
    cluster.berth("start slurmctld")
    cluster.wait("more submissions", lambda: len(acked) > before + 40)
    stop.set()
    for t in threads:
        t.join()
    known = {int(i) for i in cluster.out("squeue -h -n durable -o %i").split()}
    assert len(set(acked)) == len(acked), "an id was given out twice"
    assert set(acked) <= known, f"lost: {sorted(set(acked) - known)}"
    cluster.run("scancel -n durable")


def test_running_job_goes_on_while_the_controller_is_dead(cluster):
    job = cluster.submit("-o on-%j.txt --wrap 'while [ ! -e go ]; do sleep 0.1; done; echo over; exit 5'")
    cluster.wait_state(job, "RUNNING")
    cluster.berth("kill slurmctld")
    cluster.run("touch go")
    cluster.wait("the script ends", lambda: "over" in cluster.read(f"on-{job}.txt"))
    cluster.berth("start slurmctld")
    assert cluster.wait_end(job) == "FAILED"
    assert cluster.job(job, "ExitCode") == "5:0"
    assert cluster.read(f"on-{job}.txt").count("over") == 1


def test_step_is_adopted_by_a_restarted_slurmd(cluster):
    job = cluster.submit("-w node-2 -o adopt-%j.txt --wrap 'while [ ! -e adopted ]; do sleep 0.1; done; exit 4'")
    cluster.wait_state(job, "RUNNING")
    pid = cluster.out("berth status | awk '$1 == \"node-2\" { print $3 }'")
    cluster.run(f"kill -9 {pid}", user="root")
    cluster.berth("start node-2")
    cluster.wait("node-2 answers", lambda: "alloc" in cluster.node_state("node-2") or "mix" in cluster.node_state("node-2"))
    assert cluster.state(job) == "RUNNING"
    cluster.run("touch adopted")
    assert cluster.wait_end(job) == "FAILED"
    assert cluster.job(job, "ExitCode") == "4:0"


def test_node_that_dies_gives_its_job_back_to_the_queue(cluster):
    job = cluster.submit("-N1 -w node-3 --requeue --open-mode=append -o dies-%j.txt --wrap 'echo run ${SLURM_RESTART_COUNT:-0}; [ \"$SLURM_RESTART_COUNT\" ] || sleep 300'")
    cluster.wait("first run", lambda: cluster.run(f"grep -q 'run 0' dies-{job}.txt", check=False).rc == 0)
    cluster.berth("kill node-3")
    cluster.wait("node-3 down", lambda: cluster.node_state("node-3").startswith("down"))
    assert cluster.state(job) == "PENDING"
    assert cluster.job(job, "Restarts") == "1"
    cluster.berth("start node-3")
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.read(f"dies-{job}.txt").split("\n")[:2] == ["run 0", "run 1"]


def test_node_that_dies_ends_a_job_that_may_not_be_requeued(cluster):
    cluster.wait_idle()
    job = cluster.submit("-N2 --no-requeue -o /dev/null --wrap 'srun sleep 300'")
    cluster.wait_state(job, "RUNNING")
    last = cluster.out(f"scontrol show hostnames {cluster.job(job, 'NodeList')}").split()[-1]
    cluster.berth(f"kill {last}")
    assert cluster.wait_end(job) == "NODE_FAIL"
    cluster.berth(f"start {last}")
    cluster.wait_idle()


def test_same_submission_sent_twice_is_one_job(cluster):
    """The controller dies between commit and answer: the client's retry must not make a second job (checked by names)."""
    for i in range(3):
        names = [f"once-{i}-{k}" for k in range(6)]
        procs = [threading.Thread(target=cluster.run, args=(f"sbatch -H -J {n} --wrap true",), kwargs=dict(check=False)) for n in names]
        for p in procs:
            p.start()
        cluster.berth("kill slurmctld")
        cluster.berth("start slurmctld")
        for p in procs:
            p.join()
        got = [j for j in cluster.out("squeue -h -o %j").split() if j.startswith(f"once-{i}-")]
        assert len(got) == len(set(got)), got
    cluster.run("scancel -t PD -u root", check=False)
