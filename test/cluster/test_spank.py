"""SPANK: a plugin of ours in srun, sbatch and slurmstepd; each callback, what it sees, what its failure does."""
import os
import subprocess

import pytest

import conftest

CLUSTER = dict(nodes=2, cpus=8, gpus=0)
HERE = os.path.dirname(os.path.abspath(__file__))
LOCAL, REMOTE, ALLOCATOR, SLURMD, SCRIPT = 1, 2, 3, 4, 5


class Plugins:
    def __init__(self, cluster):
        self.cluster, self.conf, self.record = cluster, f"{cluster.home}/etc/plugstack.conf", f"{cluster.work}/record"
        self.so = f"{cluster.dir}/record.so"
        subprocess.run(["gcc", "-O1", "-fPIC", "-shared", "-Wall", "-Werror", "-I", f"{conftest.ROOT}/include", "-o", self.so, f"{HERE}/spank/record.c"], check=True)

    def set(self, text):
        with open(self.conf, "w") as f:
            f.write(text.format(so=self.so, work=self.cluster.work))
        if os.path.exists(self.record):
            os.unlink(self.record)

    def lines(self, context=None):
        with open(self.record) as f:
            return [x.split(" ", 1)[1].strip() for x in f if context is None or x.startswith(f"{context} ")]


@pytest.fixture(scope="module")
def plugins(cluster):
    p = Plugins(cluster)
    yield p
    os.unlink(p.conf)


def test_every_callback_in_order(cluster, plugins):
    plugins.set("# a comment\nrequired {so} {work}\n")
    result = cluster.run("srun --record=hello --record-flag -N2 --ntasks-per-node=2 bash -c 'echo $RECORD_ENV; exit 3'", check=False)
    assert result.rc == 3 and result.out.split() == ["from-user-init"] * 4
    assert "record: hello from user_init" in result.err.splitlines()
    local = [x.split(" uid=")[0] for x in plugins.lines(LOCAL)]
    assert local == ["init registered", "init_post_opt 8/none/0", "local_user_init job step=0", "exit shared=0"]
    cluster.wait("both nodes are done", lambda: sum(x.startswith("exit") for x in plugins.lines(REMOTE)) == 2)
    remote = plugins.lines(REMOTE)
    names = [x.split()[0] for x in remote]
    for name, count in dict(init=2, init_post_opt=2, user_init=2, task_init_privileged=4, task_init=4, task_post_fork=4, task_exit=4, exit=2).items():
        assert names.count(name) == count, name
    first = {name: names.index(name) for name in names}
    assert first["init"] < first["init_post_opt"] < first["user_init"] < first["task_init_privileged"] < first["task_init"] < first["task_exit"] < first["exit"]
    assert sum(x.startswith("init_post_opt 8/none/1") for x in remote) == 2
    assert any("user_init nodes=2 node=1 local=2 total=4 argv0=bash version=26.05.5" in x for x in remote)
    assert sorted(x.split(" errs=")[0] for x in remote if x.startswith("task_init ")) == [
        f"task_init rank={r} id={r % 2} global={r} local={r % 2} pid=1" for r in range(4)]
    assert all("errs=1,1,1" in x for x in remote if x.startswith("task_init "))
    assert all("known" in x and "unknown" not in x for x in remote if x.startswith("task_post_fork"))
    assert all("status=768" in x for x in remote if x.startswith("task_exit"))
    assert all("shared=2" in x for x in remote if x.startswith("exit"))           # memory made before the fork is the tasks' too


def test_batch_and_its_steps_get_the_options(cluster, plugins, user):
    plugins.set("required {so} {work}\n")
    job = cluster.submit("--record=fromsbatch -n1 -o spank-%j.txt --wrap 'srun true'", user=user if os.geteuid() == 0 else None)
    assert cluster.wait_end(job) == "COMPLETED"
    assert [x.split()[0] for x in plugins.lines(ALLOCATOR)] == ["init", "init_post_opt", "exit"]
    cluster.wait("batch and step are done", lambda: sum(x.startswith("exit") for x in plugins.lines(REMOTE)) == 2)
    remote = plugins.lines(REMOTE)
    assert sum(x.startswith("init_post_opt 7/fromsbatch/1") for x in remote) == 2
    assert any("total=0" in x and "slurm_script" in x for x in remote if x.startswith("user_init"))
    assert [x for x in plugins.lines(LOCAL) if x.startswith("init_post_opt 7/fromsbatch/0")]
    if os.geteuid() == 0:
        uid = cluster.out("id -u", user=user)
        for x in remote:
            assert x.endswith(f"uid={uid}") == x.startswith(("user_init", "task_init ")), x


def test_directive_and_help(cluster, plugins):
    plugins.set("required {so} {work}\n")
    cluster.run("printf '#!/bin/bash\\n#SBATCH --record=directive\\ntrue\\n' > d.sh")
    job = cluster.submit("-o d-%j.txt d.sh")
    assert cluster.wait_end(job) == "COMPLETED"
    assert any("7/directive/1" in x for x in plugins.lines(REMOTE))
    text = cluster.run("srun --help").out
    assert "--record=text" in text and "[record] text to write down." in text


def test_prepend_argv(cluster, plugins):
    plugins.set("required {so} {work} prepend\n")
    assert cluster.run("srun -n1 printenv PREPENDED").out == "1\n"


def test_failures(cluster, plugins):
    plugins.set("required {so} {work} task_init\n")
    result = cluster.run("srun -n1 echo never", check=False)
    assert result.rc == 1 and "never" not in result.out and "slurmstepd: error: record: this task shall not run" in result.err
    plugins.set("optional {so} {work} task_init user_init\n")
    assert cluster.run("srun -n1 echo yes").out == "yes\n"
    plugins.set("required {so} {work} user_init\n")
    result = cluster.run("srun -n1 echo never", check=False)
    assert result.rc == 1 and "never" not in result.out
    plugins.set("required {so} {work} post_opt\n")
    assert cluster.run("srun -n1 true", check=False).rc == 1
    plugins.set("required /no/such/plugin.so\n")
    result = cluster.run("sbatch --wrap true", check=False)
    assert result.rc == 1 and "/no/such/plugin.so" in result.err
    plugins.set("optional /no/such/plugin.so\n")
    assert cluster.run("srun -n1 echo yes").out == "yes\n"
    plugins.set("required {so} {work}\n")
    result = cluster.run("srun --record=bad true", check=False)
    assert result.rc != 0 and "Invalid --record argument: bad" in result.err


def test_include(cluster, plugins):
    os.makedirs(f"{cluster.home}/etc/plugstack.conf.d", exist_ok=True)
    with open(f"{cluster.home}/etc/plugstack.conf.d/10-record.conf", "w") as f:
        f.write(f"optional {plugins.so} {cluster.work}\n")
    plugins.set("include plugstack.conf.d/*\n")
    cluster.run("srun --record=included -n1 true")
    assert any("7/included/1" in x for x in plugins.lines(REMOTE))


def test_the_key_wins_over_the_file_beside_slurm_conf(cluster, plugins):
    """On both sides, slurm.conf(5)."""
    slurm_conf, other = f"{cluster.home}/etc/slurm.conf", f"{cluster.home}/etc/other.conf"
    with open(slurm_conf, encoding="utf-8") as f:
        before = f.read()
    with open(other, "w", encoding="utf-8") as f:
        f.write(f"required {plugins.so} {cluster.work}\n")
    plugins.set("required /no/such/plugin.so\n")
    try:
        with open(slurm_conf, "a", encoding="utf-8") as f:
            f.write(f"PlugStackConfig={other}\n")
        cluster.run("scontrol reconfigure")
        cluster.wait("the nodes use it too", lambda: cluster.run("srun --record=bykey -n1 true", check=False).rc == 0)
        assert any("7/bykey/1" in x for x in plugins.lines(REMOTE))
    finally:
        with open(slurm_conf, "w", encoding="utf-8") as f:
            f.write(before)
        plugins.set("required {so} {work}\n")
        cluster.run("scontrol reconfigure")
    cluster.wait("as before", lambda: cluster.run("srun --record=beside -n1 true", check=False).rc == 0)


def test_slurmd_prolog_and_epilog(cluster, plugins):
    """slurmd loads plugins when it starts: so this comes last, and starts it again."""
    plugins.set("required {so} {work}\n")
    for node in ("node-1", "node-2"):
        cluster.berth(f"kill {node}")
    cluster.up()
    cluster.wait_idle()
    assert sorted(x.split()[0] for x in plugins.lines(SLURMD)) == ["init", "init"]
    job = cluster.submit("--record=seen -N2 -o script-%j.txt --wrap true")
    assert cluster.wait_end(job) == "COMPLETED"
    uid = os.stat(cluster.work).st_uid if os.geteuid() else 0
    expected = f"job={job} of={uid} control=for-prolog option=seen"
    cluster.wait("prolog and epilog on both nodes", lambda: len(plugins.lines(SCRIPT)) >= 3)
    lines = plugins.lines(SCRIPT)
    assert any(x.startswith(f"job_prolog {expected}") for x in lines) and any(x.startswith(f"job_epilog {expected}") for x in lines), lines
    assert cluster.wait_idle()
    assert cluster.run("srun -N1 -n1 echo well").out == "well\n"
