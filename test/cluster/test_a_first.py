"""The most basic things, so that the first failure is the most basic one."""
import re

CLUSTER = dict(nodes=2, cpus=4, gpus=2)


def test_status_shows_every_daemon_up(cluster):
    text = cluster.out("berth status")
    assert {line.split()[0] for line in text.splitlines()[1:]} == {"sackd", "slurmdbd", "slurmctld", "node-1", "node-2"}
    assert "down" not in text


def test_every_command_tells_the_version(cluster):
    for command in "sbatch srun salloc scancel squeue sinfo scontrol sacct slurmctld slurmd slurmdbd".split():
        assert re.fullmatch(r"slurm \d+\.\d+\.\d+", cluster.out(f"{command} -V")), command


def test_batch_job_runs_and_its_output_is_where_asked(cluster):
    job = cluster.submit("-o out-%j.txt --wrap 'echo hello from $SLURM_JOB_ID; hostname'")
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.read(f"out-{job}.txt").split() == ["hello", "from", str(job), "node-1"]


def test_failed_job_keeps_its_exit_code(cluster):
    job = cluster.submit("-o /dev/null --wrap 'exit 7'")
    assert cluster.wait_end(job) == "FAILED"
    assert cluster.job(job, "ExitCode") == "7:0"


def test_srun_brings_back_output_and_exit_code(cluster):
    result = cluster.run("srun -N2 --ntasks-per-node=2 -l hostname")
    assert sorted(result.out.split("\n")) == ["", "0: node-1", "1: node-1", "2: node-2", "3: node-2"]
    assert cluster.run("srun bash -c 'exit 3'", check=False).rc == 3


def test_step_inside_a_job(cluster):
    job = cluster.submit("-N2 -o step-%j.txt --wrap 'srun -l hostname'")
    assert cluster.wait_end(job) == "COMPLETED"
    assert sorted(cluster.read(f"step-{job}.txt").split("\n")) == ["", "0: node-1", "1: node-2"]


def test_cancel(cluster):
    job = cluster.submit("-o /dev/null --wrap 'sleep 300'")
    cluster.wait_state(job, "RUNNING")
    cluster.run(f"scancel {job}")
    assert cluster.wait_end(job) == "CANCELLED"
    cluster.wait_idle()


def test_sacct_knows_the_job_and_its_steps(cluster):
    job = cluster.submit("-o /dev/null --wrap 'srun true'")
    cluster.wait_end(job)
    want = {f"{job}|COMPLETED", f"{job}.batch|COMPLETED", f"{job}.0|COMPLETED"}
    cluster.wait("sacct", lambda: want <= set(cluster.out(f"sacct -n -P -j {job} -o jobid,state").split()))
