"""Host lists and scripts that go over pdsh and ssh to each node (R01), leftover GPU processes (R02), and the published script that undrains good nodes (R08)."""
import os
import re
import shutil
import subprocess

import pytest

from conftest import free_port

CLUSTER = dict(nodes=4, cpus=4, gpus=2)

# What the device's own tool would print: the processes that hold a GPU of this node. NVIDIA_PIDS is the folder with a file for each node.
NVIDIA_SMI = """#!/bin/bash
[ "$*" = "--query-compute-apps=pid --format=csv,noheader" ] || exit 2
for pid in $(cat "{pids}/$(hostname)" 2>/dev/null); do kill -0 $pid 2>/dev/null && echo $pid; done
exit 0
"""

# The script as published for sites: nodes drained because of a process that would not die are looked at over pdsh, and used again where none is left.
UNDRAIN = r"""#!/bin/bash
# undrain-good-nodes: nodes drained with "Kill task failed" that hold no GPU process any more go back to work
reason="Kill task failed"
nodes=$(sinfo -R -h -o '%E|%N' | grep "$reason" | perl -ne 'chomp; my (undef, $n) = split /\|/; push @n, $n; END { print join ",", @n }')
[ -n "$nodes" ] || { echo "no nodes drained for: $reason"; exit 0; }
good=()
for node in $(scontrol show hostnames "$nodes"); do
    left=$(PDSH_RCMD_TYPE=ssh pdsh -N -w "$node" "nvidia-smi --query-compute-apps=pid --format=csv,noheader" | sort | uniq)
    if [ -z "$left" ]; then good+=("$node"); else echo "$node: still has $(echo $left)"; fi
done
for node in "${good[@]}"; do
    echo "undraining $node"
    scontrol update NodeName="$node" State=idle Reason="undrained by script"
done
"""


@pytest.fixture(scope="module")
def hosts(cluster):
    """sshd on every node, in the node's own names; returns the environment in which pdsh reaches them."""
    if os.geteuid() or not (shutil.which("pdsh") and os.path.exists("/usr/sbin/sshd")):
        pytest.skip("needs root, pdsh and sshd")
    folder = os.path.join(cluster.dir, "ssh")
    os.makedirs(folder)
    os.makedirs("/run/sshd", exist_ok=True)
    for name in ("host", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{name}"], check=True)
    shutil.copy(f"{folder}/key.pub", f"{folder}/authorized")
    os.makedirs(f"{folder}/bin")
    with open(f"{folder}/bin/nvidia-smi", "w") as f:
        f.write(NVIDIA_SMI.format(pids=folder))
    os.chmod(f"{folder}/bin/nvidia-smi", 0o755)
    port = free_port()
    with open(f"{folder}/sshd_config", "w") as f:
        f.write(f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\nPidFile none\nPort {port}\n"
                f"SetEnv PATH={folder}/bin:/usr/sbin:/usr/bin:/bin\n")
    with open(f"{folder}/ssh_config", "w") as f:
        f.write(f"Port {port}\nUser root\nIdentityFile {folder}/key\nIdentitiesOnly yes\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n")
    servers = []
    for n in range(1, 5):
        slurmd = cluster.out(f"berth status | awk '$1 == \"node-{n}\" {{ print $3 }}'")
        servers.append(subprocess.Popen(["nsenter", "-t", slurmd, "-m", "-u", "/usr/sbin/sshd", "-D", "-e", "-f", f"{folder}/sshd_config",
                                         "-o", f"ListenAddress=127.0.1.{n}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    env = {"PDSH_SSH_ARGS_APPEND": f"-F {folder}/ssh_config"}
    for n in range(1, 5):
        cluster.wait(f"sshd of node-{n}", lambda n=n: cluster.run(f"berth exec -- ssh -F {folder}/ssh_config node-{n} true", check=False).rc == 0)
    yield dict(env=env, folder=folder)
    for server in servers:
        server.kill()
        server.wait()


def left_on(cluster, hosts, node):
    """A process on a node that no job knows, said by nvidia-smi there to hold a GPU."""
    process = subprocess.Popen(["sleep", "600"])
    with open(f"{hosts['folder']}/node-{node}", "w") as f:
        f.write(f"{process.pid}\n")
    return process


def test_r01_each_host_answers_with_its_name(cluster, hosts):
    answers = cluster.out("PDSH_RCMD_TYPE=ssh berth exec -- pdsh -w node-[1,3-4] date", env=hosts["env"]).splitlines()
    assert sorted(line.split(":")[0] for line in answers) == ["node-1", "node-3", "node-4"], answers
    names = cluster.out("PDSH_RCMD_TYPE=ssh berth exec -- pdsh -w node-[1,3-4] hostname", env=hosts["env"]).splitlines()
    assert sorted(names) == ["node-1: node-1", "node-3: node-3", "node-4: node-4"]


def test_r01_every_command_understands_the_same_list(cluster):
    """The list as pdsh takes it, given to each command that takes nodes."""
    three = "node-[1,3-4]"
    job = cluster.submit(f"-w {three} -N3 -o /dev/null --wrap 'while [ ! -e r01-go ]; do sleep 0.1; done'")
    cluster.wait_state(job, "RUNNING")
    assert cluster.out(f"scontrol show hostnames {three}").split() == ["node-1", "node-3", "node-4"]
    assert cluster.out(f"sinfo -h -N -p main -n {three} -o %N").split() == ["node-1", "node-3", "node-4"]
    assert cluster.out(f"squeue -h -w {three} -o '%i %N'") == f"{job} {three}"
    assert cluster.out(f"srun --overlap --jobid {job} -w {three} -N3 -n3 hostname | sort").split() == ["node-1", "node-3", "node-4"]
    assert re.findall(r"NodeName=(\S+)", cluster.out(f"scontrol show node {three}")) == ["node-1", "node-3", "node-4"]
    cluster.run(f"scontrol update nodename={three} comment=r01")
    assert cluster.out(f"scontrol show node {three} | grep -c Comment=r01") == "3"
    assert cluster.out(f"sacct -X -n -N {three} -j {job} -o jobid,nodelist -P") == f"{job}|{three}"
    assert cluster.out(f"salloc -Q -x {three} -N1 -n1 bash -c 'echo $SLURM_JOB_NODELIST'") == "node-2"
    cluster.run(f"scancel -w {three} -u root")
    assert cluster.wait_end(job) == "CANCELLED"


def test_r02_leftover_gpu_processes_are_found_and_ended(cluster, hosts):
    first, second = left_on(cluster, hosts, 2), left_on(cluster, hosts, 4)
    ask = "PDSH_RCMD_TYPE=ssh berth exec -- pdsh -N -w node-[1-4] 'nvidia-smi --query-compute-apps=pid --format=csv,noheader | sort | uniq'"
    assert sorted(cluster.out(ask, env=hosts["env"]).split()) == sorted([str(first.pid), str(second.pid)])
    cluster.run(f"{ask} | xargs -n1 kill -9", env=hosts["env"])
    assert first.wait() == -9 and second.wait() == -9
    assert cluster.out(ask, env=hosts["env"]) == ""
    assert cluster.out("srun -w node-2 --gres=gpu:2 hostname") == "node-2"


def test_r08_the_published_script_undrains_good_nodes(cluster, hosts):
    """One node is clean, one still holds a process, one is drained for another reason: only the first goes back to work."""
    with open(f"{cluster.work}/undrain-good-nodes.sh", "w") as f:
        f.write(UNDRAIN)
    held = left_on(cluster, hosts, 3)
    cluster.run("scontrol update nodename=node-[1,3] state=drain reason='Kill task failed'; scontrol update nodename=node-4 state=drain reason='bad fan'")
    said = cluster.out("berth exec -- bash undrain-good-nodes.sh", env=hosts["env"])
    assert said.splitlines() == [f"node-3: still has {held.pid}", "undraining node-1"]
    assert [cluster.node_state(f"node-{n}") for n in (1, 3, 4)] == ["idle", "drained", "drained"]
    assert cluster.out("srun -w node-1 hostname") == "node-1"
    held.kill()
    held.wait()
    assert cluster.out("berth exec -- bash undrain-good-nodes.sh", env=hosts["env"]) == "undraining node-3"
    assert cluster.out("berth exec -- bash undrain-good-nodes.sh", env=hosts["env"]) == "no nodes drained for: Kill task failed"
    cluster.run("scontrol update nodename=node-4 state=resume")
    cluster.wait_idle()
