"""Quick programs (quick/README.md): where a plug-in is needed the full program begins anew, with all that the quick one was given."""
import os
import shutil
import subprocess

import pytest

import conftest

CLUSTER = dict(nodes=1, cpus=2, gpus=0)
SCRIPT = "#!/bin/sh\n#SBATCH --job-name=kept\necho a script of two lines\n"


def names():
    folder = f"{conftest.BUILD}/libexec/berth"
    return sorted(x for x in (os.listdir(folder) if os.path.isdir(folder) else []) if not x.endswith(".p"))


@pytest.fixture(scope="module")
def copies(cluster):
    """The quick programs, with full ones beside them that only say what they were given."""
    if not names():
        pytest.skip("no quick programs were built (musl-gcc is missing)")
    top = f"{cluster.work}/copies"
    os.makedirs(f"{top}/bin")
    os.makedirs(f"{top}/libexec/berth")
    for name in names():
        shutil.copy(f"{conftest.BUILD}/bin/{name}", f"{top}/bin/{name}")
        with open(f"{top}/libexec/berth/{name}", "w") as f:
            f.write('#!/bin/sh\nprintf "<%s>" full "$0" "$@"; echo; echo "$KEPT"; cat\n')
        os.chmod(f"{top}/libexec/berth/{name}", 0o755)
    return top


@pytest.fixture(scope="module")
def with_munge(cluster):
    path = f"{cluster.home}/etc/munge.conf"
    with open(f"{cluster.home}/etc/slurm.conf") as f, open(path, "w") as g:
        g.writelines("AuthType=auth/munge\n" if x.startswith("AuthType") else x for x in f)
    yield path
    os.unlink(path)


def test_they_are_what_they_claim(cluster, copies):
    for name in names():
        quick = subprocess.run(["ldd", f"{conftest.BUILD}/bin/{name}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        full = subprocess.run(["ldd", f"{conftest.BUILD}/libexec/berth/{name}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        assert "not a dynamic executable" in quick and "libc.so.6" in full
        helps = [subprocess.run([f"{conftest.BUILD}/{folder}/{name}", "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout for folder in ("bin", "libexec/berth")]
        assert helps[0] == helps[1] and len(helps[0]) > 100


def test_munge_takes_arguments_environment_and_stdin(cluster, copies, with_munge):
    r = cluster.run([f"{copies}/bin/sbatch", "-J", "a  b", "--hold"], stdin=SCRIPT, env=dict(SLURM_CONF=with_munge, KEPT="as it was"))
    assert r.out == f"<full><{copies}/bin/../libexec/berth/sbatch><-J><a  b><--hold>\nas it was\n{SCRIPT}" and r.err == ""


def test_a_spank_plugin_does(cluster, copies):
    conf = f"{cluster.home}/etc/plugstack.conf"
    with open(conf, "w") as f:
        f.write("optional /nowhere/plugin.so\n")
    r = cluster.run([f"{copies}/bin/sbatch", "--wrap", "true"])
    os.unlink(conf)
    assert r.out.startswith("<full>")


def test_a_user_that_etc_does_not_name(cluster, copies):
    assert cluster.run([f"{copies}/bin/sbatch", "--uid=someone-of-ldap", "--wrap", "true"]).out.startswith("<full>")
    assert cluster.run([f"{copies}/bin/sbatch", "--uid=root", "-H", "--wrap", "true"]).out.startswith("Submitted batch job")


def test_a_preloaded_library_does(cluster, copies):
    assert cluster.run([f"{copies}/bin/sbatch", "--wrap", "true"], env=dict(LD_PRELOAD="/nowhere.so")).out.startswith("<full>")


def test_the_full_program_is_missing(cluster, copies, with_munge):
    os.rename(f"{copies}/libexec", f"{copies}/away")
    r = cluster.run([f"{copies}/bin/sbatch", "--wrap", "true"], env=dict(SLURM_CONF=with_munge), check=False)
    os.rename(f"{copies}/away", f"{copies}/libexec")
    assert r.rc == 1 and r.err == (f"{copies}/bin/sbatch: fatal: cannot run {copies}/bin/../libexec/berth/sbatch, which this needs: No such file or directory; "
                                   "install it again\n")


def test_errors_read_the_same(cluster, copies):
    for args in (["/nowhere/x.sh"], ["--wrap", "true", "--time=x"], ["-o", "x", "/"], ["-w", "x[", "--wrap", "true"], ["-p", "nowhere", "--wrap", "true"]):
        both = [cluster.run([f"{conftest.BUILD}/{folder}/sbatch", *args], check=False) for folder in ("bin", "libexec/berth")]
        assert (both[0].rc, both[0].out, both[0].err) == (both[1].rc, both[1].out, both[1].err) and both[0].rc
