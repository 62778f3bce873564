"""Placement rules from command to daemon: --constraint and --prefer, and the words of the reference where they cannot be met."""
import pytest

CLUSTER = dict(nodes=4, cpus=2)


@pytest.fixture(autouse=True)
def racks(cluster):
    for i, features in enumerate(["rack1,fast", "rack1", "rack2", "rack2,fast"]):
        cluster.run(f"scontrol update NodeName=node-{i + 1} Features={features}")


def test_constraints(cluster):
    def nodes(args):
        return cluster.out(f"srun {args} bash -c 'echo $SLURM_JOB_NODELIST'").splitlines()[0]
    assert nodes("-N2 -C '[rack1|rack2]'") == "node-[1-2]"
    assert nodes("-N2 -C '[rack2|rack1]'") == "node-[3-4]"
    assert nodes("-N3 -C '[rack1*1&rack2*2]'") == "node-[1,3-4]"
    assert nodes("-C 'rack2*2'") == "node-[3-4]"
    assert nodes("-N1 -C 'rack1|rack2&fast' -x node-1") == "node-4"
    assert nodes("-N1 --prefer=rack2") == "node-3"
    assert nodes("-N1 -C rack1 --prefer='rack2&fast'") == "node-4"


@pytest.mark.parametrize("command", ["sbatch --wrap true", "srun", "salloc"])
def test_what_cannot_be(cluster, command):
    def error(args):
        name, *rest = command.split(None, 1)
        r = cluster.run(f"{name} {args} {rest[0] if rest else 'true'}", check=False)
        assert r.rc == 1
        return r.err
    for bad in ["nope", "rack1,nope", "!fast", "[rack1&fast]", "rack1*1&fast*1", "[rack1*0&fast*1]", "((fast))", "[rack1|fast"]:
        assert "Invalid feature specification" in error(f"-C '{bad}'"), bad
    assert "Invalid preferred feature specification" in error("--prefer=nope")
    for never in ["-N1 -C 'rack1&rack2'", "-N3 -C '[rack1|rack2]'", "-N2 -C '[rack1*2&rack2*1]'", "-N3 --prefer=rack1"]:
        assert "Requested node configuration is not available" in error(never), never


def test_shown_and_changed(cluster):
    job = cluster.submit("-H -N1 -C 'rack1|fast' --prefer=fast -o /dev/null --wrap true")
    assert cluster.job(job, "Features") == "rack1|fast" and cluster.job(job, "Prefer") == "fast"
    cluster.run(f"scontrol update job {job} Prefer=rack2 Features=fast")
    assert cluster.job(job, "Prefer") == "rack2" and cluster.job(job, "Features") == "fast"
    cluster.run(f"scontrol release {job}")
    assert cluster.wait_end(job) == "COMPLETED" and cluster.job(job, "NodeList") == "node-3"


def test_why_tells_of_each_set(cluster):
    busy = cluster.submit("-N1 --exclusive -C rack1 -t 5 -o /dev/null --wrap 'sleep 60'")
    busy2 = cluster.submit("-N1 --exclusive -C rack2 -t 5 -o /dev/null --wrap 'sleep 60'")
    job = cluster.submit("-N2 --exclusive -C '[rack1|rack2]' -t 5 -o /dev/null --wrap true")
    cluster.wait_state(busy2, "RUNNING")
    cluster.wait_state(job, "PENDING")
    why = cluster.out(f"scontrol why {job}")
    assert "all nodes from set 1 of 2 of --constraint=[rack1|rack2]" in why, why
    cluster.run(f"scancel {busy} {busy2} {job}")
