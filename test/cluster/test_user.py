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
