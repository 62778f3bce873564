"""topology.yaml from file to daemon: placement by partition, scontrol show topology, the environment, --switches, --segment, --exclusive=topo."""
import os

import pytest

CLUSTER = dict(nodes=8, cpus=2)
YAML = """---
- topology: tree1
  cluster_default: true
  tree:
    switches:
      - switch: sw_root
        children: s[1-2]
      - switch: s1
        nodes: node-[1-4]
      - switch: s2
        nodes: node-[5-8]
- topology: blk
  block:
    block_sizes: [2, 4]
    blocks:
      - {block: b1, nodes: "node-[1-2]"}
      - {block: b2, nodes: "node-[3-4]"}
      - {block: b3, nodes: "node-[5-6]"}
      - {block: b4, nodes: "node-[7-8]"}
- topology: flt
  flat: true
"""


@pytest.fixture(scope="module", autouse=True)
def network(cluster):
    etc = os.path.join(cluster.home, "etc")
    with open(os.path.join(etc, "topology.yaml"), "w") as f:
        f.write(YAML)
    with open(os.path.join(etc, "slurm.conf"), "a") as f:
        f.write("PartitionName=blk Nodes=ALL Topology=blk State=UP\nPartitionName=flt Nodes=ALL Topology=flt State=UP\n")
    cluster.run("scontrol reconfigure")
    cluster.wait("the topology", lambda: "sw_root" in cluster.out("scontrol show topology"))


def nodes(cluster, args):
    return cluster.out(f"srun {args} bash -c 'echo $SLURM_JOB_NODELIST'").splitlines()[0]


def test_shown_as_the_reference_shows_it(cluster):
    assert cluster.out("scontrol show topology").splitlines() == [
        "SwitchName=sw_root Level=1 LinkSpeed=0 Nodes=node-[1-8] Switches=s[1-2]",
        "SwitchName=s1 Level=0 LinkSpeed=0 Nodes=node-[1-4]",
        "SwitchName=s2 Level=0 LinkSpeed=0 Nodes=node-[5-8]"]
    assert cluster.out("scontrol show topology blk").splitlines() == [
        "BlockName=b1 BlockIndex=0 Nodes=node-[1-2] BlockSize=2", "BlockName=b2 BlockIndex=1 Nodes=node-[3-4] BlockSize=2",
        "BlockName=b3 BlockIndex=2 Nodes=node-[5-6] BlockSize=2", "BlockName=b4 BlockIndex=3 Nodes=node-[7-8] BlockSize=2",
        "AggregatedBlock=b[1-2] BlockIndex=4 Nodes=node-[1-4] BlockSize=4", "AggregatedBlock=b[3-4] BlockIndex=5 Nodes=node-[5-8] BlockSize=4"]
    assert cluster.out("scontrol show topology flt") == ""
    assert cluster.out("scontrol show topology unit=s1").startswith("SwitchName=s1 ")
    assert [line.split()[0] for line in cluster.out("scontrol show topology blk node=node-3").splitlines()] == ["BlockName=b2", "AggregatedBlock=b[1-2]"]
    assert "Requested topology configuration is not available" in cluster.run("scontrol show topology nosuch").err


def test_environment(cluster):
    def address(args):
        out = cluster.out(f"srun {args} bash -c 'echo $SLURM_TOPOLOGY_ADDR $SLURM_TOPOLOGY_ADDR_PATTERN'")
        return out.split()
    cluster.wait("the nodes know", lambda: address("-w node-6") == ["sw_root.s2.node-6", "switch.switch.node"])
    assert address("-p blk -w node-1") == ["sw_root.s1.node-1", "switch.switch.node"]


def test_each_partition_by_its_own(cluster):
    busy = cluster.submit("-w node-2 --exclusive -t 5 -o /dev/null --wrap 'sleep 60'")
    cluster.wait_state(busy, "RUNNING")
    assert nodes(cluster, "-N4") == "node-[5-8]"
    assert nodes(cluster, "-N3 -p blk") == "node-[1,3-4]"
    assert nodes(cluster, "-N4 -p flt") == "node-[1,3-5]"
    assert nodes(cluster, "-N4 -p blk --segment=1 --spread-segments") == "node-[1,3,5,7]"
    cluster.run(f"scancel {busy}")
    r = cluster.run("sbatch -N3 -p blk --segment=2 --wrap true", check=False)
    assert r.rc == 1 and "node count must be evenly divisible by segment size" in r.err
    job = cluster.submit("-H -p blk -N4 --segment=2 --spread-segments --consolidate-segments --wrap true")
    assert "SegmentSize=2 SpreadSegments=Yes ConsolidateSegments=Yes" in cluster.out(f"scontrol show job {job}")
    cluster.run(f"scancel {job}")


def test_waits_for_few_switches(cluster):
    busy = cluster.submit("-w node-2,node-6 -N2 --exclusive -t 5 -o /dev/null --wrap 'sleep 60'")
    cluster.wait_state(busy, "RUNNING")
    job = cluster.submit("-N4 --switches=1@10:00 -o /dev/null --wrap true")
    cluster.wait("its reason", lambda: cluster.job(job, "Reason") == "Resources")
    assert cluster.job(job, "Switches") == "1@00:10:00"
    cluster.run(f"scancel {busy}")
    assert cluster.wait_end(job) == "COMPLETED" and cluster.job(job, "NodeList") in ("node-[1-4]", "node-[5-8]")


def test_a_unit_alone(cluster):
    alone = cluster.submit("-N1 --exclusive=topo -t 5 -o /dev/null --wrap 'sleep 60'")
    cluster.wait_state(alone, "RUNNING")
    assert cluster.job(alone, "Exclusive") == "TOPO" and cluster.job(alone, "NodeList") == "node-1"
    assert nodes(cluster, "-N1") == "node-5" and nodes(cluster, "-N1 -p flt") == "node-5"
    cluster.run(f"scancel {alone}")


def test_too_few_in_any_block(cluster):
    busy = cluster.submit("-w node-2,node-6 -N2 --exclusive -t 5 -o /dev/null --wrap 'sleep 60'")
    cluster.wait_state(busy, "RUNNING")
    job = cluster.submit("-p blk -N4 -o /dev/null --wrap true")
    cluster.wait("its reason", lambda: cluster.job(job, "Reason") == "No_suitable_topology_unit_found")
    cluster.run(f"scancel {busy}")
    assert cluster.wait_end(job) == "COMPLETED"


def test_what_is_wrong_is_named(cluster):
    path = os.path.join(cluster.home, "etc", "topology.yaml")
    for bad, word in [(YAML.replace("children: s[1-2]", "children: s[1-3]"), "s3"), (YAML.replace("flat: true", "torus3d: {}"), "torus3d"),
                      (YAML.replace("blocks:", "blobs:"), "blobs"), ("- topology: [", "YAML")]:
        with open(path, "w") as f:
            f.write(bad)
        r = cluster.run("scontrol reconfigure", check=False)
        assert r.rc != 0 and word in r.out + r.err, bad
    with open(path, "w") as f:
        f.write(YAML)
    cluster.run("scontrol reconfigure")
