"""sprio and priorities: text as recorded from the reference for the same jobs (test/compat/sprio.txt), top, nice, site factor."""
import os
import re

# The recording was made without accounts and QOS.
CLUSTER = dict(gpus=4, extra_conf="""AccountingStorageType=accounting_storage/none
PriorityType=priority/multifactor
PriorityWeightAge=1
PriorityMaxAge=40000-0
PriorityWeightFairShare=10000
PriorityWeightQOS=10000
PriorityWeightPartition=1000
PriorityWeightJobSize=1000
PriorityWeightTRES=cpu=1000,mem=2000
DefMemPerCPU=100
Licenses=alpha:3
PartitionName=wide Nodes=ALL PriorityJobFactor=4 State=UP
""")
GOLDEN = os.path.join(os.path.dirname(__file__), "..", "compat", "sprio.txt")


def test_text_as_the_reference_prints_it(cluster):
    c = cluster
    c.run("scontrol update nodename=ALL state=drain reason=test")
    jobs = ["-N4 -n 32 --exclusive -t 5", "-n 1 -t 10", "-N4 -n 32 -t 100", "--gres=gpu:2 -c 4 -p wide", "-p main,short,wide -t 5 --nice=50", "-H -t 5",
            "-b now+1hour -t 5", "-a 1-3", "-d afterok:1", "-L alpha:3 -t 5"]
    assert [c.submit(f"-o /dev/null {args} --wrap true") for args in jobs] == list(range(1, 11))
    with open(GOLDEN) as f:
        parts = re.split(r"^\$ (.*)\n", f.read(), flags=re.M)[1:]
    for command, text in zip(parts[::2], parts[1::2]):
        assert c.run(command).out == text, command


def test_options(cluster):
    c = cluster
    assert c.out("sprio -h -j 2,3 -o '%i %Y'") == "2 425\n3 2350"
    assert c.out("sprio -h -p short -o '%i %r'") == "5 short"
    assert c.run("sprio -o '%i|%k' -j 2").err == "sprio: error: Invalid job format specification: k\n"
    bad = c.run("sprio -j x", check=False)
    assert bad.rc == 1 and bad.err == "sprio: error: Invalid job id: x\n"
    assert c.run("sprio more", check=False).rc == 1
    assert c.out("sprio --usage").startswith("Usage: sprio [-j jid[s]] [-u user_name[s]] [-o format] [-p partitions]")


def test_site_factor_nice_and_top(cluster):
    c = cluster
    c.run("scontrol update jobid=2 sitefactor=100 nice=-10")
    assert c.out("sprio -h -j 2 -o '%Y %S %N'") == "535 100 -10"
    c.run("scontrol update jobid=4 priority=77777")
    assert c.out("sprio -h -j 4 -o '%Y|%J|%T'") == "77777|0|"
    c.run("scontrol top 10")
    first = max(int(line.split()[1]) for line in c.out("sprio -h -p main -o '%i %Y'").splitlines() if line.split()[0] not in ("10", "5"))
    assert int(c.out("sprio -h -j 10 -o %Y")) > first
    several = c.run("scontrol top 5", check=False)
    assert several.rc == 1 and "Requested partition configuration not available now for job 5" in several.err
