"""SPANK from end to end: spank/walk.c asks for everything of slurm/spank.h in each callback of each context; what it got is compared with what it got from 26.05.5."""
import os
import re
import subprocess

import pytest

import conftest
import spank_walk

CLUSTER = dict(nodes=2, cpus=8, gpus=0, extra_conf="PrologFlags=Contain\nDefMemPerCPU=100\n")
HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(conftest.ROOT, "test", "compat", "spank")
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="slurmd as root: plugins see who they are")

CASES = {
    "srun": ("srun -t1 -N2 --ntasks-per-node=2 --walk=hello --walk-flag --walk-may --walk-quiet --walk-table=tab "
             "bash -c 'env | grep -E \"SPANK|WALK\" | sort | sed \"s/^/$SLURM_PROCID /\"; exit 3'", 3),
    "cpus": ("srun -t1 -N1 -n1 -c3 --mem=300 --walk-may=x true", 0),
    "sbatch": ("sbatch -W -t1 -N2 --ntasks-per-node=1 --mem=200 -a 4 --walk=batch --walk-quiet -o /dev/null --wrap 'env | grep -E \"SPANK|WALK\" | sort > $PWD/batch.env; "
               "srun --mem=100 bash -c \"env | grep -E \\\"SPANK|WALK\\\" | sort | sed s/^/\\$SLURM_PROCID\\ / > $PWD/step.env.\\$SLURM_PROCID\"; exit 4'", 4),
    "salloc": ("salloc -t1 -N1 -n2 --walk=alloc --walk-may=y bash -c 'env | grep -E \"SPANK|WALK\" | sort; srun --walk=instep -n1 env | grep -E \"SPANK|WALK\" | sort'", 0),
}

# Where we differ: of an option with a value that may be left out a job script gets no text "(null)", and options of a table reach it; the extern step knows its array task.
DIFFERENT = {
    "srun": [("value (null)", "value NULL"), ("getopt walk-table rc 3000 value NULL", "getopt walk-table rc 0 value tab")],
    "cpus": [], "salloc": [], "sbatch": [("S_JOB_ARRAY_TASK_ID 4294967294\n", "")],
}


class Walk:
    def __init__(self, cluster, user):
        self.cluster, self.user, self.record, self.so = cluster, user, f"{cluster.work}/walk", f"{cluster.dir}/walk.so"
        self.uid = cluster.out("id -u", user=user)
        subprocess.run(["gcc", "-O1", "-fPIC", "-shared", "-Wall", "-Werror", "-I", f"{conftest.ROOT}/include", "-o", self.so, f"{HERE}/spank/walk.c"], check=True)

    def set(self, text):
        with open(f"{self.cluster.home}/etc/plugstack.conf", "w") as f:
            f.write(text.format(so=self.so, record=self.record))
        with open(self.record, "w"):
            pass
        os.chmod(self.record, 0o666)

    def read(self):
        with open(self.record) as f:
            return f.read()


@pytest.fixture(scope="module")
def walk(cluster, user):
    w = Walk(cluster, user)
    w.set("required {so} {record}\n")
    for node in ("node-1", "node-2"):            # slurmd loads plugins when it starts
        cluster.berth(f"kill {node}")
    cluster.up()
    cluster.wait_idle()
    yield w
    os.unlink(f"{cluster.home}/etc/plugstack.conf")


@pytest.mark.parametrize("case", CASES)
def test_as_recorded(cluster, walk, user, case):
    walk.set("required {so} {record}\n")
    line, rc = CASES[case]
    done = cluster.run(line, user=user, check=False)
    assert done.rc == rc, done
    cluster.wait_idle()
    cluster.wait("epilogs", lambda: walk.read().count("@script job_epilog") >= walk.read().count("@script job_prolog") > 0)
    with open(os.path.join(GOLDEN, f"{case}.txt")) as f:
        golden = f.read()
    for theirs, ours in DIFFERENT[case]:
        assert theirs in golden
        golden = golden.replace(theirs, ours)
    seen = spank_walk.normal(walk.read(), [walk.uid])
    assert seen.splitlines() == golden.splitlines()


# plugstack.conf after "required", command, exit code, what it prints (the reference stamps slurmstepd's lines with the time)
INIT = "spank: required plugin walk.so: {}() failed with rc={}"
STEPD = "slurmstepd: error: " + INIT
FAILURES = [
    ("local.init=-1", "srun echo ran", 1, "", ["srun: error: " + INIT.format("init", -1), "srun: error: Plug-in initialization failed"]),
    ("local.init=1", "srun echo ran", 1, "", ["srun: error: " + INIT.format("init", 1), "srun: error: Plug-in initialization failed"]),
    ("local.init_post_opt=-1", "srun echo ran", 1, "", ["srun: error: " + INIT.format("init_post_opt", -1), "srun: error: Plugin stack post-option processing failed."]),
    ("local.local_user_init=1", "srun echo ran", 1, "", ["srun: error: " + INIT.format("local_user_init", 1), "srun: error: Failure in local plugin stack"]),
    ("local.exit=-1", "srun echo ran", 0, "ran\n", ["srun: error: " + INIT.format("exit", -1)]),
    ("remote.user_init=1", "srun echo ran", 1, "", [STEPD.format("user_init", 1)]),
    ("remote.task_init_privileged=-1", "srun echo ran", 1, "", [STEPD.format("task_init_privileged", -1)]),
    ("remote.task_post_fork=-1", "srun echo ran", 1, "", []),
    ("remote.task_init=1", "srun echo ran", 1, "", [STEPD.format("task_init", 1), "slurmstepd: error: Failed to invoke spank plugin stack",
                                                   "srun: error: node-1: task 0: Exited with exit code 1"]),
    ("remote.task_exit=1", "srun echo ran", 0, "ran\n", [STEPD.format("task_exit", 1)]),
    ("remote.exit=-1", "srun echo ran", 0, "ran\n", []),
    ("allocator.init=-1", "sbatch --wrap true", 1, "", ["sbatch: error: " + INIT.format("init", -1), "sbatch: error: Failed to initialize plugin stack"]),
    ("allocator.init=-1", "salloc echo ran", 1, "", ["salloc: error: " + INIT.format("init", -1), "salloc: error: Failed to initialize plugin stack"]),
    ("allocator.init_post_opt=-1", "salloc echo ran", 1, "", ["salloc: error: " + INIT.format("init_post_opt", -1), "salloc: error: Plugin stack post-option processing failed"]),
    ("allocator.exit=-1", "salloc -Q echo ran", 0, "ran\n", ["salloc: error: " + INIT.format("exit", -1)]),
    ("remote.task_init=-1", "sbatch -Q -W -o out.txt --wrap 'echo ran'; rc=$?; cat out.txt >&2; rm -f out.txt; exit $rc", 1, "", [STEPD.format("task_init", -1)]),
    ("remote.task_exit=-1", "sbatch -Q -W -o out.txt --wrap 'echo ran'; rc=$?; cat out.txt >&2; rm -f out.txt; exit $rc", 0, "", ["ran", STEPD.format("task_exit", -1)]),
    ("", "srun --walk=bad true", 255, "", ["srun: error: Invalid --walk argument: bad"]),
    ("", "sbatch --walk=bad --wrap true", 255, "", ["sbatch: error: Invalid --walk argument: bad"]),
    ("", "srun --walk-flag=x true", 255, "", ["srun: option '--walk-flag' doesn't allow an argument", 'Try "srun --help" for more information']),
    ("once", "srun echo ran", 0, "ran\n", ['srun: error: spank: option "' + "n" * 76 + '" provided by walk too long. Ignoring.',
                                           'srun: spank: option "walk" provided by both walk.so and walk.so', 'srun: spank: option "walk-table" provided by both walk.so and walk.so',
                                           'srun: error: Ignoring conflicting option "nodes" in plugin "walk"']),
    ("say", "srun echo ran", 0, "ran\n", [line for c in ("init", "init_post_opt", "local_user_init", "exit") for line in (f"{c}: spank_log", f"srun: error: {c}: error", f"srun: {c}: info")] +
     [line for c in ("user_init", "task_init_privileged", "task_post_fork", "task_init", "task_exit") for line in (f"{c}: spank_log", f"slurmstepd: error: {c}: error")]),
]


@pytest.mark.parametrize("words,command,rc,out,err", FAILURES, ids=[f"{x[1].split()[0]} {x[0] or x[1]}" for x in FAILURES])
def test_failures(cluster, walk, user, words, command, rc, out, err):
    walk.set("required {so} {record} " + words + "\n")
    done = cluster.run(command, user=user, check=False)
    assert done.rc == rc and done.out == out, done
    assert not set(err) - set(done.err.splitlines()), done
    if words:
        walk.set("optional {so} {record} " + words + "\n")
        done = cluster.run(command, user=user, check=False)
        assert done.rc == 0 and (done.out == "ran\n" or "sbatch" in command), done
        assert "failed with" not in done.err
    cluster.wait_idle()


def test_a_batch_job_is_tried_again_elsewhere(cluster, walk, user):
    """The plugin does not say whose fault it is: then it is the node's."""
    walk.set("required {so} {record} remote.init_post_opt=-1\n")
    job = cluster.submit("-w node-1 -o /dev/null --wrap true", user=user)
    cluster.wait("node-1 is drained", lambda: "drain" in cluster.out("sinfo -h -n node-1 -o %T"))
    assert cluster.job(job, "Restarts") == "1"
    cluster.run(f"scancel {job}; scontrol update nodename=node-1 state=resume")
    walk.set("required {so} {record} remote.init_post_opt=-1\n")
    done = cluster.run("srun -w node-1 true", user=user, check=False)
    assert done.rc == 1
    cluster.wait_idle()


LINES = [
    ("required /no/such.so", 1, ["error: spank: CONF:1: Failed to load plugin /no/such.so. Aborting.", "error: Plug-in initialization failed"]),
    ("optional /no/such.so", 0, []),
    ("required CONF", 1, ["error: spank: CONF:1: Failed to load plugin CONF. Aborting.", "error: Plug-in initialization failed"]),
    ("required", 0, ["error: spank: CONF:1: Invalid line. Ignoring."]),
    ("\n# remark\ninclude", 0, ["error: spank: CONF:3: Invalid line. Ignoring."]),
    ("wanted {so}", 0, ['error: spank: Invalid option "wanted". Must be required, optional or include', "error: spank: CONF:1: Invalid line. Ignoring."]),
    ("REQUIRED {so}", 0, ['error: spank: Invalid option "REQUIRED". Must be required, optional or include', "error: spank: CONF:1: Invalid line. Ignoring."]),
    ("include /no/such/x*", 0, []),
    ("required {so} {record} # local.init=-1", 0, []),
]


@pytest.mark.parametrize("line,rc,err", LINES, ids=[x[0] for x in LINES])
def test_lines_of_plugstack_conf(cluster, walk, line, rc, err):
    conf = f"{cluster.home}/etc/plugstack.conf"
    walk.set(line.replace("CONF", conf) + "\n")
    done = cluster.run("srun echo ran", check=False)
    assert done.rc == rc and done.out == ("" if rc else "ran\n"), done
    assert not {"srun: " + x.replace("CONF", conf) for x in err} - set(done.err.splitlines()), done
    assert bool(err) == bool(done.err), done
    cluster.wait_idle()


def test_help(cluster, walk):
    walk.set("required {so} {record}\n")
    shown = cluster.run("srun --help").out.split("Options provided by plugins:\n")[1].split("\n\n")[0].splitlines()
    assert [re.sub("  +", "  ", x).strip() for x in shown] == ["--walk-table=text  walk: an option of the table.", "--walk=text  walk: a value is needed.", "--walk-flag  walk: no value.",
                                                               "--walk-may[=text]  walk: a value may be given.", "--walk-quiet  walk: no callback."]
    assert "walk-table" not in cluster.run("sbatch --help").out and "--walk-quiet " in cluster.run("salloc --help").out
