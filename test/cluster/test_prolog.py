"""Prologs and epilogs of slurmctld and slurmd, real ones: when they run and as whom, what they are told, what follows when they fail."""
import os
import re

import pytest

SPY = """#!/bin/bash
where=${SLURMD_NODENAME:-ctld}
echo "$(basename $0) $SLURM_JOB_ID $where $(id -u) run=$SLURM_JOB_RESTART_COUNT" >> %(dir)s/log
env > %(dir)s/env.$(basename $0).$SLURM_JOB_ID.$where
[ -e %(dir)s/hold.$(basename $0) ] && while [ -e %(dir)s/hold.$(basename $0) ]; do sleep 0.05; done
[ -e %(dir)s/fail.$(basename $0) ] && exit 7
exit 0
"""


@pytest.fixture(scope="module")
def site(cluster):
    """A cluster whose slurm.conf names the four scripts; `site` is their folder."""
    folder = os.path.join(cluster.dir, "site")
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    for name in ("prolog", "epilog", "prologctld", "epilogctld", "20-second", "10-third", "30-first"):
        path = os.path.join(folder, name)
        with open(path, "w") as f:
            f.write(SPY % dict(dir=folder))
        os.chmod(path, 0o755)
    return folder


def configure(cluster, site, *lines):
    """These lines in place of the ones before."""
    conf = f"{cluster.home}/etc/slurm.conf"
    old = [line for line in cluster.read(conf).splitlines() if not re.match(r"(Prolog|Epilog)", line)]
    with open(conf, "w") as f:
        f.write("\n".join(old + [line.replace("SITE", site) for line in lines]) + "\n")
    for name in os.listdir(site):
        if re.match(r"(log|env|hold|fail)", name):
            os.unlink(os.path.join(site, name))
    cluster.run("scontrol reconfigure")
    for node in ("node-1", "node-2"):          # each has taken the new configuration: it answers with a job
        cluster.wait("its slurmd", lambda: cluster.run(f"srun -w {node} -n1 true", check=False).rc == 0)
    cluster.wait_idle()
    if os.path.exists(f"{site}/log"):
        os.unlink(f"{site}/log")


def told(site, name, job, where="ctld"):
    with open(f"{site}/env.{name}.{job}.{where}") as f:
        return dict(line.rstrip("\n").split("=", 1) for line in f if "=" in line)


def log(site):
    try:
        with open(f"{site}/log") as f:
            return f.read().splitlines()
    except FileNotFoundError:
        return []


def ran(site, name, job):
    return [line for line in log(site) if line.startswith(f"{name} {job} ")]


CLUSTER = dict(nodes=2, cpus=4, gpus=2, extra_conf="SchedulerParameters=requeue_delay=0\n")
touch = "touch {}/{}.{}"


def test_slurmctld_scripts(cluster, site, user):
    configure(cluster, site, "PrologSlurmctld=SITE/prologctld", "EpilogSlurmctld=SITE/epilogctld")
    cluster.run(f"touch {site}/hold.prologctld {site}/hold.epilogctld")
    job = cluster.submit("-N2 --gres=gpu:1 -J name --comment=words -o out-%j.txt --wrap 'echo ran; exit 3'", user=user)
    cluster.wait_state(job, "CONFIGURING")
    assert cluster.out(f"squeue -h -j {job} -o '%t %T %N'") == "CF CONFIGURING node-[1-2]"
    assert not os.path.exists(f"{cluster.work}/out-{job}.txt"), "its script has begun"
    cluster.run(f"rm {site}/hold.prologctld")
    cluster.wait("its output", lambda: os.path.exists(f"{cluster.work}/out-{job}.txt"))
    cluster.wait("its epilog", lambda: ran(site, "epilogctld", job))
    assert cluster.state(job) == "COMPLETING"
    assert cluster.out("srun -N2 hostname | sort").split() == ["node-1", "node-2"] if not cluster.run(f"rm {site}/hold.epilogctld").rc else None
    cluster.wait_state(job, "FAILED")
    uid = cluster.out("stat -c %u $BERTH_DIR/state")
    assert ran(site, "prologctld", job) == [f"prologctld {job} ctld {uid} run=0"] and ran(site, "epilogctld", job) == [f"epilogctld {job} ctld {uid} run=0"]
    env = told(site, "prologctld", job)
    expected = dict(SLURM_JOB_ID=str(job), SLURM_JOBID=str(job), SLURM_JOB_USER=user, SLURM_JOB_UID=cluster.out("id -u", user=user), SLURM_JOB_NODELIST="node-[1-2]", SLURM_JOB_NUM_NODES="2",
                    SLURM_JOB_NAME="name", SLURM_JOB_COMMENT="words", SLURM_JOB_PARTITION="main", SLURM_SCRIPT_CONTEXT="prolog_slurmctld", SLURM_CLUSTER_NAME="berth",
                    SLURM_JOB_CPUS_PER_NODE="1(x2)", SLURM_JOB_EXCLUSIVE="NO", SLURM_JOB_OVERSUBSCRIBE="NO", SLURM_JOB_QOS="normal", SLURM_JOB_WORK_DIR=cluster.work, SLURM_JOB_STDIN="/dev/null")
    assert {k: env.get(k) for k in expected} == expected
    assert {"SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME", "SLURM_JOB_SLUID", "SLURM_JOB_GROUP", "SLURM_JOB_GID"} <= set(env) and "HOME" not in env
    over = told(site, "epilogctld", job)
    assert (over["SLURM_JOB_EXIT_CODE"], over["SLURM_JOB_EXIT_CODE2"], over["SLURM_SCRIPT_CONTEXT"]) == ("768", "3:0", "epilog_slurmctld")


def test_srun_and_salloc_wait_for_it(cluster, site):
    cluster.run(f"touch {site}/hold.prologctld; (sleep 1; rm {site}/hold.prologctld) & true")
    got = cluster.run("salloc -N1 srun hostname")
    assert "Granted job allocation" in got.err and "queued" not in got.err and got.out.startswith("node-")
    cluster.run(f"touch {site}/hold.prologctld; (sleep 1; rm {site}/hold.prologctld) & true")
    got = cluster.run("srun -N2 -l hostname")
    assert sorted(got.out.split()) == ["0:", "1:", "node-1", "node-2"] and got.err == ""


def test_killed_with_slurmctld_it_runs_again(cluster, site):
    cluster.run(f"touch {site}/hold.prologctld")
    job = cluster.submit("-o /dev/null --wrap true")
    cluster.wait("its prolog", lambda: len(ran(site, "prologctld", job)) == 1)
    cluster.berth("kill slurmctld")
    cluster.berth("start slurmctld")
    cluster.wait("its prolog again", lambda: len(ran(site, "prologctld", job)) == 2)
    assert cluster.state(job) == "CONFIGURING"
    cluster.run(f"rm {site}/hold.prologctld")
    assert cluster.wait_end(job) == "COMPLETED"


def test_slurmctld_prolog_that_fails(cluster, site):
    cluster.run(f"touch {site}/fail.prologctld")
    job = cluster.submit("-o /dev/null --wrap true")
    cluster.wait("requeued", lambda: cluster.job(job, "Restarts") == "1" and cluster.state(job) == "PENDING")
    got = cluster.run("srun -N1 hostname", check=False)
    assert got.rc == 1 and "PrologSlurmctld failed, job killed" in got.err and not got.out
    got = cluster.run("salloc -N1 hostname", check=False)
    assert got.rc == 1 and "PrologSlurmctld failed, job killed" in got.err and not got.out
    cluster.run(f"rm {site}/fail.prologctld")
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.out("sinfo -h -t drain -o %D") in ("", "0")


def test_time_limit_of_a_slurmctld_script(cluster, site):
    configure(cluster, site, "PrologSlurmctld=SITE/prologctld", "PrologTimeout=1")
    cluster.run(f"touch {site}/hold.prologctld")
    got = cluster.run("srun -N1 hostname", check=False)
    assert got.rc == 1 and "PrologSlurmctld failed, job killed" in got.err
    cluster.run(f"rm {site}/hold.prologctld")


def test_prolog_and_epilog_of_slurmd(cluster, site, user):
    configure(cluster, site, "Prolog=SITE/prolog", "Epilog=SITE/epilog")
    job = cluster.submit("-N2 --gres=gpu:2 -o /dev/null --wrap 'exit 3'", user=user)
    assert cluster.wait_end(job) == "FAILED"
    cluster.wait("its epilogs", lambda: len(ran(site, "epilog", job)) == 2)
    assert ran(site, "prolog", job) == [f"prolog {job} node-1 {os.geteuid()} run=0"], "only where a step runs"
    env, over = told(site, "prolog", job, "node-1"), told(site, "epilog", job, "node-2")
    for e in (env, over):
        assert (e["SLURM_JOB_USER"], e["SLURM_JOB_NODELIST"], e["SLURM_JOB_GPUS"], e["SLURM_JOB_RESTART_COUNT"]) == (user, "node-[1-2]", "0,1", "0")
    assert over["SLURM_JOB_EXIT_CODE2"] == "3:0" and "SLURM_JOB_EXIT_CODE" not in env


def test_several_prologs_in_reverse_order_of_their_names(cluster, site):
    configure(cluster, site, "Prolog=SITE/[0-9]*")
    assert cluster.out("srun -n1 -w node-1 echo here") == "here"
    assert [line.split()[0] for line in log(site)] == ["30-first", "20-second", "10-third"]


def test_prolog_that_fails_drains_and_holds(cluster, site):
    configure(cluster, site, "Prolog=SITE/prolog")
    cluster.run(f"touch {site}/fail.prolog")
    job = cluster.submit("-w node-1 -o /dev/null --wrap true")
    cluster.wait("held", lambda: cluster.job(job, "Reason") == "launch_failed_requeued_held")
    assert cluster.job(job, "Restarts") == "1"
    assert cluster.out("sinfo -h -n node-1 -p main -o '%t %E'") == "drain Prolog error"
    got = cluster.run("srun -w node-2 hostname", check=False)
    assert got.rc != 0 and "prolog failed" in got.err.lower() or "Prolog failure" in got.err, got
    cluster.run(f"rm {site}/fail.prolog; scontrol update nodename=node-[1-2] state=resume; scontrol release {job}")
    assert cluster.wait_end(job) == "COMPLETED"


def test_alloc_flag(cluster, site):
    """With PrologFlags=Alloc the prologs run on all nodes before anything, also where no step ever runs."""
    configure(cluster, site, "Prolog=SITE/prolog", "PrologFlags=Alloc")
    cluster.run(f"touch {site}/hold.prolog")
    job = cluster.submit("-N2 -o /dev/null --wrap true")
    cluster.wait("both prologs", lambda: len(ran(site, "prolog", job)) == 2)
    assert cluster.state(job) == "CONFIGURING"
    cluster.run(f"rm {site}/hold.prolog")
    assert cluster.wait_end(job) == "COMPLETED"
    cluster.wait_idle()


def test_alloc_flag_survives_its_daemons(cluster, site):
    cluster.run(f"touch {site}/hold.prolog")
    job = cluster.submit("-N2 -o /dev/null --wrap true")
    cluster.wait("both prologs", lambda: len(ran(site, "prolog", job)) == 2)
    cluster.berth("kill node-2")
    cluster.berth("start node-2")
    cluster.berth("kill slurmctld")
    cluster.berth("start slurmctld")
    cluster.run(f"rm {site}/hold.prolog")
    assert cluster.wait_end(job) == "COMPLETED"


def test_nohold_flag(cluster, site):
    """salloc does not wait for the prologs; its first step does."""
    configure(cluster, site, "Prolog=SITE/prolog", "PrologFlags=NoHold")
    cluster.run(f"touch {site}/hold.prolog")
    got = cluster.run(f"salloc -N1 bash -c 'echo running; rm {site}/hold.prolog; srun echo step'")
    assert got.out.split() == ["running", "step"]


def test_serial_flag(cluster, site):
    """One at a time on a node."""
    configure(cluster, site, "Prolog=SITE/prolog", "PrologFlags=Serial")
    cluster.run(f"touch {site}/hold.prolog")
    jobs = [cluster.submit("-w node-1 -n1 --mem=10 -o /dev/null --wrap true") for _ in range(3)]
    cluster.wait("the first prolog", lambda: log(site))
    cluster.wait("all three run", lambda: cluster.out("squeue -h -t R,CF -o %i | wc -l") == "3")
    assert len(log(site)) == 1
    cluster.run(f"rm {site}/hold.prolog")
    assert [cluster.wait_end(j) for j in jobs] == ["COMPLETED"] * 3
