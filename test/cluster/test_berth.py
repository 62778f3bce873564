"""`berth`, the local cluster: what a newcomer types, what goes wrong, and machines that permit less (no namespaces)."""
import ctypes
import os
import pwd
import re
import subprocess
import time

import pytest

from conftest import BUILD

CLUSTER = dict(nodes=2, cpus=4, gpus=2)
NEWUSER = 0x10000000


@pytest.fixture
def folder(cluster, request):
    """A folder for one more cluster beside the module's; whatever is up in it at the end is stopped."""
    path = os.path.join(cluster.work, request.node.name)
    yield path
    if os.path.exists(path):
        cluster.berth(f"down --dir {path} --purge", check=False)


def up(cluster, folder, options="--nodes 1 --cpus 2 --gpus 0", **kw):
    began = time.monotonic()
    result = cluster.berth(f"up --dir {folder} {options}", **kw)
    result.seconds = time.monotonic() - began
    return result


def test_help_is_a_page(cluster):
    text = cluster.out("berth --help")
    assert text.startswith("Usage: berth COMMAND")
    for word in ("up", "down", "status", "env", "exec", "logs", "kill", "start", "--dir", "--nodes", "--conf", "--purge"):
        assert word in text


def test_nodes_have_their_names(cluster):
    assert sorted(cluster.out("srun -N2 hostname").split()) == ["node-1", "node-2"]
    seen = cluster.out("srun -N2 -l sh -c 'getent hosts node-1 node-2 | awk \"{print \\$1}\"'").splitlines()
    assert sorted(seen) == ["0: 127.0.1.1", "0: 127.0.1.2", "1: 127.0.1.1", "1: 127.0.1.2"]


def test_tasks_meet_at_a_node_name(cluster):
    """As MASTER_ADDR=node-1 is used: rank 0 listens on its node, the other connects by name."""
    code = ("import os, socket, time\n"
            "if os.environ['SLURM_PROCID'] == '0':\n"
            "    s = socket.create_server(('node-1', 29511)); s.settimeout(20); print(s.accept()[0].recv(9).decode())\n"
            "else:\n"
            "    for _ in range(200):\n"
            "        try: socket.create_connection(('node-1', 29511)).send(b'met'); break\n"
            "        except OSError: time.sleep(0.05)\n")
    with open(os.path.join(cluster.work, "meet.py"), "w") as f:
        f.write(code)
    assert cluster.out("srun -N2 -n2 -w node-1,node-2 /usr/bin/python3 meet.py") == "met"


def test_exec_runs_where_names_resolve(cluster):
    assert cluster.out("berth exec -- getent hosts node-2").split() == ["127.0.1.2", "node-2"]
    assert cluster.out("env -u SLURM_CONF berth exec sinfo -h -p main -o %D") == "2"
    assert cluster.run("berth exec -- sh -c 'exit 7'", check=False).rc == 7
    missing = cluster.run("berth exec -- nonesuch", check=False)
    assert missing.rc == 127 and "nonesuch: No such file" in missing.err
    assert cluster.run("berth exec", check=False).rc == 1


def test_status_logs_kill_and_start(cluster):
    assert re.search(r"^slurmctld +up +\d+$", cluster.out("berth status"), re.M)
    for name in ("slurmctld", "slurmdbd", "node-2"):
        cluster.berth(f"kill {name}")
        down = cluster.run("berth status", check=False)
        assert down.rc == 3 and re.search(rf"^{name} +down +-$", down.out, re.M)
        cluster.berth(f"start {name}")
        assert cluster.run("berth status").rc == 0
    cluster.wait_idle()
    assert "slurmctld version" in cluster.out("berth logs slurmctld")
    log = cluster.out("berth logs node-2")
    assert "started on node node-2" in log and "slurmd: slurmd version" not in log   # what it printed says the same: once is enough
    assert "node-1" in cluster.out("berth logs slurmd") and "slurmdbd" in cluster.out("berth logs")


def test_killed_node_is_back_before_it_was_missed(cluster):
    """The job that died with it is run again; it does not stay RUNNING for ever."""
    job = cluster.submit("-w node-1 --open-mode=append -o young-%j.txt --wrap 'echo run ${SLURM_RESTART_COUNT:-0}; [ \"$SLURM_RESTART_COUNT\" ] || exec sleep 300'")
    cluster.wait("its first line", lambda: os.path.exists(f"{cluster.work}/young-{job}.txt") and "run 0" in cluster.read(f"young-{job}.txt"))
    cluster.berth("kill node-1")
    cluster.berth("start node-1")
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.read(f"young-{job}.txt").split() == ["run", "0", "run", "1"]
    cluster.wait_idle()


def test_start_says_why_a_daemon_ended_at_once(cluster):
    conf = f"{cluster.home}/etc/slurm.conf"
    good = cluster.read(conf)
    for daemon in ("slurmctld", "node-1"):
        cluster.berth(f"kill {daemon}")
        with open(conf, "a") as f:
            f.write("NoSuchKey=1\n")
        try:
            result = cluster.berth(f"start {daemon}", check=False)
        finally:
            with open(conf, "w") as f:
                f.write(good)
        assert result.rc == 1 and f"{daemon} has ended" in result.err and "NoSuchKey" in result.err, result
        assert re.search(rf"^{daemon} +down", cluster.berth("status", check=False).out, re.M)
        cluster.berth(f"start {daemon}")
        assert daemon != "slurmctld" or "is UP" in cluster.out("scontrol ping"), "not ready when start returned"
    cluster.wait_idle()


def test_up_beside_very_many_nodes(cluster, folder):
    """Nodes that the lines of --conf add are not waited for."""
    extra = os.path.join(cluster.work, "many.conf")
    with open(extra, "w") as f:
        f.write("NodeName=e[1-100000] NodeAddr=127.0.0.1 Port=9 CPUs=4 RealMemory=16000\nPartitionName=emu Nodes=e[1-100000]\n")
    up(cluster, folder, f"--nodes 2 --conf {extra}")
    assert cluster.out(f"SLURM_CONF={folder}/etc/slurm.conf sinfo -h -p main -n node-[1-2] -o '%D %t'") == "2 idle"


def test_wrong_words_are_refused(cluster):
    for command, words in (("nonesuch", 'unknown command "nonesuch"'), ("up extra", 'unexpected argument "extra"'), ("status all", 'unexpected argument "all"'),
                           ("kill nonesuch", 'no daemon or node "nonesuch"'), ("kill", "name one daemon or node"), ("logs nonesuch", "no log of nonesuch"),
                           ("up --nodes 0", '--nodes: "0" is not a number from 1'), ("up --cpus x", '--cpus: "x"'), ("down --dir /nonesuch", "no cluster in /nonesuch")):
        result = cluster.berth(command, check=False)
        assert result.rc == 1 and words in result.err, (command, result)


def test_options_of_an_existing_cluster_are_not_ignored(cluster):
    for option in ("--nodes 3", "--cpus 9", "--gpus 1", "--mem 1"):
        result = cluster.berth(f"up {option}", check=False)
        assert result.rc == 1 and option.split()[0] in result.err, (option, result)
    assert cluster.berth("up --nodes 2 --cpus 4").rc == 0


def test_extra_configuration(cluster, folder):
    extra = os.path.join(cluster.work, "extra.conf")
    missing = up(cluster, folder, "--conf nonesuch", check=False)
    assert missing.rc == 1 and "--conf nonesuch: No such file" in missing.err and not os.path.exists(folder)
    with open(extra, "w") as f:
        f.write("KillWiat=9\n")
    wrong = up(cluster, folder, f"--nodes 1 --conf {extra}", check=False)
    assert wrong.rc == 1 and "extra.conf:1" in wrong.err and "KillWiat" in wrong.err
    assert " up " not in cluster.berth(f"status --dir {folder}", check=False).out
    with open(extra, "w") as f:
        f.write("KillWait=9\n")
    up(cluster, folder, f"--nodes 1 --conf {extra}")
    assert re.search(r"^KillWait\s+= 9 sec$", cluster.out(f"SLURM_CONF={folder}/etc/slurm.conf scontrol show config"), re.M)


def test_files_of_others_are_neither_taken_over_nor_removed(cluster, folder):
    os.makedirs(f"{folder}/log")
    refused = up(cluster, folder, check=False)
    assert refused.rc == 1 and f"{folder}/log exists" in refused.err and os.listdir(folder) == ["log"]
    os.rename(f"{folder}/log", f"{folder}/mine")
    up(cluster, folder)
    assert "are kept" in cluster.out(f"berth down --dir {folder} --purge")
    assert os.listdir(folder) == ["mine"]


def mount_of(folder):
    with open("/proc/mounts") as f:
        return [line.split()[2] for line in f if line.split()[1] == folder]


def test_nodes_are_diskless_where_mounting_is_permitted(cluster, folder):
    """Their spools are in memory from the first start to the purge; a cluster that goes down and comes up finds them as they were."""
    if os.geteuid() or subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], check=False).returncode:
        pytest.skip("mounting a tmpfs is not permitted here")
    up(cluster, folder)
    assert mount_of(f"{folder}/spool") == ["tmpfs"]
    with open(f"{folder}/spool/mark", "w"):
        pass
    cluster.berth(f"down --dir {folder}")
    up(cluster, folder)
    assert mount_of(f"{folder}/spool") == ["tmpfs"] and os.path.exists(f"{folder}/spool/mark")
    cluster.berth(f"down --dir {folder} --purge")
    assert not mount_of(f"{folder}/spool") and not os.path.exists(folder)


def test_several_clusters_at_once(cluster, folder):
    started = [subprocess.Popen(["berth", "up", "--dir", f"{folder}{i}", "--nodes", "1", "--gpus", "0"], env=cluster.env(), stdout=subprocess.PIPE) for i in range(3)]
    try:
        assert [s.wait(60) for s in started] == [0, 0, 0]
        for i in range(3):
            assert cluster.out(f"SLURM_CONF={folder}{i}/etc/slurm.conf srun -n1 hostname") == "node-1"
        cluster.berth(f"kill --dir {folder}0 node-1")
        assert cluster.out("srun -w node-1 hostname") == "node-1"
    finally:
        for i in range(3):
            cluster.berth(f"down --dir {folder}{i} --purge", check=False)
    assert not os.path.exists(f"{folder}0")


def test_ready_in_two_seconds(cluster, folder):
    assert up(cluster, folder, "--nodes 4").seconds < 2


def test_what_the_caller_has_does_not_matter(cluster, folder, user):
    """A tight file mode mask, no HOME, an open pipe: others can use the cluster and the pipe ends."""
    cluster.run(f"umask 077; exec 9>&1; env -u HOME berth up --dir {folder} --nodes 1 --gpus 0", timeout=20)
    assert cluster.out(f"SLURM_CONF={folder}/etc/slurm.conf srun hostname", user=user, cwd="/tmp") == "node-1"


def test_a_cluster_belongs_to_its_user(cluster, user):
    if os.geteuid():
        pytest.skip("needs root, to be somebody else")
    for command in ("down", "kill node-1", "up", "start node-1"):
        result = cluster.berth(f"{command} --dir {cluster.home}", user=user, check=False)
        assert result.rc == 1 and "belongs to user root" in result.err, (command, result)
    assert cluster.run("berth status").rc == 0


def test_installed_copy_works(cluster, folder):
    there = os.path.join(cluster.work, "installed")
    build = os.environ.get("BERTH_BUILD", BUILD)
    cluster.run(["env", f"DESTDIR={there}", "meson", "install", "-C", build, "--no-rebuild", "--quiet"])
    prefix = next(root for root, folders, _ in os.walk(there) if {"bin", "sbin"} <= set(folders))
    assert {"berth", "sacct", "salloc", "sbatch", "scancel", "scontrol", "sdiag", "sinfo", "squeue", "srun"} <= set(os.listdir(f"{prefix}/bin"))
    assert {"sackd", "slurmctld", "slurmd", "slurmdbd", "slurmstepd"} <= set(os.listdir(f"{prefix}/sbin"))
    env = dict(PATH=f"{prefix}/bin:/usr/bin:/bin", BERTH_DIR=folder)
    cluster.run("berth up --nodes 2 --gpus 0", env=env)
    seen = cluster.out('eval "$(berth env)"; command -v slurmd; srun -N2 hostname', env=env).split()
    assert seen[0] == f"{prefix}/sbin/slurmd" and sorted(seen[1:]) == ["node-1", "node-2"]


def in_poor_namespace(user, argv, env):
    """Run argv in a user namespace with all users, where no further namespaces may be made (sysctl user.max_*_namespaces is 0 in it).
    Exit status 99: that first one could not be made."""
    libc = ctypes.CDLL(None, use_errno=True)
    mapped, go = os.pipe(), os.pipe()

    def enter():
        if libc.unshare(NEWUSER):
            os.write(mapped[1], b"0")
            os._exit(99)
        os.write(mapped[1], str(os.getpid()).encode())
        os.read(go[0], 1)
        for kind in ("user", "mnt", "uts"):
            with open(f"/proc/sys/user/max_{kind}_namespaces", "w") as f:
                f.write("0")
        if user != "root":
            pw = pwd.getpwnam(user)
            os.setgroups([])
            os.setgid(pw.pw_gid)
            os.setuid(pw.pw_uid)

    pid = os.fork()
    if not pid:
        child = int(os.read(mapped[0], 16))
        for name in ("uid_map", "gid_map") if child else ():
            with open(f"/proc/{child}/{name}", "w") as f:
                f.write("0 0 4294967295")
        os.write(go[1], b"x")
        os._exit(0)
    try:
        return subprocess.run(argv, preexec_fn=enter, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, cwd="/tmp")
    finally:
        os.waitpid(pid, 0)
        for fd in (*mapped, *go):
            os.close(fd)


@pytest.mark.parametrize("who", ["root", "ordinary"])
def test_works_without_namespaces_and_says_what_is_missing(cluster, user, who):
    if os.geteuid():
        pytest.skip("needs root, to forbid namespaces")
    name = user if who == "ordinary" else "root"
    home = os.path.join(cluster.work, f"poor-{who}")
    script = """berth up --nodes 2 --gpus 0; eval "$(berth env)"
        trap 'berth down --purge' EXIT
        echo "$(srun -N2 --label printenv SLURMD_NODENAME | sort | tr '\\n' ' ')"
        srun -N2 printenv MASTER_ADDR
        job=$(sbatch --parsable -w node-1 -o /dev/null --wrap '[ "$SLURM_RESTART_COUNT" ] || sleep 312')
        until pgrep -f '^sleep 312' >/dev/null; do sleep 0.05; done; sleep 1
        berth kill node-1; pgrep -f '^sleep 312' && echo "it lives"
        berth start node-1
        for i in $(seq 200); do scontrol show job $job | grep -q JobState=COMPLETED && break; sleep 0.1; done
        scontrol show job $job | grep -o 'JobState=[A-Z]*\\|Restarts=.'"""
    done = in_poor_namespace(name, ["bash", "-c", script], dict(cluster.env(), BERTH_DIR=home))
    if done.returncode == 99:
        pytest.skip("not even this test may make a user namespace (as in a chroot)")
    assert "hostname stays that of this machine" in done.stderr and "sysctl user.max_user_namespaces" in done.stderr, done
    assert done.stdout.splitlines().count("127.0.1.1") == 2, done
    assert "0: node-1 1: node-2" in done.stdout and "it lives" not in done.stdout, done
    assert "JobState=COMPLETED" in done.stdout and "Restarts=1" in done.stdout, done
    assert not os.path.exists(home)
