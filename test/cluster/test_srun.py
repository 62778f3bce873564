"""srun: output, input, signals, exit codes, environment, interactive use (R21, R22, R31-R33)."""
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

CLUSTER = dict(nodes=2, cpus=8, gpus=0)


def test_stdin_reaches_every_task(cluster):
    assert sorted(cluster.run("srun -n3 -l cat", stdin="a\nb\n").out.splitlines()) == sorted(f"{t}: {x}" for t in range(3) for x in "ab")


def test_binary_output_is_whole(cluster):
    cluster.run("head -c 3000000 /dev/urandom > blob && srun cat blob | cmp - blob && srun cat < blob | cmp - blob")


@pytest.mark.parametrize("reader", ["cat", "sh -c 'dd bs=1000 count=3000 iflag=fullblock status=none; sleep 0.3; cat'"], ids=["fast", "slow"])
@pytest.mark.parametrize("tasks", ["-n1", "-n2 -u"])
def test_large_output_is_whole_and_in_order(cluster, reader, tasks):
    """Large pieces are spliced, small ones queued, and both meet; the two streams of a task go their own ways."""
    script = os.path.join(cluster.work, "large.py")
    with open(script, "w") as f:
        f.write("""import os, sys
if os.environ['SLURM_PROCID'] == '0':
    for i in range(1000):
        data = bytes([i % 251]) * (i % 7 == 0 and 200000 or i % 40)
        os.write(1, data)
        os.write(2, data[:5])
""")
    want = [bytes([i % 251]) * (200000 if i % 7 == 0 else i % 40) for i in range(1000)]
    r = subprocess.run(f"srun {tasks} /usr/bin/python3 {script} 2>{cluster.work}/err | {reader}", shell=True, env=cluster.env(), stdout=subprocess.PIPE, timeout=60)
    assert r.stdout == b"".join(want)
    with open(f"{cluster.work}/err", "rb") as f:
        assert f.read() == b"".join(w[:5] for w in want)


def test_task_reads_its_own_output_back(cluster):
    """What slurmstepd was about to pass on is gone: the step's output ends with a message, nobody waits for it or turns in circles."""
    script = os.path.join(cluster.work, "back.py")
    with open(script, "w") as f:
        f.write("""import os, time
pipe = os.open('/proc/self/fd/1', os.O_RDWR | os.O_NONBLOCK)
open('begun', 'w').close()
while not os.path.exists('stopped'):
    time.sleep(0.01)
full = 0
while full < 50:                       # nothing goes any more: srun does not read, the pipe waits
    try:
        os.write(pipe, bytes(65536))
        full = 0
    except BlockingIOError:
        full += 1
        time.sleep(0.01)
try:
    while True:
        os.read(pipe, 1 << 20)
except BlockingIOError:
    pass
open('back', 'w').close()
time.sleep(600)
""")
    srun = subprocess.Popen(["srun", "-D", cluster.work, "/usr/bin/python3", script], env=cluster.env(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    cluster.wait("the task", lambda: os.path.exists(f"{cluster.work}/begun"))
    srun.send_signal(signal.SIGSTOP)
    open(f"{cluster.work}/stopped", "w").close()
    cluster.wait("the pipe to be empty", lambda: os.path.exists(f"{cluster.work}/back"))
    srun.send_signal(signal.SIGCONT)
    assert "connection closed" in srun.communicate(timeout=60)[1] and srun.returncode
    cluster.wait("the job's end", lambda: cluster.out("squeue -h") == "")


def test_arbitrary_distribution(cluster):
    """The hosts of -w or of a file, in their order, a task each."""
    where = "printenv SLURMD_NODENAME"
    assert sorted(cluster.out(f"srun -n2 -m arbitrary -w node-2,node-1 -l {where}").splitlines()) == ["0: node-2", "1: node-1"]
    assert sorted(cluster.out(f"printf 'node-2\nnode-1\n' > hosts; srun -n2 -m arbitrary -F ./hosts -l {where}").splitlines()) == ["0: node-2", "1: node-1"]
    assert sorted(cluster.out(f"SLURM_HOSTFILE=hosts srun -n2 -l {where}").splitlines()) == ["0: node-2", "1: node-1"]
    # a host as often as it has tasks: the job gets CPUs for them there, and only there
    order = ["0: node-2", "1: node-1", "2: node-2", "3: node-2"]
    cluster.run("printf 'node-2\nnode-1\nnode-2\nnode-2\n' > hosts")
    assert sorted(cluster.out(f"SLURM_HOSTFILE=hosts srun -l {where}").splitlines()) == order
    assert sorted(cluster.out(f"srun -m arbitrary --nodefile=hosts -n3 -l {where}").splitlines()) == order[:3]
    assert sorted(cluster.out(f"srun -m arbitrary -w node-2,node-1,node-2,node-2 -l {where}").splitlines()) == order
    inside = "echo $SLURM_TASKS_PER_NODE $SLURM_JOB_CPUS_PER_NODE $SLURM_ARBITRARY_NODELIST $SLURM_DISTRIBUTION; srun -l " + where
    for how in ("salloc -Q -n4 -m arbitrary -w node-2,node-1,node-2,node-2 bash -c", "SLURM_HOSTFILE=hosts sbatch -Q -W -o hosts.out -n4 -m arbitrary --wrap"):
        got = cluster.out(f"{how} '{inside}'; cat hosts.out 2>/dev/null; rm -f hosts.out").splitlines()
        assert got[0] == "1,3 1,3 node-[2,1-2,2] arbitrary" and sorted(got[1:]) == order
    for options, code, text in (("-n5 -m arbitrary --nodefile=hosts", 1, "Too few NodeNames in Slurm Hostfile: 4 for 5 tasks"), ("-n2 -m arbitrary -w node-1,node-2,node-1", 1, "Task count specification invalid"),
                                ("-m arbitrary -w ./none", 1, "./none"), ("-c99 -m arbitrary -w node-1", 1, "Requested node configuration is not available"),
                                ("-m arbitrary:block", 255, "Invalid --distribution specification")):
        r = cluster.run(f"srun {options} true", check=False)
        assert r.rc == code and text in r.err, r
    assert "error opening file ./none, No such file or directory" in cluster.run("SLURM_HOSTFILE=./none srun true", check=False).err
    for options, text in (("-N2", "--nodes is incompatible with --distribution=arbitrary"), ("", "With Arbitrary distribution you need to specify a nodelist or hostfile with the -w option")):
        r = cluster.run(f"srun -n2 -m arbitrary {options} true", check=False)
        assert (r.rc, r.err) == (1, f"srun: error: {text}\n")


def test_many_tasks_lose_no_line(cluster):
    lines = cluster.run("srun -N2 -n16 bash -c 'for i in $(seq 200); do echo $SLURM_PROCID $i; done'").out.splitlines()
    assert len(lines) == len(set(lines)) == 3200


def test_more_tasks_than_cpus_lose_no_line(cluster):
    """Hundreds of tasks on few CPUs write both streams at once, and who reads them pauses: each line comes once, whole."""
    line = "$SLURM_PROCID $i of four, and some words more, so that a line cut in two would be seen"
    r = cluster.run(f"set -o pipefail; srun -N2 -O -n400 bash -c 'for i in 1 2 3 4; do echo {line}; echo {line} >&2; done' 2> err | (sleep 1; cat)")
    want = {line.replace("$SLURM_PROCID", str(t)).replace("$i", str(i)) for t in range(400) for i in range(1, 5)}
    for lines in (r.out.splitlines(), cluster.read("err").splitlines()):
        assert len(lines) == 1600 and set(lines) == want


def test_output_patterns(cluster):
    cluster.run("srun -n3 -o task-%t.txt bash -c 'echo $SLURM_PROCID'")
    assert [cluster.read(f"task-{t}.txt").strip() for t in range(3)] == ["0", "1", "2"]


def test_exit_codes(cluster):
    result = cluster.run("srun -n2 bash -c 'exit $((SLURM_PROCID + 4))'", check=False)
    assert result.rc == 5
    assert "srun: error: node-1: task 1: Exited with exit code 5" in result.err
    killed = cluster.run("srun bash -c 'kill -9 $$'", check=False)
    assert killed.rc == 137 and "Killed" in killed.err


def test_missing_program(cluster):
    result = cluster.run("srun /no/such/program", check=False)
    assert result.rc == 2 and "No such file or directory" in result.err


def test_kill_on_bad_exit(cluster):
    began = time.monotonic()
    result = cluster.run("srun -n2 -K bash -c 'if [ $SLURM_PROCID = 0 ]; then exit 9; else sleep 300; fi'", check=False)
    assert result.rc != 0 and time.monotonic() - began < 60


def test_environment_of_a_task(cluster):
    out = cluster.run("srun -N2 -n4 --ntasks-per-node=2 -l bash -c 'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_NTASKS $SLURM_NNODES $RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR'").out
    assert sorted(out.splitlines()) == [f"{t}: {t} {t % 2} {t // 2} 4 2 {t} {t % 2} 4 node-1" for t in range(4)]


def test_multi_prog(cluster):
    cluster.run("cat > mp.conf", stdin="0 echo zero %t\n1-2 echo more %t %o\n")
    with open(f"{cluster.work}/quoted.conf", "w") as f:
        f.write("""0 echo 'a  b' 'c'd "e f"\n1 echo %t\n""")
    assert sorted(cluster.out("srun -n2 -l --multi-prog quoted.conf more 'and  more'").splitlines()) == ['0: a  b cd "e f" more and  more', "1: 1 more and  more"]
    r = cluster.run("srun -n1 --multi-prog quoted.conf", check=False)
    assert r.rc == 1 and r.err == "srun: error: Invalid task id, 1 >= ntasks\nsrun: error: Line 2 of configuration file quoted.conf invalid\n"
    assert sorted(cluster.run("srun -n3 -l --multi-prog mp.conf").out.splitlines()) == ["0: zero 0", "1: more 1 0", "2: more 2 1"]


def test_cpus_per_task_is_inherited(cluster):
    job = cluster.submit("-n1 --cpus-per-task=4 -o cpt-%j.txt --wrap 'srun printenv SLURM_CPUS_PER_TASK; srun -c2 printenv SLURM_CPUS_PER_TASK'")
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.read(f"cpt-{job}.txt").split() == ["4", "2"]


def test_salloc_grants_and_relinquishes(cluster):
    result = cluster.run("salloc -N2 bash -c 'srun -l hostname; echo $SLURM_JOB_NUM_NODES'")
    job = result.err.split("Granted job allocation ")[1].split()[0]
    assert sorted(result.out.splitlines()) == ["0: node-1", "1: node-2", "2"]
    assert result.err.splitlines() == [f"salloc: Granted job allocation {job}", "salloc: Nodes node-[1-2] are ready for job", f"salloc: Relinquishing job allocation {job}"]
    assert cluster.run("salloc -Q true").err == ""


def test_steps_join_a_running_job(cluster):
    result = cluster.run("salloc --no-shell -n2 -t 5")
    job = result.err.split("Granted job allocation ")[1].split()[0]
    assert cluster.run(f"srun --jobid {job} -n1 printenv SLURM_JOB_ID").out.strip() == job
    cluster.run(f"scancel {job}")
    cluster.wait_idle()


def test_interrupted_wait_for_a_step_leaves_nothing(cluster):
    def spawn(command):
        return subprocess.Popen(f"exec {command}", shell=True, cwd=cluster.work, env=cluster.env(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    job = cluster.run("salloc --no-shell -N2 -t 5").err.split("Granted job allocation ")[1].split()[0]
    assert cluster.job(job, "JobName") == "no-shell"
    first = spawn(f"srun --jobid {job} sleep 600")
    cluster.wait("the first step", lambda: f"{job}.0" in cluster.out("squeue -hs -o %i"))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        waits = spawn(f"srun --jobid {job} hostname")
        assert "temporarily disabled, retrying" in waits.stderr.readline()
        waits.send_signal(number)
        said = waits.communicate(timeout=30)[1]
        if number != signal.SIGKILL:
            assert waits.returncode == 1
            assert said.splitlines()[-2:] == [f"srun: Cancelled pending job step with signal {number}",
                                              f"srun: error: Unable to create step for job {job}: Job/step already completing or completed"]
    cluster.run(f"scancel {job}.0")
    first.communicate(timeout=30)
    assert cluster.out(f"srun --jobid {job} -w node-2 hostname").split() == ["node-2"]
    assert cluster.out(f"srun --jobid {job} -x node-2 hostname").split() == ["node-1"]
    assert f"{job}." not in cluster.out("squeue -hs -o %i")
    cluster.wait("accounting of the steps", lambda: [i for i in cluster.out(f"sacct -nP -j {job} -o jobid").split() if "." in i] == [f"{job}.{n}" for n in range(3)])
    cluster.run(f"scancel {job}")
    cluster.wait_idle()


def test_killed_srun_takes_its_job_or_step_along(cluster):
    def killed(command, said):
        srun = subprocess.Popen(f"exec srun {command}", shell=True, cwd=cluster.work, env=cluster.env(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert said in srun.stdout.readline()
        srun.kill()
        srun.communicate()
    runs = "sh -c 'echo up; exec sleep 600'"
    killed(f"-J alone -N2 {runs}", "up")
    cluster.wait("the job to be cancelled", lambda: cluster.out("sacct -nXP --name alone -o State").startswith("CANCELLED"))
    cluster.wait_idle()
    job = cluster.run("salloc --no-shell -N2 --exclusive -t 5").err.split("Granted job allocation ")[1].split()[0]
    killed("-J queued -N2 --exclusive true", "queued and waiting")
    cluster.wait("it to be taken back", lambda: "queued" not in cluster.out("squeue -h -o %j"))
    killed(f"--jobid {job} -J inner {runs}", "up")
    cluster.wait("the step to end", lambda: "inner" not in cluster.out("squeue -hs -o %j"))
    assert cluster.out(f"srun --jobid {job} -w node-2 hostname").split() == ["node-2"]
    cluster.run(f"scancel {job}")
    cluster.wait_idle()


def test_pty_is_a_terminal(cluster):
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(cluster.work)
        os.execvpe("srun", ["srun", "--pty", "bash", "-c", "tty >/dev/null && stty size && read x && echo got:$x"], cluster.env())
    seen = b""
    end = time.monotonic() + 30
    sent = False
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.2)[0]:
            try:
                data = os.read(fd, 4096)
            except OSError:
                break
            if not data:
                break
            seen += data
        if not sent and b"\n" in seen:
            os.write(fd, b"hello\n")
            sent = True
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, seen
    assert b"got:hello" in seen


def test_cancelled_step_says_so(cluster):
    job = cluster.submit("-o cancelled-%j.txt --wrap 'srun sleep 300'")
    cluster.wait("the step", lambda: cluster.out(f"squeue -h -s -j {job} -o %i"))
    cluster.run(f"scancel {job}")
    assert cluster.wait_end(job) == "CANCELLED"
    cluster.wait("text", lambda: "CANCELLED AT" in cluster.read(f"cancelled-{job}.txt"))


def test_signal_to_steps_and_batch(cluster):
    body = "trap \"echo batch-usr1\" USR1; srun bash -c \"trap \\\"echo step-usr1; exit 0\\\" USR1; touch sig-ready; while :; do sleep 0.1; done\" & wait; wait; echo end"
    job = cluster.submit(f"-o sig-%j.txt --wrap '{body}'")
    cluster.wait("ready", lambda: cluster.run("test -e sig-ready", check=False).rc == 0)
    cluster.run(f"scancel --signal=USR1 {job}")
    assert cluster.wait_end(job) == "COMPLETED"
    assert "step-usr1" in cluster.read(f"sig-{job}.txt") and "batch-usr1" not in cluster.read(f"sig-{job}.txt")


def test_few_open_files(cluster):
    """A shell's limit of open files is not one of srun's nodes; the tasks have it all the same."""
    nodes = CLUSTER["nodes"]
    few = cluster.run(f"ulimit -Sn 11; srun -N{nodes} -n{2 * nodes} bash -c 'ulimit -Sn'")
    assert few.out.split() == ["11"] * 2 * nodes and not few.err


@pytest.mark.parametrize("line,cpus,tasks", [
    ("srun --exclusive -N1", 1, 1), ("srun --exclusive -N2", 2, 2), ("srun --exclusive -N1 --exact", 1, 1), ("srun --exclusive -N1 -n2", 0, 2), ("srun --exclusive -n1", 0, 1),
    ("srun --exclusive -N1 --ntasks-per-node=2", 0, 2), ("salloc -Q -N1 --exclusive srun", 1, 1), ("salloc -Q -N1 --exclusive srun --exclusive", 0, 1),
    ("salloc -Q -N1 --exclusive srun --exclusive -N1 -n2", 0, 2)])
def test_exclusive_and_the_cpus_of_the_step(cluster, line, cpus, tasks):
    """cpus: of how many whole nodes; 0: as many as there are tasks."""
    node = int(cluster.out("sinfo -h -n node-1 -o %c"))
    shown = cluster.out(f"{line} sh -c 'scontrol show step $SLURM_JOB_ID.0'")
    assert re.search(r"CPUs=(\d+) Tasks=(\d+)", shown).groups() == (str(cpus * node or tasks), str(tasks)), shown
