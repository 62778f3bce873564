"""sbatch, salloc and scancel on real daemons: texts, streams, exit codes and environments as the reference has them."""
import os
import pathlib
import pty
import re
import select
import signal
import shutil
import tempfile
import time

import pytest

CLUSTER = dict(nodes=4, cpus=8, gpus=4)


def script(cluster, name, text):
    path = os.path.join(cluster.work, name)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o755)
    return path


def env_of(cluster, args, name):
    job = cluster.submit(f"-W -o {name} {args} --wrap env")
    return job, dict(line.split("=", 1) for line in cluster.read(name).splitlines() if "=" in line)


def test_streams_of_a_good_submission(cluster):
    got = cluster.run("sbatch -t1 --wrap true")
    assert re.fullmatch(r"Submitted batch job \d+\n", got.out) and got.err == ""
    assert re.fullmatch(r"\d+\n", cluster.run("sbatch --parsable -t1 --wrap true").out)
    quiet = cluster.run("sbatch -Q --parsable -t1 --wrap true")
    assert quiet.out == quiet.err == ""


def test_command_line_beats_environment_beats_directives(cluster):  # C31
    script(cluster, "s.sh", "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH -J fromscript\n#SBATCH --comment=fromscript\n")
    job = cluster.submit("--hold --nodes=2 s.sh", env={"SBATCH_JOB_NAME": "fromenv"})
    assert cluster.job(job, "NumNodes").split("-")[0] == "2"
    assert cluster.job(job, "JobName") == "fromenv"
    assert cluster.job(job, "Comment") == "fromscript"
    cluster.run(f"scancel {job}")


def test_late_directives_are_warned_about(cluster):  # C26
    script(cluster, "late.sh", "#!/bin/bash\nset -e\n#SBATCH -J late\n")
    got = cluster.run("sbatch -t1 late.sh")
    assert "1 #SBATCH line after the first command (line 2)" in got.err
    assert re.fullmatch(r"Submitted batch job \d+\n", got.out)


def test_script_from_standard_input_and_arguments(cluster):
    job = cluster.submit("-W -t1 -o in.out", stdin="#!/bin/sh\necho from stdin\n")
    assert cluster.read("in.out") == "from stdin\n"
    script(cluster, "args.sh", '#!/bin/sh\nfor a; do echo "<$a>"; done\n')
    cluster.run("sbatch -W -t1 -o args.out args.sh 'a b' c --nodes=9")
    assert cluster.read("args.out") == "<a b>\n<c>\n<--nodes=9>\n"
    assert job


def test_wait_gives_the_exit_code(cluster):  # E55
    assert cluster.run("sbatch -W -t1 --wrap 'exit 3'", check=False).rc == 3
    assert cluster.run("sbatch -W -t1 -a 1-3 --wrap 'if [ $SLURM_ARRAY_TASK_ID = 2 ]; then exit 3; fi'", check=False).rc == 3
    assert cluster.run("sbatch -W -t1 --wrap 'kill -9 $$'", check=False).rc == 1


def test_refusals_name_the_thing(cluster):
    for args, texts in [
        ("-p nope", ["invalid partition specified: nope", "Batch job submission failed: Invalid partition name specified"]),
        ("-d afterok:99999", ["99999", "Batch job submission failed: Job dependency problem"]),
        ("-a 0-99999999", ["Batch job submission failed: Invalid job array specification"]),
        ("--array=4294967297", ["Batch job submission failed: Invalid job array specification"]),  # E53
        ("-w nope", ["Batch job submission failed: Invalid node name specified"]),
        ("--gres=foo:1", ["Batch job submission failed: Invalid generic resource (gres) specification"]),
    ]:
        got = cluster.run(f"sbatch {args} --wrap true", check=False)
        assert got.rc == 1 and got.out == "", (args, got)
        for text in texts:
            assert text in got.err, (args, got)


def test_test_only_estimates_and_submits_nothing(cluster):
    before = cluster.out("squeue -h")
    got = cluster.run("sbatch --test-only -N2 -n5 -t1 --wrap true")
    assert re.search(r"sbatch: Job \d+ to start at \S+ a using 5 processors on nodes \S+ in partition main", got.err) and got.out == ""
    assert cluster.out("squeue -h") == before


def test_export_forms(cluster):  # R30
    outer = {"FOO": "1", "BAZ": "2", "SLURM_X": "1", "SLURM_JWT": "secret"}
    for spec, has, lacks in [
        ("ALL", ["FOO", "BAZ", "SLURM_X"], ["SLURM_JWT"]),  # D46
        ("NONE", ["SLURM_X"], ["FOO", "BAZ"]),
        ("NIL", ["SLURM_X"], ["FOO", "BAZ"]),
        ("FOO,BAR=2", ["FOO", "BAR", "SLURM_X"], ["BAZ"]),
        ("ALL,BAR=2", ["FOO", "BAZ", "BAR"], []),
    ]:
        job = cluster.submit(f"-W -t1 -o export.out --export={spec} --wrap /usr/bin/env", env=outer)
        got = dict(line.split("=", 1) for line in cluster.read("export.out").splitlines() if "=" in line)
        assert job and all(name in got for name in has) and not any(name in got for name in lacks), (spec, got)


def test_environment_of_a_batch_job(cluster):  # R32, D44
    job, env = env_of(cluster, "-t1 -N2 -n5 -c2 --mem=100 -J 'x y'", "e1")
    assert env["SLURM_JOB_ID"] == env["SLURM_JOBID"] == str(job)
    assert env["SLURM_NNODES"] == env["SLURM_JOB_NUM_NODES"] == "2" and env["SLURM_NTASKS"] == env["SLURM_NPROCS"] == "5"
    assert env["SLURM_CPUS_PER_TASK"] == "2" and env["SLURM_MEM_PER_NODE"] == "100" and env["SLURM_TRES_PER_TASK"] == "cpu=2"
    assert env["SLURM_JOB_NAME"] == "x y" and env["SLURM_SUBMIT_DIR"] == cluster.work and env["SLURM_PROCID"] == "0"
    assert "SLURM_RESTART_COUNT" not in env and "SLURM_ARRAY_JOB_ID" not in env
    job, env = env_of(cluster, "-t1 -N2 --ntasks-per-node=3 --gres=gpu:2", "e2")
    assert env["SLURM_JOB_CPUS_PER_NODE"] == env["SLURM_TASKS_PER_NODE"] == "3(x2)" and env["SLURM_NTASKS_PER_NODE"] == "3"
    assert env["SLURM_JOB_GPUS"] == env["CUDA_VISIBLE_DEVICES"] == "0,1" and env["SLURM_GPUS_ON_NODE"] == "2"


def test_salloc_lines_code_and_environment(cluster):
    got = cluster.run("salloc -t1 -N2 -n3 bash -c 'env; exit 7'", check=False)
    job = re.search(r"Granted job allocation (\d+)", got.err).group(1)
    lines = [line for line in got.err.splitlines() if "queued" not in line and "Pending" not in line and "has been allocated" not in line]
    assert lines == [f"salloc: Granted job allocation {job}", f"salloc: Nodes {cluster_nodes(got.out)} are ready for job",
                     f"salloc: Relinquishing job allocation {job}"]
    assert got.rc == 7 and "SLURM_NTASKS=3\n" in got.out and "SLURM_JOB_NAME=interactive\n" in got.out
    quiet = cluster.run("salloc -Q -t1 true")
    assert quiet.out == quiet.err == ""


def cluster_nodes(env_text):
    return re.search(r"^SLURM_JOB_NODELIST=(.*)$", env_text, re.M).group(1)


def test_salloc_says_what_goes_wrong(cluster):
    got = cluster.run("salloc -t1 nosuchcommand", check=False)
    assert got.rc == 1 and 'Unable to find command "nosuchcommand"' in got.err and "Relinquishing" in got.err
    got = cluster.run("salloc -t1 sh -c 'scancel $SLURM_JOB_ID; sleep 1; echo alive'", check=False)
    assert got.rc == 0 and "has been revoked." in got.err and got.out == "alive\n" and "Relinquishing" not in got.err
    got = cluster.run("timeout -s INT 2 salloc --hold true", check=False)
    # The reference says either or both, as the controller's answer or the signal is seen first.
    assert "Job aborted due to signal" in got.err or "has been revoked" in got.err
    assert cluster.out("squeue -h -n interactive -o %i") == ""


def test_salloc_gives_a_shell_on_a_terminal(cluster):  # R22
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.clear()
        os.environ.update(cluster.env(), PS1="ready> ", TERM="dumb", SHELL="/bin/sh")
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # where the tests run in the background it is ignored
        os.execvp("salloc", ["salloc", "-t2", "-J", "term"])
    seen = ""

    def until(text, limit=20):
        nonlocal seen
        end = time.monotonic() + limit
        while not re.search(text, seen):
            assert time.monotonic() < end, seen
            if select.select([fd], [], [], 0.2)[0]:
                try:
                    seen += os.read(fd, 4096).decode(errors="replace")
                except OSError:
                    break

    until("are ready for job")
    # In one program: a shell may lose what is typed while it starts the next one (dash alone, without salloc, does in 3 of 12).
    os.write(fd, b"sh -c 'echo id=$SLURM_JOB_ID; exec sleep 100'\n")
    until(r"id=\d+")
    os.write(fd, b"\x03")
    until(r"\^C\s*ready> ")
    os.write(fd, b"echo after=$((40+2))\n")
    until("after=42")
    os.write(fd, b"exit 5\n")
    until("Relinquishing job allocation")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5


def test_no_shell_leaves_the_allocation(cluster):
    got = cluster.run("salloc --no-shell -t1 -J kept")
    job = re.search(r"Granted job allocation (\d+)", got.err).group(1)
    assert cluster.state(job) == "RUNNING"
    assert cluster.run("scancel -v -n kept").err == f"scancel: Terminating job {job}\n"
    cluster.wait_state(job, "CANCELLED")


def test_scancel_texts_and_codes(cluster):
    job = cluster.submit("--hold --wrap true")
    assert cluster.run(f"scancel -v {job}").err == f"scancel: Terminating job {job}\n"
    gone = cluster.run(f"scancel -v {job}")
    assert gone.rc == 0 and f"Kill job error on job id {job}: Job/step already completing or completed" in gone.err
    for args in (f"{job}", "99999999", "-Q 99999999"):
        silent = cluster.run(f"scancel {args}")
        assert silent.out == silent.err == ""
    assert cluster.run("scancel -v 99999999").err.endswith("scancel: error: Kill job error on job id 99999999: Invalid job id specified\n")
    assert cluster.run("scancel -s USR1 99999999", check=False).rc == 1
    none = cluster.run("scancel -v -n nosuchname")
    assert none.err == "scancel: error: No active jobs match ALL job filters, including: job_name=nosuchname \n"


def test_scancel_asks(cluster):
    job = cluster.submit("--hold -J jj --wrap true")
    assert cluster.run(f"scancel -i {job}", stdin="n\n").out == f"Cancel job_id={job} name=jj partition=main [y/n]? "
    assert cluster.state(job) == "PENDING"
    cluster.run(f"scancel -i {job}", stdin="y\n")
    assert cluster.state(job) == "CANCELLED"


def test_scancel_signals_the_batch_shell_only(cluster):
    job = cluster.submit("-t1 -o sig.out --wrap 'trap \"echo got; exit 0\" USR1; echo ready; while :; do sleep 0.1; done'")
    cluster.wait("the script is ready", lambda: os.path.exists(os.path.join(cluster.work, "sig.out")) and "ready" in cluster.read("sig.out"))
    assert cluster.run(f"scancel -v -b -s USR1 {job}").err == f"scancel: Signal 10 to batch job {job}\n"
    cluster.wait_state(job, "COMPLETED")
    assert "got" in cluster.read("sig.out")


def test_submitted_by_root_for_another_user(cluster, user):
    """sbatch --uid and --gid: the job is theirs in every way; nobody else may say so."""
    if os.getuid():
        pytest.skip("needs root")
    for option in ("uid", "gid"):
        refused = cluster.run(f"sbatch --{option}=root --wrap true", user=user, check=False)
        assert (refused.rc, refused.err.strip()) == (255, f"sbatch: error: --{option} only permitted by root user")
    place = tempfile.mkdtemp(dir="/tmp")
    try:
        os.chmod(place, 0o777)
        job = cluster.submit(f"--uid=nobody --gid=daemon -D {place} -o id.txt --wrap 'id -un; id -gn'")
        assert cluster.wait_end(job) == "COMPLETED"
        assert cluster.read(f"{place}/id.txt").split() == ["nobody", "daemon"]
        assert pathlib.Path(f"{place}/id.txt").owner() == "nobody"
        assert cluster.job(job, "UserId") == "nobody(65534)" and cluster.job(job, "GroupId") == "daemon(1)"
        for words, text in (("--uid=no-such-user", "--uid"), ("--gid=no-such-group", "--gid"), ("--uid=", "--uid")):
            refused = cluster.run(f"sbatch {words} --wrap true", check=False)
            assert (refused.rc, refused.err.strip()) == (255, f"sbatch: error: Invalid {text} specification")
        unknown = cluster.run("sbatch --uid=4000000 --wrap true", check=False)
        assert unknown.rc == 1 and "user id 4000000 is not known on the controller's host" in unknown.err
    finally:
        shutil.rmtree(place)


@pytest.mark.parametrize("args, nodes, tasks", [
    ("-w node-[1-2]", "node-[1-2]", "2"), ("-w node-[1-2] -n1", "node-1", "1"), ("-w node-[1-2] -N1", "node-1", "1"), ("-w node-[1-3] -N2", "node-[1-2]", "2"),
    ("-w node-[1-3] -n2", "node-[1-2]", "2"), ("-w node-[1-2] -n8", "node-[1-2]", "8"), ("-w node-[1-3] -N1-2 -n1", "node-1", "1"), ("-w node-[1-2] --ntasks-per-node=2", "node-[1-2]", "4"),
    ("-w node-[1-2] -c 2", "node-[1-2]", "2"),
])
def test_a_node_list_is_the_least_there_shall_be(cluster, args, nodes, tasks):
    cluster.wait_idle()
    job = cluster.submit(f"{args} -o /dev/null --wrap 'sleep 30'")
    cluster.wait_state(job, "RUNNING")
    got = cluster.job(job, "NodeList"), cluster.job(job, "NumTasks")
    cluster.run(f"scancel {job}")
    assert got == (nodes, tasks)


def test_srun_on_fewer_tasks_than_named_nodes(cluster):
    cluster.wait_idle()
    assert sorted(cluster.out("srun -w node-[1-2] hostname").split()) == ["node-1", "node-2"]
    got = cluster.run("srun -w node-[1-2] -n1 hostname")
    assert got.out == "node-1\n" and got.err == "srun: warning: can't run 1 processes on 2 nodes, setting nnodes to 1\n"


def test_specialized_cores_are_not_for_jobs_unless_the_configuration_says_so(cluster):
    for line, option in (("sbatch -S 1 -o /dev/null --wrap true", "-S"), ("srun --thread-spec=1 true", "--thread-spec"), ("salloc -S 1 true", "-S")):
        done = cluster.run(line)
        assert f"{line.split()[0]}: error: Ignoring {option} since it's not allowed by configuration (AllowSpecResourcesUsage = No)\n" in done.err
    assert "Ignoring -S" in cluster.run("sbatch -S 0 -o /dev/null --wrap true").err


@pytest.mark.parametrize("command", ["sbatch --wrap true", "srun true", "salloc true"])
def test_nodelist_and_exclude_with_a_node_in_common(cluster, command):
    name, *rest = command.split(" ", 1)
    got = cluster.run(f"{name} -w node-[1-2] -x node-2 {rest[0]}", check=False)
    assert got.rc == 1 and "name the same node" in got.err and got.err.splitlines()[-1].endswith("Invalid node name specified")


@pytest.mark.parametrize("args, message", [
    ("--mem=200", "Memory required by task is not available"), ("-n3", "More processors requested than permitted"), ("--gres=gpu:2", "Invalid generic resource (gres) specification"),
])
def test_a_step_larger_than_its_job(cluster, args, message):
    got = cluster.run(f"salloc -Q -n1 --mem=100 --gres=gpu:1 srun {args} true", check=False)
    assert got.rc == 1 and re.search(rf"srun: error: Unable to create step for job \d+: {re.escape(message)}\n", got.err)


def test_a_folder_that_is_gone(cluster):
    gone = "mkdir -p gone; cd gone; rmdir ../gone; "
    for name in ("srun true", "sbatch --wrap true"):
        got = cluster.run(gone + name, check=False)
        assert got.rc == 255 and got.err.endswith(f"{name.split()[0]}: error: getcwd failed: No such file or directory\n")
    got = cluster.run(gone + "salloc true", check=False)
    assert got.rc == 1 and got.err.endswith("salloc: error: getcwd failed: No such file or directory\n"
                                            "salloc: error: Job submit/allocate failed: Job cannot be submitted without the current working directory specified.\n")


def test_cancelling_a_step_that_has_ended(cluster):
    job = cluster.submit("-o /dev/null --wrap 'srun -n1 true; touch step-ended; sleep 60'")
    cluster.wait("its step to end", lambda: os.path.exists(os.path.join(cluster.work, "step-ended")))
    for step in (0, 7):
        got = cluster.run(f"scancel {job}.{step}", check=False)
        assert got.rc == 225 and got.err.startswith(f"scancel: error: Kill job error on job step id {job}: Invalid job id specified\n")
    cluster.run(f"scancel {job}")


def test_sacct_takes_long_or_a_format(cluster):
    for order in ("-l -o JobID", "-o JobID -l"):
        got = cluster.run(f"sacct {order}", check=False)
        assert got.rc == 1 and got.out == "" and got.err == "sacct: fatal: Options -o(--format) and -l(--long) are mutually exclusive. Please remove one and retry.\n"
