"""Licenses: counted over the cluster, shown as the reference shows them, kept over kill -9."""
import json

CLUSTER_CONF = "Licenses=alpha:3,beta,gamma:10\nAccountingStorageTRES=license/alpha\n"


def test_licenses(cluster):
    c = cluster
    with open(f"{c.home}/etc/slurm.conf", "a") as f:
        f.write(CLUSTER_CONF)
    c.run("scontrol reconfigure")
    assert c.out("scontrol show lic -o").splitlines()[0] == "LicenseName=alpha Total=3 Used=0 Free=3 Reserved=0 Remote=no"
    assert c.run("scontrol show lic beta").out == "LicenseName=beta\n    Total=1 Used=0 Free=1 Reserved=0 Remote=no\n"
    none = c.run("scontrol show lic nope", check=False)
    assert none.rc == 1 and 'query "nope" matched zero licenses.' in none.err
    bad = c.run("sbatch -L alpha:4 --wrap true", check=False)
    assert bad.rc == 1 and "Invalid license specification" in bad.err
    first = c.submit("-L alpha:2 --wrap 'sleep 600'")
    either = c.submit("-L 'alpha:2|beta' --wrap 'sleep 600'")
    waits = c.submit("--tres-per-task=license/alpha:1 -n2 --wrap 'sleep 600'")
    for job in (first, either):
        c.wait_state(job, "RUNNING")
    c.wait("the reason", lambda: c.job(waits, "Reason") == "Licenses")
    assert c.job(first, "LicensesAlloc") == "alpha:2" and c.job(either, "LicensesAlloc") == "beta:1" and c.job(waits, "LicensesAlloc") == "(null)"
    assert c.job(waits, "Licenses") == "alpha=2" and c.job(either, "Licenses") == "alpha:2|beta"
    assert c.job(first, "AllocTRES").endswith(",license/alpha=2") and c.job(waits, "ReqTRES").endswith(",license/alpha=2")
    lic = {x["LicenseName"]: x for x in json.loads(c.out("scontrol show lic --json"))["licenses"]}
    assert lic["alpha"]["Used"] == 2 and lic["beta"]["Free"] == 0
    c.run("berth kill slurmctld; berth start slurmctld")
    assert "LicenseName=alpha Total=3 Used=2 Free=1" in c.out("scontrol show lic -o")
    c.run(f"scancel {first}")
    c.wait_state(waits, "RUNNING")
    assert c.job(first, "LicensesAlloc") == "alpha:2"
    c.run(f"scancel {either} {waits}")
    c.wait("all given back", lambda: "Used=0 Free=3" in c.out("scontrol show lic -o"))
