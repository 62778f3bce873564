"""A cluster started by an ordinary user, without root; and ordinary users of a cluster started by root."""
import os

CLUSTER = dict(nodes=2, cpus=4, gpus=2)


def test_ordinary_users_cluster_runs_jobs(user_cluster, user):
    c = user_cluster
    job = c.submit("-N2 --gres=gpu:1 -o own-%j.txt --wrap 'id -un; srun -l printenv CUDA_VISIBLE_DEVICES'")
    assert c.wait_end(job) == "COMPLETED", c.read(f"own-{job}.txt")
    assert sorted(c.read(f"own-{job}.txt").split()) == sorted([user, "0:", "0", "1:", "0"])


def test_ordinary_user_needs_no_key_on_roots_cluster(cluster, user):
    if os.geteuid():
        return
    assert cluster.run("cat $BERTH_DIR/etc/slurm.key", user=user, check=False).rc != 0
    job = cluster.submit("-o who-%j.txt --wrap 'id -un; umask; pwd'", user=user)
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.read(f"who-{job}.txt").split()[0] == user
    assert cluster.out("srun id -un", user=user) == user
    for refused in ("scontrol update nodename=node-1 state=drain reason=x", "scontrol reconfigure", "scontrol shutdown", "scontrol update partition=main state=down"):
        assert cluster.run(refused, user=user, check=False).rc == 1, refused


def test_nice_below_zero_is_for_operators(cluster, user):
    if os.geteuid():
        return
    for command, begin in (("sbatch --nice=-5 --wrap true", "sbatch: error: Batch job submission failed"), ("srun --nice=-5 true", "srun: error: Unable to allocate resources"),
                           ("salloc --nice=-5 true", "salloc: error: Job submit/allocate failed")):
        got = cluster.run(command, user=user, check=False)
        assert (got.rc, got.out, got.err) == (1, "", f"{begin}: Invalid --nice value\n")
    job = cluster.submit("-H -o /dev/null --wrap true", user=user)
    got = cluster.run(f"scontrol update jobid={job} nice=-100", user=user, check=False)
    assert got.rc == 1 and got.err.splitlines()[0] == f"Access/permission denied for job {job}"
    cluster.run(f"scontrol update jobid={job} nice=100", user=user)
    assert cluster.job(job, "Nice") == "100"
    cluster.run(f"scontrol update jobid={job} nice=-100")
    assert cluster.job(job, "Nice") == "-100"
    cluster.run(f"scancel {job}")


def test_nice_of_a_running_job(cluster):
    job = cluster.submit("-o /dev/null --wrap 'sleep 300'")
    cluster.wait_state(job, "RUNNING")
    for nice in ("5", "-5"):
        cluster.run(f"scontrol update jobid={job} nice={nice}")
        assert cluster.job(job, "Nice") == nice and cluster.state(job) == "RUNNING"
    cluster.run(f"scancel {job}")


def test_an_ordinary_users_priority_counts_as_none(cluster, user):
    if os.geteuid():
        return
    plain = cluster.submit("-b now+1hour -o /dev/null --wrap true", user=user)
    job = cluster.submit("-b now+1hour --priority=77777 -o /dev/null --wrap true", user=user)
    held = cluster.submit("-H --priority=77777 -o /dev/null --wrap true", user=user)
    own = cluster.submit("-b now+1hour --priority=77777 -o /dev/null --wrap true")
    assert cluster.job(own, "Priority") == "77777"
    assert 0 < int(cluster.job(job, "Priority")) <= int(cluster.job(plain, "Priority"))
    assert cluster.job(held, "Priority") == "0" and cluster.job(held, "Reason") == "JobHeldUser"
    cluster.run(f"scancel {plain} {job} {held} {own}")


def test_gres_given_to_update_is_shown_by_its_full_name(cluster):
    job = cluster.submit("-H -o /dev/null --wrap true")
    for value, shown in (("gres=gpu:1", "gres/gpu:1"), ("gres=gres/gpu:2", "gres/gpu:2"), ("TresPerNode=gpu:1", "gres/gpu:1")):
        cluster.run(f"scontrol update jobid={job} {value}")
        assert cluster.job(job, "TresPerNode") == shown
    cluster.run(f"scancel {job}")


def test_qos_in_the_environment(cluster):
    show = "sh -c 'echo $SLURM_JOB_QOS'"
    assert cluster.out(f"srun -n1 {show}") == "normal"
    assert cluster.out(f"salloc -Q -n1 {show}") == "normal"
    job = cluster.submit("-n1 -o qos-%j.txt --wrap 'echo $SLURM_JOB_QOS; srun printenv SLURM_JOB_QOS'")
    assert cluster.wait_end(job) == "COMPLETED" and cluster.read(f"qos-{job}.txt").split() == ["normal"] * 2
