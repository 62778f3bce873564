"""Usage, fair share and limits of use: from a job's end through slurmctld's store to sshare; texts as recorded from the reference for the same accounts (test/compat/sshare.txt)."""
import json
import os
import re

import pytest

CLUSTER = dict(nodes=1, cpus=8, gpus=2, extra_conf="""AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu,gres/gpumem,gres/gpuutil
PriorityType=priority/multifactor
PriorityWeightFairshare=10000
PriorityDecayHalfLife=0
PriorityCalcPeriod=1
PartitionName=billed Nodes=ALL State=UP TRESBillingWeights=CPU=1.5,Mem=0.25G,GRES/gpu=2
""")
GOLDEN = os.path.join(os.path.dirname(__file__), "..", "compat", "sshare.txt")


@pytest.fixture(scope="module", autouse=True)
def accounts(cluster):
    cluster.wait("the cluster in slurmdbd", lambda: cluster.run("sacctmgr -n show cluster", check=False).out.strip())
    for command in ("add account dept fairshare=3 grptresmins=cpu=1000", "add account lab", "add account sub parent=dept", "add user alice,bob account=dept",
                    "add user alice account=lab fairshare=parent", "add user carol account=sub fairshare=5"):
        cluster.run(f"sacctmgr -i {command}")
    cluster.wait("slurmctld knows", lambda: "carol" in cluster.out("sshare -a"))
    return cluster


def test_texts_are_the_references(cluster):
    with open(GOLDEN) as f:
        parts = re.split(r"^\$ (.*)\n", f.read(), flags=re.M)[1:]
    for command, text in zip(parts[::2], parts[1::2]):
        got = cluster.run(command, check=False)
        assert "\n".join(line.rstrip() for line in (got.out + got.err).splitlines()) == text.rstrip("\n"), command


def test_json_has_the_references_members(cluster):
    for row in json.loads(cluster.out("sshare -a --json"))["shares"]["shares"]:
        assert list(row) == ["id", "cluster", "name", "parent", "partition", "shares_normalized", "shares", "tres", "effective_usage", "usage_normalized", "usage", "fairshare", "type"]
        assert [len(row["tres"][k]) for k in ("run_seconds", "group_minutes", "usage")] == [11, 11, 11]
    assert cluster.run("sshare --json=nosuch", check=False).rc == 1


def raw(c, account, user=""):
    return {tuple(line.split("|")[:2]): line.split("|")[2] for line in c.out("sshare -a -n -P -o account,user,rawusage").replace(" ", "").splitlines()}[(account, user)]


@pytest.fixture(scope="module")
def lab(cluster):
    """root is in account lab, too."""
    cluster.run("sacctmgr -i add user root account=lab")
    cluster.wait("slurmctld knows", lambda: "root" in cluster.out("sshare -n -A lab"))
    return cluster


def test_use_is_kept_and_charged(lab):
    c = lab
    job = c.submit("-A lab -p billed -n3 --mem-per-cpu=100 --gres=gpu:1 -o /dev/null --wrap 'sleep 2'")
    assert "billing=6" in c.out(f"scontrol show job {job}")       # 3 x 1.5 + 300/1024/4 + 2 = 6.57
    assert c.wait_end(job) == "COMPLETED"
    ran = int(c.out(f"sacct -X -n -P -o elapsedraw -j {job}"))
    assert ran >= 1 and int(raw(c, "lab")) == int(raw(c, "lab", "root")) == int(raw(c, "root")) == 6 * ran
    c.berth("kill slurmctld")
    c.berth("start slurmctld")
    assert int(raw(c, "lab")) == 6 * ran
    c.run("sacctmgr -i modify user root where account=lab set rawusage=0")
    c.wait("it is forgotten", lambda: raw(c, "lab", "root") == "0")
    assert raw(c, "lab") == raw(c, "root") == "0"
    bad = c.run("sacctmgr -i modify account lab set rawusage=5", check=False)
    assert bad.rc == 1 and "Raw usage can only be set to 0 (zero)" in bad.err


def test_usage_factor_and_minutes(lab):
    c = lab
    c.run("sacctmgr -i add qos twice UsageFactor=2 Flags=NoDecay MaxTRESRunMinsPU=cpu=30")
    c.run("sacctmgr -i modify user root where account=lab set qos=normal,twice")
    assert "twice|2.000000|NoDecay|cpu=30" in c.out("sacctmgr -n -P show qos twice format=name,usagefactor,flags,maxtresrunminspu")
    c.wait("slurmctld knows", lambda: c.run("sbatch --test-only -A lab --qos=twice --wrap true", check=False).rc == 0)
    before = int(raw(c, "lab", "root"))
    job = c.submit("-A lab --qos=twice -n1 -t 30 -o /dev/null --wrap 'sleep 300'")
    more = c.submit("-A lab --qos=twice -n1 -t 1 -o /dev/null --wrap 'sleep 300'")
    c.wait("it waits", lambda: c.job(more, "Reason") == "MaxCpuRunMinsPerUser")
    c.run(f"scancel {job} {more}")
    assert c.wait_end(job) == "CANCELLED"
    ran = int(c.out(f"sacct -X -n -P -o elapsedraw -j {job}"))
    assert int(raw(c, "lab", "root")) - before == 2 * ran


def test_accounts_with_jobs_stay(lab):
    job = lab.submit("-A lab -H --wrap true")
    lab.wait("slurmdbd knows it", lambda: lab.out(f"sacct -X -n -o jobid -j {job}"))
    for command in ("delete user root account=lab", "delete account lab"):
        got = lab.run(f"sacctmgr -i {command}", check=False)
        assert got.rc == 1 and "Job(s) active, cancel job(s) before remove\n  JobID = " + str(job) in got.err, (command, got.err)
    lab.run(f"scancel {job}")
    lab.wait("its end", lambda: "CANCELLED" in lab.out(f"sacct -X -n -o state -j {job}"))
    lab.run("sacctmgr -i delete user root account=lab")


@pytest.mark.skipif(os.geteuid() != 0, reason="acts as another user")
def test_coordinators_change_their_accounts(cluster, user):
    c = cluster
    c.run(f"sacctmgr -i add user {user} account=dept")
    got = c.run("sacctmgr -i modify user bob where account=dept set MaxJobs=3", user=user, check=False)
    assert got.rc == 1 and "Access/permission denied" in got.err
    c.run(f"sacctmgr -i add coordinator account=dept names={user}")
    c.run("sacctmgr -i modify user bob where account=dept set MaxJobs=3", user=user)
    c.run("sacctmgr -i modify user carol where account=sub set MaxJobs=4", user=user)     # below it
    assert c.out("sacctmgr -n -P show assoc user=carol account=sub format=maxjobs") == "4"
    for command in ("modify user alice where account=lab set MaxJobs=3", "modify account dept set parent=lab", "modify user bob set adminlevel=admin", "add qos mine", f"modify user {user} set adminlevel=operator"):
        got = c.run(f"sacctmgr -i {command}", user=user, check=False)
        assert got.rc == 1 and "Access/permission denied" in got.err, command
    c.run(f"sacctmgr -i delete user {user}")
