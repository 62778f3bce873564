"""--no-kill: a job keeps its other nodes when one of them is lost."""
import pytest

CLUSTER = dict(nodes=4, cpus=4, gpus=0)


@pytest.fixture(autouse=True)
def nodes_back(cluster):
    yield
    cluster.run("scancel --me", check=False)
    for node in "node-2", "node-3":
        cluster.berth(f"start {node}")
    cluster.wait_idle()


def test_an_allocation_goes_on_with_the_rest(cluster):
    script = ("srun -N1 -n1 -w node-2 sleep 100; echo step $?; "
              "while [ $(squeue -h -j $SLURM_JOB_ID -o %D) != 1 ]; do sleep 0.2; done; echo nodes $(squeue -h -j $SLURM_JOB_ID -o %N); "
              "srun -N1 -n1 hostname > /dev/null; echo more $?; touch done; sleep 60")
    job = cluster.submit(f"--no-kill -N2 -n2 -w node-1,node-2 -o kept.txt --wrap '{script}'")
    cluster.wait("its step runs", lambda: cluster.out(f"squeue -h -s -j {job}").count(f"{job}.0") == 1)
    cluster.berth("kill node-2")
    cluster.wait("node-2 is given up", lambda: "down" in cluster.node_state("node-2"))
    cluster.wait("the job goes on", lambda: cluster.run("test -e done", check=False).rc == 0)
    lines = cluster.read("kept.txt").splitlines()
    assert "nodes node-1" in lines and "more 0" in lines
    assert [line for line in lines if line.startswith("step ")][0] != "step 0"
    assert cluster.state(job) == "RUNNING" and cluster.job(job, "NodeList") == "node-1" and cluster.job(job, "NumNodes") == "1" and cluster.job(job, "Restarts") == "0"
    cluster.berth("kill slurmctld")
    cluster.berth("start slurmctld")
    assert cluster.state(job) == "RUNNING" and cluster.job(job, "NodeList") == "node-1"


def test_without_it_the_job_ends_with_its_node(cluster):
    job = cluster.submit("--no-requeue -N2 -n2 -w node-1,node-3 --wrap 'sleep 100'")
    cluster.wait_state(job, "RUNNING")
    cluster.berth("kill node-3")
    assert cluster.wait_end(job) == "NODE_FAIL"
