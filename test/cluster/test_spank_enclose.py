"""A plugin that puts tasks into containers (spank/enclose.c, built as the public ones of that kind are), compiled unchanged against our header, on two nodes."""
import os
import subprocess

import pytest

import conftest

CLUSTER = dict(nodes=2, cpus=8, gpus=0, extra_conf="PrologFlags=Contain\n")
HERE = os.path.dirname(os.path.abspath(__file__))
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="slurmd as root")


@pytest.fixture(scope="module")
def image(cluster, user):
    """A folder that is an image, and where roots are made; both the user's."""
    if cluster.run("unshare -Urm true", user=user, check=False).rc:
        pytest.skip("users may not make namespaces here")
    so = f"{cluster.dir}/enclose.so"
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-fPIC", "-shared", "-Wall", "-Werror", "-I", f"{conftest.ROOT}/include", "-o", so, f"{HERE}/spank/enclose.c"], check=True)
    cluster.run("mkdir roots image image/etc image/data; echo image-1 > image/etc/who; printf '#!/bin/sh\\necho entry; exec \"$@\"\\n' > image/etc/rc; chmod 755 image/etc/rc; "
                "mkdir outside; echo from-outside > outside/file", user=user)
    with open(f"{cluster.home}/etc/plugstack.conf", "w") as f:
        f.write(f"required {so} {cluster.work}/roots\n")
    yield f"{cluster.work}/image"
    os.unlink(f"{cluster.home}/etc/plugstack.conf")


def roots(cluster):
    return os.listdir(f"{cluster.work}/roots")


def test_tasks_of_a_node_share_one_container(cluster, image, user):
    done = cluster.run(f"ENCLOSE_NOT=1 srun -N2 --ntasks-per-node=3 --container-image={image} --container-workdir=/etc "
                       "sh -c 'echo $(cat who) $(pwd) $(readlink /proc/self/ns/mnt) $(readlink /proc/self/ns/user) $SLURMD_NODENAME $ENCLOSED ${ENCLOSE_NOT-unset} $(id -u)'", user=user)
    rows = [line.split() for line in done.out.splitlines()]
    uid = cluster.out("id -u", user=user)
    assert len(rows) == 6 and all(r[0:2] == ["image-1", "/etc"] and r[5:] == ["yes", "unset", uid] for r in rows), done
    assert len({(r[2], r[3], r[4]) for r in rows}) == len({r[4] for r in rows}) == len({r[2] for r in rows}) == 2
    assert done.err.splitlines().count(f"enclose: making the root from {image}") == 2
    cluster.wait("no root is left", lambda: roots(cluster) == [])


def test_options_of_all_kinds(cluster, image, user):
    srun = f"srun -N2 -n2 --container-image={image}"
    assert cluster.run(f"{srun} --container-remap-root id -u", user=user).out.split() == ["0", "0"]
    assert cluster.run(f"{srun} --container-mounts={cluster.work}/outside:/data,{cluster.work}/outside:/tmp cat /data/file /tmp/file", user=user).out.split() == ["from-outside"] * 4
    assert sorted(cluster.run(f"{srun} --container-entrypoint cat /etc/who", user=user).out.split()) == ["entry", "entry", "image-1", "image-1"]
    assert cluster.run(f"{srun} --container-entrypoint=/usr/bin/env cat /etc/who", user=user).out.split() == ["image-1"] * 2
    refused = cluster.run(f"{srun} sh -c 'echo x > /etc/new'", user=user, check=False)
    assert refused.rc and "Read-only file system" in refused.err
    # Of one node: two would write the same files at once.
    assert cluster.run(f"srun -N1 -n2 --container-image={image} --container-writable --container-save={cluster.work}/saved sh -c 'echo x > /etc/new.$SLURM_PROCID'", user=user).rc == 0
    cluster.wait("it is saved", lambda: os.path.exists(f"{cluster.work}/saved/etc/new.0") and os.path.exists(f"{cluster.work}/saved/etc/new.1") and roots(cluster) == [])
    home = cluster.run(f"HOME={cluster.work}/outside {srun} --container-mount-home cat /home/file", user=user)
    assert home.out.split() == ["from-outside"] * 2
    shown = cluster.run("srun --help").out
    assert "--container-mounts=SRC:DST[,SRC:DST...]" in shown and "[enclose] mounts in the container." in shown


def test_directives_and_steps(cluster, image, user):
    """Options of sbatch reach the steps, not the script's own root; a named container is there for the next step."""
    with open(f"{cluster.work}/job.sh", "w") as f:
        f.write(f"#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=2\n#SBATCH --container-image={image} --container-writable\n#SBATCH --container-name=kept\n"
                "[ ! -e /etc/who ] && echo script-outside\nsrun -n2 -N2 sh -c 'echo step-1 > /etc/left'\nsrun -n4 cat /etc/left\n"
                "unset ${!SLURM_SPANK__*}\nsrun -n2 -N2 --container-name=kept --container-workdir=/etc cat left\nsrun -N1 -n1 sh -c 'test -e /etc/who || echo step-outside'\n")
    job = cluster.submit("-o job.out job.sh", user=user)
    assert cluster.wait_end(job) == "COMPLETED"
    out = open(f"{cluster.work}/job.out").read().splitlines()
    assert [x for x in out if not x.startswith("enclose:")] == ["script-outside"] + ["step-1"] * 6 + ["step-outside"], out
    assert sorted(x.split(".", 1)[1] for x in roots(cluster)) == ["0.kept", "1.kept"]
    cluster.run("rm -rf roots/*")
    assert cluster.run(f"salloc -Q -N2 -n2 --container-image={image} srun cat /etc/who", user=user).out.split() == ["image-1"] * 2


def test_what_fails_is_said_and_leaves_nothing(cluster, image, user):
    done = cluster.run(f"srun -N2 -n2 --container-image={image}-not true", user=user, check=False)
    assert done.rc == 1 and done.err.count("slurmstepd: error: enclose: the root ") == 2
    done = cluster.run(f"srun --container-image={image} --container-mounts=/a true", user=user, check=False)
    assert done.rc == 255 and 'srun: error: enclose: --container-mounts: "/a" is not SRC:DST' in done.err.splitlines()
    done = cluster.run(f"srun --container-image={image} --container-mounts=/no/such:/data true", user=user, check=False)
    assert done.rc == 1 and "slurmstepd: error: enclose: cannot go into" in done.err
    done = cluster.run("sbatch --wrap true --container-mount-home --no-container-mount-home", user=user, check=False)
    assert done.rc == 1 and "sbatch: error: enclose: --container-mount-home and --no-container-mount-home exclude each other" in done.err
    cluster.wait_idle()
    cluster.run("rm -rf roots/*")
    assert cluster.run("srun -N2 -n2 sh -c 'test ! -e /etc/who && echo outside'", user=user).out.split() == ["outside"] * 2


def test_a_killed_task_ends_the_container(cluster, image, user):
    done = cluster.run(f"srun -N2 -n4 -K --container-image={image} sh -c '[ $SLURM_PROCID = 1 ] && kill -9 $$; exec sleep 300'", user=user, check=False)
    assert done.rc in (137, 143) and "task 1: Killed" in done.err
    cluster.wait("no root is left", lambda: roots(cluster) == [])
    cluster.wait_idle()
