"""Emulated nodes: one process plays hundreds of them over the real protocol."""
import signal
import subprocess

import pytest

from conftest import BUILD, free_port

NODES = 400


PORT = free_port()
CLUSTER = dict(nodes=1, cpus=2, gpus=0, extra_conf=f"""MaxJobCount=50000
NodeName=e[1-{NODES}] NodeAddr=127.0.0.1 Port={PORT} CPUs=4 RealMemory=16000
NodeName=odd NodeAddr=127.0.0.1 Port={PORT} CPUs=4 RealMemory=16000
NodeName=far NodeAddr=127.0.0.1 Port={PORT + 1} CPUs=4 RealMemory=16000
PartitionName=emu Nodes=e[1-{NODES}] State=UP
""")


def emulator(cluster, *args):
    return subprocess.Popen([f"{BUILD}/sbin/slurmd", "-D", "--emulate", *args], env=cluster.env(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def emulated(cluster):
    proc = emulator(cluster, str(NODES), "-N", "e1")
    cluster.wait("all emulated nodes idle", lambda: idle(cluster) == NODES)
    yield cluster
    proc.send_signal(signal.SIGTERM)
    proc.communicate(timeout=20)


def idle(cluster):
    return int(cluster.out("sinfo -h -p emu -t idle -o %D") or 0)


def test_a_job_on_all_nodes(emulated):
    job = emulated.submit(f"-p emu -N{NODES} --exclusive --mem=100 -o /dev/null --wrap 'sleep 0.2'")
    assert emulated.wait_end(job) == "COMPLETED"
    assert emulated.job(job, "NumNodes") == str(NODES)
    emulated.wait("nodes free again", lambda: idle(emulated) == NODES)


def test_an_array_runs_to_its_end(emulated):
    job = emulated.submit("-p emu --mem=10 --array=1-900 -o /dev/null --wrap true")
    emulated.wait("the array over", lambda: emulated.out(f"squeue -h -j {job} -o %i") == "")
    ended = emulated.out(f"sacct -X -n -P -j {job} -o state").split()
    emulated.wait("all in accounting", lambda: emulated.out(f"sacct -X -n -P -j {job} -o state").split() == ["COMPLETED"] * 900)
    assert set(ended) <= {"COMPLETED", "RUNNING", "PENDING", "COMPLETING"}


def test_cancel_and_signal(emulated):
    job = emulated.submit("-p emu -N3 --mem=100 -o /dev/null --wrap 'sleep 1000'")
    emulated.wait_state(job, "RUNNING")
    emulated.run(f"scancel {job}")
    assert emulated.wait_end(job) == "CANCELLED"
    emulated.wait("nodes free again", lambda: idle(emulated) == NODES)


def test_a_step_on_all_nodes(emulated):
    """Through the tree of emulated slurmds; each of them connects to srun, begins and ends."""
    r = emulated.run(f"srun -vv --mem=100 -p emu --treewidth=8 -N{NODES} -n{2 * NODES} true")
    assert f"launch on {NODES} nodes: 8 messages of ours" in r.err
    assert emulated.run("srun --mem=100 -p emu -N2 sleep 0.2").rc == 0
    emulated.wait("nodes free again", lambda: idle(emulated) == NODES)


def test_a_step_is_killed(emulated):
    srun = subprocess.Popen(["srun", "--mem=100", "-p", "emu", "-N3", "sleep", "1000"], env=emulated.env(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    step = emulated.wait("the step runs", lambda: emulated.out("squeue -h -s -p emu -o %i"))
    emulated.run(f"scancel {step.split('.')[0]}")
    _, err = srun.communicate(timeout=60)
    assert srun.returncode and "Force Terminated" in err
    emulated.wait("nodes free again", lambda: idle(emulated) == NODES)

def test_controller_restarts_under_running_jobs(emulated):
    job = emulated.submit("-p emu -N2 --mem=100 -o /dev/null --wrap 'sleep 3'")
    emulated.wait_state(job, "RUNNING")
    emulated.berth("kill slurmctld")
    emulated.berth("start slurmctld")
    assert emulated.wait_end(job) == "COMPLETED"
    assert emulated.job(job, "Restarts") == "0"
    emulated.wait("nodes free again", lambda: idle(emulated) == NODES)


@pytest.mark.parametrize("args,says", [
    (["0"], "from 1 to"),
    (["x"], "from 1 to"),
    (["2", "-N", "nosuch"], "has no node nosuch"),
    ([str(NODES + 1), "-N", "e2"], "another NodeAddr or Port"),
    ([str(NODES * 3), "-N", "e1"], "has only"),
])
def test_bad_options(cluster, args, says):
    proc = emulator(cluster, *args)
    _, err = proc.communicate(timeout=20)
    assert proc.returncode == 1 and says in err


def test_only_the_node_named_in_the_frame_answers(emulated):
    """`odd` has the emulator's address but is not played by it: what is said to odd must not be taken for one of the others."""
    emulated.wait("odd found silent", lambda: emulated.out("sinfo -h -n odd -p main -o %t") not in ("idle", ""))
    assert idle(emulated) == NODES
