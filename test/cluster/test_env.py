"""Every SLURM_* variable of scripts, tasks and salloc's command, against what the reference gave (test/compat/env)."""
import importlib.util
import os
import re

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("envcases", os.path.join(os.path.dirname(HERE), "compat", "env", "cases.py"))
envcases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(envcases)

CLUSTER = dict(gpus=4, extra_conf="DefMemPerCPU=100\nTaskPlugin=task/none\nLicenses=lic:4\n")
# SLURM_JOB_END_REASON is ours. No accounts without slurmdbd's associations; --hint=multithread leaves a stray 65535 on the reference.
OURS = r"SLURM_(JOB_ACCOUNT|JOB_END_REASON|WORKING_CLUSTER|NTASKS_PER_CORE=65535)"


# Where ours is better than what was recorded, and why: the lines that differ.
BETTER = {
    "licenses-salloc": r"SLURM_JOB_LICENSES=",                                      # salloc(1) promises it
    "mem-bind-env": r"SLURM_MEM_BIND(_LIST|_TYPE)?=",                               # "SBATCH_MEM_BIND: same as --mem-bind"
    "het-srun": r"\w+_(HET|PACK)_GROUP_", "het-srun-gpus": r"\w+_(HET|PACK)_GROUP_|SLURM_GPUS_PER_NODE=",       # srun(1) promises them
    "het-srun-cpus": r"\w+_(HET|PACK)_GROUP_|SLURM_(CPUS_PER_TASK|DISTRIBUTION|TRES_PER_TASK)=",
    "het-nodes": r"SLURM_(NPROCS|NTASKS)_(HET|PACK)_GROUP_1=",                       # without it srun --het-group=1 takes the first component's
    # There the variables of the last component end up in the tasks of the first, or the other way round.
    "het-both": r"SLURM_JOB_NAME=", "het-mem": r"SLURM_MEM_PER_CPU=", "het-salloc": r"SLURM_NTASKS_PER_NODE=",
    "het-salloc-both": r"SLURM_(CPUS|TRES)_PER_TASK=", "het-gpus": r"SLURM_TRES_(BIND|PER_TASK)=",
}


def only_common(lines, name):
    return [line for line in lines if not re.match(OURS, line) and not (name in BETTER and re.match(BETTER[name], line))]


def difference(got, want):
    return [f"missing {line}" for line in want if line not in got] + [f"not there {line}" for line in got if line not in want]


@pytest.mark.parametrize("name,line", envcases.cases(), ids=lambda v: v if " " not in v else "")
def test_as_recorded(cluster, name, line):
    cluster.wait_idle()                # what still completes there would move it to another node
    run = lambda line, env, cwd: cluster.run(line, env=env, cwd=cwd, check=False)
    got = envcases.run_case(line, run, cluster.work)
    want = envcases.recorded(name)
    assert sorted(got) == sorted(want)
    wrong = {part: difference(only_common(got[part], name), only_common(want[part], name)) for part in want}
    assert not any(wrong.values()), "\n".join(f"{part}: {line}" for part in wrong for line in wrong[part])


TORCH = "env | grep -cE '^(MASTER_ADDR|MASTER_PORT|RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|GROUP_RANK)=' || true"


def test_torch_variables_can_be_turned_off(cluster):
    assert cluster.out(f"srun -n1 bash -c \"{TORCH}\"") == "7"
    assert cluster.out(f"srun -n1 --export-torch=no bash -c \"{TORCH}\"") == "0"
    assert cluster.out(f"sbatch -Q --wait -n1 --export-torch=no -o torch.out --wrap \"srun bash -c \\\"{TORCH}\\\"\"; cat torch.out").endswith("0")
    bad = cluster.run("srun -n1 --export-torch=maybe true", check=False)
    assert bad.rc != 0 and "export-torch" in bad.err


def test_torch_variables_of_the_user_win(cluster):
    out = cluster.out("MASTER_ADDR=me MASTER_PORT=77 srun -n2 bash -c 'echo $MASTER_ADDR $MASTER_PORT $WORLD_SIZE'")
    assert out.splitlines() == ["me 77 2"] * 2


def test_torch_variables_off_for_a_site(cluster):
    conf = f"{cluster.home}/etc/slurm.conf"
    before = cluster.read(conf)
    try:
        with open(conf, "a") as f:
            f.write("LaunchParameters=disable_torch_env\n")
        assert cluster.out(f"srun -n1 bash -c \"{TORCH}\"") == "0"
    finally:
        with open(conf, "w") as f:
            f.write(before)


# --- the login environment ---

LOGIN = "/usr/bin/env | /usr/bin/grep -vE '^(SLURM|SRUN|BERTH)'; command -v srun || true"


@pytest.fixture(scope="module")
def login_user(user, cluster):
    """An ordinary user whose profile says something, sets something and leaves a process behind."""
    if os.geteuid() != 0:
        pytest.skip("needs root to act as another user")
    profile = os.path.expanduser(f"~{user}/.profile")
    with open(profile, "w") as f:
        f.write("echo welcome\nexport FROM_LOGIN=yes SHARED=login\nsleep 4711 &\n")
    yield user
    os.unlink(profile)


def script_env(cluster, user, args, script=LOGIN, **env):
    """Variables the batch script sees, and where srun is."""
    given = dict(HOME="/home/nowhere", FOO="foo", SHARED="submit", **env)
    name = f"/tmp/berth-login-{os.getpid()}.out"
    cluster.run(f"sbatch -W -o {name} {args} --wrap \"{script}\"", user=user, env=given, cwd="/tmp")
    lines = cluster.read(name).splitlines()
    os.unlink(name)
    return dict(line.split("=", 1) for line in lines if "=" in line), [line for line in lines if "=" not in line]


@pytest.mark.parametrize("args", ["--export=NONE", "--export=NONE --get-user-env", "--export=FOO,BAZ=1"])
def test_scripts_without_the_callers_environment_have_a_logins(cluster, login_user, args):
    env, srun = script_env(cluster, login_user, args)
    assert env["HOME"] == os.path.expanduser(f"~{login_user}") and env["USER"] == env["LOGNAME"] == login_user and env["SHELL"] == "/bin/bash"
    assert env["FROM_LOGIN"] == "yes" and env["SHARED"] == "login" and env["MAIL"] == f"/var/mail/{login_user}"
    assert "/usr/bin" in env["PATH"].split(":") and srun and srun[0].endswith("/srun")
    assert env.get("FOO") == ("foo" if "FOO" in args else None) and env.get("BAZ") == ("1" if "BAZ" in args else None)
    assert env["ENVIRONMENT"] == "BATCH" and env["HYDRA_BOOTSTRAP"] == "slurm" and env["TMPDIR"] == "/tmp"


def test_the_callers_environment_wins_over_the_logins(cluster, login_user):
    env, srun = script_env(cluster, login_user, "--get-user-env")
    assert env["FROM_LOGIN"] == "yes" and env["SHARED"] == "submit" and env["FOO"] == "foo" and env["HOME"] == "/home/nowhere" and srun
    assert env["MAIL"] == f"/var/mail/{login_user}"


def test_nil_is_nothing(cluster, login_user):
    env, _ = script_env(cluster, login_user, "--export=NIL")
    assert not {"HOME", "USER", "LOGNAME", "PATH", "FOO", "FROM_LOGIN", "MAIL"} & set(env)


def test_what_a_profile_leaves_running_ends(cluster, login_user):
    script_env(cluster, login_user, "--export=NONE")
    cluster.wait("it to be gone", lambda: not cluster.run("pgrep -f 'sleep 4711'", check=False).out)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as another user")
def test_a_login_that_fails_holds_the_job(cluster):
    cluster.wait_idle()
    job = cluster.submit("--export=NONE -o /dev/null --wrap true", user="nobody", cwd="/tmp")
    cluster.wait("the job to be held", lambda: cluster.job(job, "Reason") == "user_env_retrieval_failed_requeued_held")
    assert cluster.state(job) == "PENDING" and cluster.job(job, "Priority") == "0" and cluster.job(job, "Restarts") == "1"
    assert "the login environment of user 65534 could not be had from /usr/sbin/nologin" in cluster.out(f"scontrol why {job}")
    cluster.run(f"scancel {job}")
    cluster.wait_idle()


def test_steps_take_what_they_are_told_to(cluster):
    for spec in ("NONE", "NIL"):
        got = cluster.out(f"srun --export-torch=no --export={spec} /usr/bin/env", env={"FOO": "foo"}).splitlines()
        assert [line for line in got if not re.match("SLURM|SRUN", line)] == ["TMPDIR=/tmp"]
    got = cluster.out("srun --export-torch=no --export=FOO,BAZ=1 /usr/bin/env", env={"FOO": "foo"}).splitlines()
    assert sorted(line for line in got if not re.match("SLURM|SRUN", line)) == ["BAZ=1", "FOO=foo", "TMPDIR=/tmp"]


def test_mpi_launchers_start_their_helpers_by_srun(cluster):
    for command in ("salloc -Q -n1 env", "srun -n1 env"):
        got = cluster.out(command, env={"I_MPI_HYDRA_BOOTSTRAP": "ssh"}).splitlines()
        assert {"HYDRA_BOOTSTRAP=slurm", "HYDRA_LAUNCHER_EXTRA_ARGS=--external-launcher", "OMPI_MCA_plm_slurm_args=--external-launcher", "I_MPI_HYDRA_BOOTSTRAP=ssh"} <= set(got)
        assert not any(line.startswith("I_MPI_HYDRA_BOOTSTRAP_EXEC") for line in got)
