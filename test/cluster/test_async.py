"""srun --async and swait (srun(1), swait(1); texts as the reference prints them)."""
import os
import re

CLUSTER = dict(nodes=2, cpus=4, gpus=0)


def write(cluster, name, text):
    with open(os.path.join(cluster.work, name), "w") as f:
        f.write(text)


def batch(cluster, body, args="-n4 --mem=0"):
    write(cluster, "job.sh", "#!/bin/bash\n" + body)
    job = cluster.submit(f"--stepmgr {args} -o out job.sh")
    cluster.wait_end(job)
    return job, cluster.read("out")


def test_in_a_script(cluster):
    """More steps than fit: each has its number at once, runs in its turn, and swait comes back after the last one."""
    job, out = batch(cluster, """
for i in 1 2 3; do srun --async -n4 bash -c 'echo $SLURM_STEP_ID:$SLURM_PROCID >> ran; [ $SLURM_STEP_ID != 1 ] || exit 3'; echo rc=$?; done
srun --async --parsable -l -n2 echo text
srun --async -Q -n1 cat
swait; echo swait=$?
wc -l < ran
""")
    assert out.split("\n") == [f"Submitted step {job}.0", "rc=0", f"Submitted step {job}.1", "rc=0", f"Submitted step {job}.2", "rc=0", f"{job}.3", "swait=0", "12", ""]
    assert sorted(cluster.read(f"slurm-{job}.3.out").splitlines()) == ["0: text", "1: text"]
    assert cluster.read(f"slurm-{job}.4.out") == ""                  # nothing on stdin
    cluster.wait("accounting has the steps", lambda: cluster.out(f"sacct -n -X -j {job} -o state%20").split() == ["COMPLETED"] and
                 f"{job}.4" in cluster.out(f"sacct -n -P -j {job} -o jobid"))
    rows = [line.split("|") for line in cluster.out(f"sacct -n -P -j {job} -o jobid,state,exitcode,ntasks").splitlines()]
    steps = {r[0].split(".")[1]: r[1:] for r in rows if re.search(r"\.\d+$", r[0])}
    assert steps["0"] == ["COMPLETED", "0:0", "4"] and steps["1"] == ["FAILED", "3:0", "4"] and steps["3"] == ["COMPLETED", "0:0", "2"]


def test_files_and_two_nodes(cluster):
    """One file for all tasks of two nodes, one a task, another for stderr, a file as input."""
    job, out = batch(cluster, """
echo from-file > input
srun --async -N2 -n2 -o one.%j.%s bash -c 'echo $SLURMD_NODENAME'
srun --async -N2 -n2 -o each.%t -e err.%J bash -c 'echo $SLURM_PROCID; echo bad-$SLURM_PROCID >&2'
srun --async -N1 -n1 -i input -o copy cat
swait
""", "-N2 --ntasks-per-node=2 --mem=0")
    assert sorted(cluster.read(f"one.{job}.0").splitlines()) == ["node-1", "node-2"]
    assert [cluster.read("each.0"), cluster.read("each.1")] == ["0\n", "1\n"]
    assert sorted(cluster.read(f"err.{job}.1").splitlines()) == ["bad-0", "bad-1"]
    assert cluster.read("copy") == "from-file\n"


def test_pending_is_shown_and_cancelled(cluster):
    """A step without room is PENDING in show step, not in squeue -s; cancelled there, it is CANCELLED in accounting and never runs. One that runs can be cancelled too."""
    job, out = batch(cluster, """
srun --async -n4 bash -c 'touch first; while [ ! -e stop ]; do sleep 0.1; done'
srun --async -n4 touch never
srun --async -n4 touch last
until [ -e first ]; do sleep 0.1; done
scontrol show step $SLURM_JOB_ID.1 | grep -o 'State=[A-Z]*'
squeue -h -s -o %i | grep -c "$SLURM_JOB_ID.1"
swait --timeout=1; echo swait=$?
scancel $SLURM_JOB_ID.1
touch stop
swait; echo swait=$?
ls never last
""")
    assert "State=PENDING\n0\n" in out
    assert "swait: error: timed out after 1 seconds\nswait=1\n" in out and "swait=0\n" in out and "cannot access 'never'" in out and "last" in out.split("swait=0")[1]
    cluster.wait("accounting has the steps", lambda: f"{job}.2|COMPLETED" in cluster.out(f"sacct -n -P -j {job} -o jobid,state"))
    assert re.search(rf"^{job}\.1\|CANCELLED", cluster.out(f"sacct -n -P -j {job} -o jobid,state"), re.M)


def test_job_end_ends_them(cluster):
    """The script ends without swait: what runs and what waits is cancelled, and nothing is left."""
    job, out = batch(cluster, "srun --async -n4 bash -c 'echo $$ > pid; sleep 1000'\nsrun --async -n4 sleep 1000\nuntil [ -s pid ]; do sleep 0.1; done\n")
    pid = cluster.read("pid").strip()
    cluster.wait("the task is gone", lambda: cluster.run(f"kill -0 {pid}", check=False).rc)
    cluster.wait("accounting has the steps", lambda: cluster.out(f"sacct -n -P -j {job} -o jobid,state").count("CANCELLED") == 2)


def test_survives_slurmctld(cluster):
    """slurmctld is killed while one step runs and one waits: both go on, and swait too."""
    write(cluster, "job.sh", "#!/bin/bash\nsrun --async -n4 bash -c 'until [ -e go ]; do sleep 0.1; done'\nsrun --async -n4 touch second\n"
                                         "touch waiting; swait; echo swait=$?; ls second\n")
    job = cluster.submit("-n4 --mem=0 -o out job.sh")
    cluster.wait("both are there", lambda: os.path.exists(os.path.join(cluster.work, "waiting")) and "PENDING" in cluster.run(f"scontrol show step {job}.1", check=False).out)
    cluster.berth("kill slurmctld")
    cluster.berth("start slurmctld")
    cluster.wait("slurmctld answers", lambda: cluster.run("scontrol ping", check=False).rc == 0)
    write(cluster, "go", "")
    cluster.wait_state(job, "COMPLETED")
    assert cluster.read("out").endswith("swait=0\nsecond\n")


def test_refusals(cluster):
    def says(command, code, text):
        r = cluster.run(command, check=False)
        assert (r.rc, r.err.strip()) == (code, text), command
    says("srun --async true", 1, "srun: error: --async is only valid for steps submitted within an existing job allocation.")
    says("srun --parsable true", 1, "srun: error: --parsable requires --async.")
    says("srun --treewidth=70000 true", 255, "srun: error: Invalid --treewidth value: 70000")
    says("swait 42.0", 2, "swait: error: 42.0: swait operates on a job, not a step")
    says("swait 42_[0-3]", 2, "swait: error: 42_[0-3]: array-task ranges are not supported, pass one task offset")
    says("swait 42+1", 2, "swait: error: 42+1: het-job offsets are not supported")
    says("swait", 2, "swait: error: no job id given and SLURM_JOB_SLUID/SLURM_JOB_ID are not set")
    says("swait 1 2", 2, "swait: error: too many positional arguments (expected at most one job id)")
    says("swait --timeout=-1", 2, "swait: error: --timeout: invalid value '-1' (must be a non-negative integer)")
    says("swait 999999", 2, "swait: error: cannot load JobId=999999: Invalid job id specified")
    held = cluster.submit("-H --wrap true")
    says(f"swait {held}", 2, f"swait: error: JobId={held} is still pending; swait does not wait for jobs to start")
    says(f"swait {held}_2", 2, f"swait: error: JobId={held}: not an array job")
    array = cluster.submit("-a 1-2 -n1 --mem=1 --wrap 'sleep 100'")
    cluster.wait("both run", lambda: cluster.out(f"squeue -h -j {array} -t R").count("\n") >= 1)
    says(f"swait {array}", 2, f"swait: error: JobId={array} is an array job; pass a specific task offset (jobid_task)")
    says(f"swait {array}_9", 2, f"swait: error: array task {array}_9: not found")
    says(f"swait {array}_2", 0, "")
    for bad, text in (("--immediate=1", "--immediate and --async are mutually exclusive."), ("--pty", "--async and --pty are mutually exclusive."),
                      ("--mpi=pmi2", "--async does not support MPI type 'pmi2' (set by --mpi, SLURM_MPI_TYPE or MpiDefault). Use --mpi=none to run a non-MPI program.")):
        says(f"srun --jobid={array} --async {bad} true", 1, f"srun: error: {text}")
    assert "More processors requested" in cluster.run(f"srun --jobid={array} --async -n99 true", check=False).err
    cluster.run(f"scancel {array} {held}")
