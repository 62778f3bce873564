"""Steps that are not ordinary ones: --external-launcher, the interactive step of salloc; a node that is rebooted."""
import os
import pty
import re
import select
import time

import pytest

CLUSTER = dict(nodes=2, cpus=8, gpus=2)


def add_conf(cluster, text):
    with open(f"{cluster.home}/etc/slurm.conf", "a") as f:
        f.write(text)
    cluster.run("scontrol reconfigure")


def test_external_launcher(cluster):
    """A process on each node, with all that the job has there, beside a step that holds it all; sizes that were asked for are ignored."""
    script = f"{cluster.work}/launcher.sh"
    with open(script, "w") as f:
        f.write("""#!/bin/bash
srun -N2 -n4 bash -c 'touch full.$SLURM_PROCID; while [ ! -e go ]; do sleep 0.05; done' &
until [ -e full.0 ] && [ -e full.1 ] && [ -e full.2 ] && [ -e full.3 ]; do sleep 0.05; done
srun --external-launcher -l --mem=1 -c1 --gres=none bash -c 'echo $SLURMD_NODENAME $SLURM_NTASKS $SLURM_TASKS_PER_NODE $SLURM_CPUS_ON_NODE $CUDA_VISIBLE_DEVICES $SLURM_STEP_ID' | sort
srun --external-launcher -N1 -n1 -w node-2 hostname
touch go
wait
""")
    job = cluster.submit(f"-N2 -n4 -c2 --gres=gpu:2 -o launcher.out {script}")
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.read("launcher.out").splitlines() == ["0: node-1 2 1(x2) 6 0,1 1", "1: node-2 2 1(x2) 2 0,1 1", "node-2"]


def talk(cluster, argv, say):
    """Runs argv on a terminal and types `say`; what came out until its end, and its exit code."""
    pid, fd = pty.fork()
    if not pid:
        os.chdir(cluster.work)
        os.execvpe(argv[0], argv, {**cluster.env(), "SHELL": "/bin/sh", "PS1": "$ "})
    out, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        if not select.select([fd], [], [], 0.2)[0]:
            continue
        try:
            got = os.read(fd, 65536)
        except OSError:
            break
        if not got:
            break
        out += got
        if say and b"$ " in out:
            os.write(fd, say.encode())
            say = None
    os.close(fd)
    return out.decode(errors="replace"), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_interactive_step(cluster):
    """LaunchParameters=use_interactive_step: salloc's shell is on the job's node, and leaves its resources to steps."""
    add_conf(cluster, "LaunchParameters=use_interactive_step\n")
    said, code = talk(cluster, [f"{cluster.env()['PATH'].split(':')[0]}/salloc", "-n2", "-w", "node-2"],
                      "echo at=$(hostname) step=$SLURM_STEP_ID; srun -n2 hostname; exit 4\n")
    assert re.search(r"at=node-2 step=-6", said) and said.replace("\r", "").splitlines().count("node-2") == 2, said
    assert code == 4, said
    job = int(re.search(r"Granted job allocation (\d+)", said).group(1))
    cluster.wait("accounting", lambda: f"{job}.interactive|interactive|FAILED" in cluster.out(f"sacct -nP -j {job} -o jobid,jobname,state").splitlines())
    # A command runs here as ever.
    assert cluster.out("salloc -Q -n1 -w node-2 sh -c 'echo ${SLURM_STEP_ID:-none}'") == "none"


def test_reboot(cluster):
    """scontrol reboot: RebootProgram runs on the node, which comes back with another boot and is resumed; jobs wait for it."""
    program = f"{cluster.home}/reboot.sh"
    slurmd = f"{cluster.env()['PATH'].split(':')[1]}/slurmd"
    with open(program, "w") as f:
        f.write(f"""#!/bin/bash
echo $SLURMD_NODENAME >> {cluster.work}/rebooted
setsid bash -c 'kill -9 $(cat {cluster.home}/run/node-2.slurmpid); touch {cluster.work}/down; while [ ! -e {cluster.work}/power ]; do sleep 0.05; done
  exec {slurmd} -b -N node-2 -f {cluster.home}/etc/slurm.conf' >/dev/null 2>&1 </dev/null &
""")
    os.chmod(program, 0o755)
    add_conf(cluster, f"RebootProgram={program}\nResumeTimeout=60\n")
    running = cluster.submit("-w node-2 --wrap 'while [ ! -e finish ]; do sleep 0.05; done'")
    cluster.wait_state(running, "RUNNING")
    cluster.run("scontrol reboot ASAP nextstate=RESUME reason=kernel node-2")
    assert "@" in cluster.out("sinfo -h -n node-2 -p main -o %T") and not os.path.exists(f"{cluster.work}/rebooted")      # waits for the job
    waits = cluster.submit("-w node-2 --wrap hostname -o after.out")
    open(f"{cluster.work}/finish", "w").close()
    assert cluster.wait_end(running) == "COMPLETED"
    cluster.wait("the node to go down", lambda: os.path.exists(f"{cluster.work}/down"))
    assert cluster.read("rebooted").split() == ["node-2"]
    assert cluster.state(waits) == "PENDING" and "^" in cluster.out("sinfo -h -n node-2 -p main -o %T")
    open(f"{cluster.work}/power", "w").close()
    assert cluster.wait_end(waits) == "COMPLETED" and cluster.read("after.out") == "node-2\n"
    cluster.wait_idle()
    cluster.run(f"kill $(cat {cluster.home}/run/node-2.slurmpid)")       # `berth down` knows only what it has started
    cluster.run("berth start node-2")
