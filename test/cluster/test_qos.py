"""Accounts, QOS and their limits, from sacctmgr through slurmdbd and slurmctld to the queue; what sacctmgr prints is as recorded from the reference."""
import os
import re

import pytest

CLUSTER = dict(nodes=2, cpus=8, gpus=2, extra_conf="""AccountingStorageEnforce=associations,limits,qos
SchedulerParameters=requeue_delay=0
PriorityType=priority/multifactor
PriorityWeightQOS=1000
PreemptType=preempt/qos
PreemptMode=REQUEUE
""")
GOLDEN = os.path.join(os.path.dirname(__file__), "..", "compat", "sacctmgr.txt")


def golden():
    """(command, expected) pairs; the name of the cluster does not matter."""
    text = open(GOLDEN, encoding="utf-8").read()
    return [tuple(block.split("\n", 1)) for block in re.split(r"^\$ ", text, flags=re.M)[1:]]


def plain(text):
    return re.sub(r"C = \S+ +", "C = X ", re.sub(r"cluster '?\w+'?", "cluster X", text)).strip()


@pytest.fixture(scope="module", autouse=True)
def registered(cluster):
    """slurmctld has told slurmdbd which cluster it is of: accounts are added to clusters that are known."""
    cluster.wait("the cluster in slurmdbd", lambda: cluster.run("sacctmgr -n show cluster", check=False).out.strip())


@pytest.fixture(scope="module")
def accounts(cluster, registered):
    """An account lab, in which root may use all QOS."""
    for command in ("add account lab", "add qos wide", "add qos few MaxJobsPU=1 MaxWall=30", "add qos strict MaxTRES=cpu=2 MaxSubmitPU=1 Flags=DenyOnLimit",
                    "add qos high Priority=100 Preempt=normal", "add user root account=lab", "modify user root set defaultaccount=lab",
                    "modify user root where account=lab set qos=normal,wide,few,strict,high"):
        cluster.run(f"sacctmgr -i {command}")
    cluster.wait("slurmctld knows", lambda: cluster.run("sbatch --test-only --qos=high -n1 --wrap true", check=False).rc == 0)
    return cluster


def test_texts_are_the_references(cluster):
    for command, expected in golden():
        got = cluster.run(command, check=False)
        text = got.out + "".join(f"2> {line}\n" for line in got.err.splitlines()) + f"rc={got.rc}"
        assert plain(text) == plain(expected), command


def test_refused_with_the_limit(accounts):
    for args, text in (("--qos=strict -n4", "QOSMaxCpuPerJobLimit"), ("--qos=nosuch", "Invalid qos specification"), ("-A nosuch", "Invalid account or account/partition combination"),
                       ("-A root --qos=high", "Invalid qos specification")):
        got = accounts.run(f"sbatch {args} --wrap true", check=False)
        assert got.rc == 1 and text in got.err, (args, got.err)
    held = accounts.submit("--qos=strict -H --wrap true")
    got = accounts.run("sbatch --qos=strict --wrap true", check=False)
    assert got.rc == 1 and "QOSMaxSubmitJobPerUserLimit" in got.err and "Job violates accounting/QOS policy" in got.err
    accounts.run(f"scancel {held}")


def test_waits_with_the_reason_until_the_limit_changes(accounts):
    first = accounts.submit("--qos=few -o /dev/null --wrap 'sleep 300'")
    second = accounts.submit("--qos=few -o /dev/null --wrap 'sleep 300'")
    accounts.wait("the first runs", lambda: accounts.state(first) == "RUNNING")
    accounts.wait("its reason", lambda: accounts.job(second, "Reason") == "QOSMaxJobsPerUserLimit")
    assert accounts.job(first, "TimeLimit") == "00:30:00" and accounts.job(first, "QOS") == "few" and accounts.job(first, "Account") == "lab"
    why = accounts.out(f"scontrol why {second}")
    assert "MaxJobsPU of QOS few is 1 jobs: 1 are in use, and it wants 1" in why
    accounts.run("sacctmgr -i modify qos few set MaxJobsPU=2")
    accounts.wait("the second runs", lambda: accounts.state(second) == "RUNNING")
    accounts.run(f"scancel {first} {second}")


def test_limit_of_an_account_holds_for_those_below(accounts):
    accounts.run("sacctmgr -i modify account root set GrpTRES=cpu=5")
    first = accounts.submit("--qos=wide -n4 -o /dev/null --wrap 'sleep 300'")
    second = accounts.submit("--qos=wide -n2 -o /dev/null --wrap 'sleep 300'")
    accounts.wait("it waits", lambda: accounts.job(second, "Reason") == "AssocGrpCpuLimit")
    accounts.run("sacctmgr -i modify account root set GrpTRES=cpu=-1")
    accounts.wait("it runs", lambda: accounts.state(second) == "RUNNING")
    accounts.run(f"scancel {first} {second}")


def test_preempts_by_qos(accounts):
    low = accounts.submit("--qos=normal --exclusive -N2 -o /dev/null --requeue --wrap 'sleep 300'")
    accounts.wait("it runs", lambda: accounts.state(low) == "RUNNING")
    high = accounts.submit("--qos=high --exclusive -N2 -o /dev/null --wrap true")
    assert accounts.wait_end(high) == "COMPLETED"
    accounts.wait("it was requeued", lambda: accounts.job(low, "Restarts") == "1")
    accounts.run(f"scancel {low}")


def test_restart_takes_what_has_changed_meanwhile(accounts):
    """What slurmdbd says after a restart is mostly what was saved: then jobs are left alone; a change made meanwhile is seen."""
    def said():
        return re.findall(r"accounts and QOS from slurmdbd: (.*)", accounts.read(f"{accounts.home}/log/slurmctld.log"))
    for changed in (False, True):
        before = len(said())
        accounts.berth("kill slurmctld")
        if changed:
            accounts.run("sacctmgr -i modify qos few set MaxJobsPU=1")
        accounts.berth("start slurmctld")
        accounts.wait("slurmdbd was asked", lambda: len(said()) > before)
        assert said()[before].endswith("as they were") != changed
    first, second = (accounts.submit("--qos=few -o /dev/null --wrap 'sleep 300'") for _ in range(2))
    accounts.wait("its reason", lambda: accounts.job(second, "Reason") == "QOSMaxJobsPerUserLimit")
    accounts.run(f"scancel {first} {second}")


def test_restart_without_slurmdbd_keeps_them(accounts):
    accounts.run("sacctmgr -i modify qos few set MaxJobsPU=1")
    first = accounts.submit("--qos=few -o /dev/null --wrap 'sleep 300'")
    accounts.wait("it runs", lambda: accounts.state(first) == "RUNNING")
    accounts.berth("kill slurmdbd")
    accounts.berth("kill slurmctld")
    accounts.berth("start slurmctld")
    second = accounts.submit("--qos=few -o /dev/null --wrap 'sleep 300'")
    accounts.wait("its reason", lambda: accounts.job(second, "Reason") == "QOSMaxJobsPerUserLimit")
    accounts.run(f"scancel {first} {second}")
    accounts.berth("start slurmdbd")
    accounts.run("sacctmgr -i modify qos few set MaxJobsPU=-1")
    third, fourth = (accounts.submit("--qos=few -o /dev/null --wrap 'sleep 300'") for _ in range(2))
    accounts.wait("both run", lambda: accounts.state(third) == accounts.state(fourth) == "RUNNING")
    accounts.run(f"scancel {third} {fourth}")
