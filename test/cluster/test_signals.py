"""Around tasks: TaskProlog and TaskEpilog; how they are ended (KillWait), and warned before (--signal: R28)."""
import os
import stat

import pytest

CLUSTER = dict(nodes=1, cpus=8, gpus=0)


def program(cluster, name, text):
    path = f"{cluster.work}/{name}"
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    return path


@pytest.fixture(scope="module")
def site(cluster):
    """TaskProlog and TaskEpilog of the site."""
    prolog = program(cluster, "site.prolog", "#!/bin/sh\necho export SITE=$SLURM_PROCID of the site\necho export BOTH=site\necho print said by the site\n"
                     "echo unset GONE\necho noise that means nothing\nunset KEPT\n")
    epilog = program(cluster, "site.epilog", f"#!/bin/sh\necho epilog of $SLURM_PROCID >> {cluster.work}/site.log\n")
    with open(f"{cluster.home}/etc/slurm.conf", "a") as f:
        f.write(f"TaskProlog={prolog}\nTaskEpilog={epilog}\n")
    cluster.run("scontrol reconfigure")


def test_task_prolog(cluster, site):
    """export, unset and print; the site's first, then the user's; the rest of what they say is dropped."""
    own = program(cluster, "own.prolog", "#!/bin/sh\necho export BOTH=own after $BOTH\necho print said by the user\n")
    epilog = program(cluster, "own.epilog", f"#!/bin/sh\necho own epilog of $SLURM_PROCID >> {cluster.work}/own.log\n")
    done = cluster.run(f"GONE=1 KEPT=1 srun -n2 -l --task-prolog={own} --task-epilog={epilog} sh -c 'echo $SITE; echo $BOTH; echo ${{GONE-unset}} $KEPT'")
    for rank in (0, 1):
        said = [line[3:] for line in done.out.splitlines() if line.startswith(f"{rank}: ")]
        assert said == ["said by the site", "said by the user", f"{rank} of the site", "own after site", "unset 1"]
    assert sorted(cluster.read("own.log").splitlines()) == ["own epilog of 0", "own epilog of 1"]
    assert sorted(cluster.read("site.log").splitlines()) == ["epilog of 0", "epilog of 1"]


def test_failing_prologs_and_epilogs(cluster):
    """A task whose prolog fails is not run and ends with its code; a step whose srun prolog fails neither; epilogs are only talked about."""
    r = cluster.run("srun -n2 --task-prolog=/bin/false touch ran", check=False)
    assert r.rc == 1 and r.err.count("slurmstepd: error: --task-prolog failed status=1\n") == 2 and "tasks 0-1: Exited with exit code 1" in r.err
    r = cluster.run("srun --task-prolog=/nowhere touch ran", check=False)
    assert r.rc == 1 and "--task-prolog failed status=1" in r.err
    r = cluster.run("srun --prolog=/bin/false touch ran", check=False)
    assert r.rc == 1 and "srun: error: srun prolog failed rc = 1. Aborting step.\n" in r.err and "aborted before step completely launched." in r.err
    assert not os.path.exists(f"{cluster.work}/ran")
    r = cluster.run("salloc -Q bash -c 'srun --prolog=/bin/false touch ran; srun echo next'", check=False)      # its place in the job is free again
    assert r.out.endswith("next\n")
    r = cluster.run("srun --task-epilog=/bin/false --epilog=/bin/false true")
    assert "slurmstepd: error: TaskEpilog failed status=1\n" in r.err and "srun: error: srun epilog failed status=1\n" in r.err
    r = cluster.run("srun --task-epilog=/nowhere true")
    assert "TaskEpilog failed status=127" in r.err


def test_task_prolog_in_a_script(cluster, site):
    job = cluster.submit("-o prolog.out --wrap 'echo $SITE'")
    assert cluster.wait_end(job) == "COMPLETED" and cluster.read("prolog.out").splitlines() == ["said by the site", "0 of the site"]


TASK = """
import os, signal, sys, time
def note(sig, frame):
    with open("got." + sys.argv[1], "a") as f:
        f.write(signal.Signals(sig).name + "\\n")
for sig in (signal.SIGTERM, signal.SIGCONT, signal.SIGUSR1):
    signal.signal(sig, note)
open("runs." + sys.argv[1], "w").close()
if sys.argv[1] == "stopped":
    os.kill(os.getpid(), signal.SIGSTOP)
while True:
    time.sleep(0.05)
"""


@pytest.mark.parametrize("name", ["awake", "stopped"])
def test_kill_wait(cluster, name):
    """A task that ignores SIGTERM, stopped or not, gets SIGCONT and SIGTERM, and is killed when KillWait is over."""
    with open(f"{cluster.work}/task.py", "w") as f:
        f.write(TASK)
    job = cluster.submit(f"--wrap 'srun -n1 python3 task.py {name}'")
    cluster.wait("the task runs", lambda: os.path.exists(f"{cluster.work}/runs.{name}"))
    cluster.run(f"scancel {job}")
    cluster.wait("its signals", lambda: os.path.exists(f"{cluster.work}/got.{name}") and {"SIGTERM", "SIGCONT"} <= set(cluster.read(f"got.{name}").split()))
    assert cluster.out(f"pgrep -f '^python3 task.py {name}'")                                    # it is still there: KillWait is 5 s
    assert cluster.out(f"squeue -h -o '%i %t'") == f"{job} CG"
    assert cluster.wait_end(job) == "CANCELLED"
    cluster.wait("it to be killed", lambda: not cluster.out(f"pgrep -f '^python3 task.py {name}' || true"))


@pytest.mark.parametrize("how,script,step", [("B:USR1@57", True, False), ("USR1@57", False, True)])
def test_signal_before_the_limit(cluster, how, script, step):
    """--signal=B: goes to the batch shell alone, without B: to the steps alone."""
    name = "b" if script else "steps"
    with open(f"{cluster.work}/task.py", "w") as f:
        f.write(TASK)
    body = program(cluster, f"{name}.sh", f"""#!/bin/bash
trap 'touch shell.{name}' USR1
srun -n1 python3 task.py {name} &
until [ -e runs.{name} ]; do sleep 0.05; done
while [ ! -e finish.{name} ]; do sleep 0.05; done
scancel -s KILL $SLURM_JOB_ID.0
wait
wait
""")
    job = cluster.submit(f"-t 1 --signal={how} {body}")
    mine, other = (f"shell.{name}", f"got.{name}") if script else (f"got.{name}", f"shell.{name}")
    cluster.wait("the signal", lambda: os.path.exists(f"{cluster.work}/{mine}"))
    assert not os.path.exists(f"{cluster.work}/{other}") and cluster.state(job) == "RUNNING"
    assert script or cluster.read(f"got.{name}").split() == ["SIGUSR1"]
    open(f"{cluster.work}/finish.{name}", "w").close()
    cluster.wait_end(job)
