"""MPI (srun --mpi): PMI-1 and PMI-2 served by slurmstepd, PMIx by its helper, with Debian's MPICH and Open MPI where they are installed (R40)."""
import os
import shutil
import subprocess

import pytest

import conftest

CLUSTER = dict(nodes=4, cpus=8, gpus=0, extra_conf="TreeWidth=2\n")   # node 3 hangs below node 1: frames are handed on
HERE = os.path.dirname(os.path.abspath(__file__))
PMI = f"/usr/bin/python3 {HERE}/pmi_wire.py"


def ring(cluster, kind):
    """The test program, built with this MPI."""
    mpicc = shutil.which(f"mpicc.{kind}")
    if not mpicc:
        pytest.skip(f"mpicc.{kind} is not installed")
    program = os.path.join(cluster.work, f"ring-{kind}")
    if not os.path.exists(program):
        subprocess.run([mpicc, "-O1", "-o", program, f"{HERE}/mpi/ring.c"], check=True)
    return program


@pytest.fixture(params=[("pmi2", "mpich"), ("pmix", "openmpi")], ids=lambda p: p[1])
def mpi(request, cluster):
    if request.param[0] == "pmix" and not os.path.exists(f"{conftest.BUILD}/sbin/slurmstepd-pmix"):
        pytest.skip("built without libpmix")
    return request.param[0], ring(cluster, request.param[1])


@pytest.mark.parametrize("shape", ["-N2 --ntasks-per-node=4", "-N4 --ntasks-per-node=2 -m cyclic", "-N1 -n8", "-N4 -n5"])
def test_ring_and_sum(cluster, mpi, shape):
    kind, program = mpi
    out = cluster.run(f"srun --mpi={kind} {shape} {program}").out
    size = 5 if "-n5" in shape else 8
    lines = sorted(out.splitlines(), key=lambda x: int(x.split()[1]))
    assert [x.split()[1:4] for x in lines] == [[str(r), "of", str(size)] for r in range(size)]
    assert f"token {1000 + size - 1}" in lines[0]
    assert all(x.endswith(f"sum {size * (size - 1) // 2}") for x in lines)


@pytest.mark.parametrize("where", [("", ""), ("-w node-1", "-w node-[2-3]"), ("-w node-1", "-w node-[1-2]")], ids=["any", "apart", "shared"])
def test_components_are_one_world(cluster, mpi, where):
    """The components of a heterogeneous step: ranks of the second follow those of the first, in one MPI_COMM_WORLD, whether or not they share a node."""
    kind, program = mpi
    lines = cluster.run(f"srun --mpi={kind} {where[0]} -N1 -n2 {program} : {where[1]} -N2 -n3 {program}").out.splitlines()
    assert sorted(x.split()[1] + "/" + x.split()[3] for x in lines) == [f"{r}/5" for r in range(5)]
    assert all(x.endswith("sum 10") for x in lines)


def test_abort_ends_the_step(cluster, mpi):
    kind, program = mpi
    result = cluster.run(f"srun --mpi={kind} -N2 --ntasks-per-node=2 {program} abort", check=False)
    assert result.rc != 0
    assert "DUE TO TASK FAILURE ***" in result.err and "Force Terminated StepId=" in result.err
    assert "has died" not in result.err


def test_nothing_is_left(cluster, mpi):
    kind, program = mpi
    cluster.run(f"srun --mpi={kind} -N2 -n2 {program}")
    cluster.wait("no folder of PMIx left", lambda: not cluster.out("ls -d $BERTH_DIR/spool/*/pmix.* 2>/dev/null || true"))


def test_mpi4py(cluster):
    if subprocess.run(["/usr/bin/python3", "-c", "import mpi4py"], check=False).returncode:
        pytest.skip("python3-mpi4py is not installed")
    out = cluster.run("srun --mpi=pmix -N2 --ntasks-per-node=4 /usr/bin/python3 -c 'from mpi4py import MPI; c = MPI.COMM_WORLD; print(c.rank, c.allreduce(c.rank))'").out
    assert sorted(out.split("\n")[:-1]) == [f"{r} 28" for r in range(8)]


def test_pmi1_wire(cluster):
    """Answers as the reference's, recorded with the same requests."""
    out = cluster.run(f"srun --mpi=pmi2 -N2 -n2 {PMI} 1 ask 'cmd=get_maxes' 'cmd=get_appnum' 'cmd=get_universe_size' 'cmd=put kvsname=x key=aRANK value=v RANK' "
                      "'cmd=barrier_in' 'cmd=get kvsname=x key=aNEXT' 'cmd=get kvsname=x key=zz' 'cmd=get kvsname=x key=PMI_process_mapping' 'cmd=barrier_in'").out.splitlines()
    assert [x[2:] for x in out if x.startswith("0 ")] == [
        "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024", "cmd=appnum rc=0 appnum=-1", "cmd=universe_size rc=0 size=2", "cmd=put_result rc=0",
        "cmd=barrier_out rc=0", "cmd=get_result rc=0 value=v 1", "cmd=get_result rc=1", "cmd=get_result rc=0 value=(vector,(0,2,1))", "cmd=barrier_out rc=0"]
    assert "1 cmd=get_result rc=0 value=v 0" in out
    assert out.count("cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1") == 2 and out.count("cmd=finalize_ack rc=0") == 2


def test_pmi1_names(cluster):
    out = cluster.run(f"srun --mpi=pmi2 -N2 -n2 bash -c 'if [ $PMI_RANK = 1 ]; then {PMI} 1 ask \"cmd=publish_name service=s port=p q\" \"cmd=publish_name service=s port=x\" "
                      "\"cmd=lookup_name service=s\" \"cmd=unpublish_name service=s\" \"cmd=lookup_name service=s\"; fi'").out.splitlines()
    assert [x[2:] for x in out if x.startswith("1 ")] == ["cmd=publish_result info=ok", "cmd=publish_result info=fail", "cmd=lookup_result info=ok port=p q",
                                                          "cmd=unpublish_result info=ok", "cmd=lookup_result info=fail"]


def test_pmi2_wire(cluster):
    out = cluster.run(f"srun --mpi=pmi2 -N2 -n2 {PMI} 2 ask 'cmd=fullinit;pmirank=RANK;threaded=FALSE;' 'cmd=info-getjobattr;key=PMI_process_mapping;' "
                      "'cmd=info-getjobattr;key=universeSize;' 'cmd=kvs-put;key=aRANK;value=b;;=RANK;' 'cmd=kvs-fence;thrid=5;' 'cmd=kvs-get;jobid=;srcid=-1;key=aNEXT;' "
                      "'cmd=kvs-get;jobid=;srcid=-1;key=zz;' 'cmd=info-putnodeattr;key=n;value=1;' 'cmd=info-getnodeattr;key=n;wait=TRUE;'").out.splitlines()
    assert [x[2:] for x in out if x.startswith("0 ")] == [
        "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=0;size=2;appnum=-1;debugged=FALSE;pmiverbose=FALSE;",
        "cmd=info-getjobattr-response;rc=0;found=TRUE;value=(vector,(0,2,1));", "cmd=info-getjobattr-response;rc=0;found=TRUE;value=2;",
        "cmd=kvs-put-response;rc=0;", "cmd=kvs-fence-response;thrid=5;rc=0;", "cmd=kvs-get-response;rc=0;found=TRUE;value=b;;=1;",
        "cmd=kvs-get-response;rc=0;found=FALSE;", "cmd=info-putnodeattr-response;rc=0;", "cmd=info-getnodeattr-response;rc=0;found=TRUE;value=1;"]


def test_large_exchange(cluster):
    """A megabyte from each of four nodes through the tree."""
    put = " ".join(f"'cmd=put kvsname=x key=k{i}.RANK value={'v' * 1000}'" for i in range(100))
    out = cluster.run(f"srun --mpi=pmi2 -N4 -n4 {PMI} 1 ask {put} cmd=barrier_in 'cmd=get kvsname=x key=k99.NEXT'", timeout=60).out
    assert out.count("cmd=get_result rc=0 value=" + "v" * 1000) == 4


def test_spawn(cluster):
    out = cluster.run(f"srun --mpi=pmi2 -n1 {PMI} 1 spawn").out
    assert "parent cmd=spawn_result rc=0 errcodes=0,0" in out
    assert "child 0 2 cmd=get_result rc=0 value=port-7" in out and "child 1 2 cmd=get_result rc=0 value=port-7" in out


def test_garbage_hurts_nobody(cluster):
    assert "closed True" in cluster.run(f"srun --mpi=pmi2 -n1 {PMI} 1 garbage", check=False).out
    assert cluster.run("srun -n1 echo well").out == "well\n"


@pytest.mark.parametrize("lib", ["pmi", "pmi2"])
def test_client_libraries(cluster, lib):
    """Programs that load ours, over two nodes and alone."""
    program, folder = os.path.join(cluster.work, lib), conftest.pmi_folder()
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-I", f"{conftest.ROOT}/include", "-o", program, f"{HERE}/mpi/pmi{'1' if lib == 'pmi' else '2'}.c", "-L", folder,
                    f"-l{lib}", f"-Wl,-rpath,{folder}"], check=True)
    out = sorted(cluster.run(f"srun --mpi=pmi2 -N2 --ntasks-per-node=2 {program}").out.splitlines())
    if lib == "pmi":
        assert out == [f"{r} of 4 clique 2 has value of {(r + 1) % 4} and 4 pairs" for r in range(4)]
        assert cluster.run(program).out == "0 of 1 clique 1 has value of 0 and 1 pairs\n"
    else:
        assert out == [f"{r} of 4 has value;of={(r + 1) % 4} (vector,(0,2,2))" for r in range(4)]
        assert cluster.run(program).out == "0 of 1 has value;of=0 \n"


def test_kinds(cluster):
    listed = cluster.run("srun --mpi=list")
    assert listed.out.splitlines()[0] == "MPI plugin types are..." and listed.out.split()[4:] == ["none", "pmi2", "pmix"]
    wrong = cluster.run("srun --mpi=foo true", check=False)
    assert wrong.rc == 1 and wrong.err.splitlines() == ["srun: error: MPI: Cannot create context for mpi/foo", "srun: error: MPI: Unable to load any plugin",
                                                        "srun: error: Invalid MPI type 'foo', --mpi=list for acceptable types"]
    assert "PMI" not in cluster.run("srun --mpi=none -n1 env").out
    assert {x.split("=")[0] for x in cluster.run("srun --mpi=pmi2 -n1 env").out.splitlines() if "PMI" in x or "MPI_TYPE" in x} >= {
        "PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_JOBID", "SLURM_MPI_TYPE"}


def test_a_task_that_dies_in_a_fence(cluster, mpi):
    """The others wait for it, as in the reference, until --kill-on-bad-exit ends the step."""
    kind, program = mpi
    for how in ("kill -9 $$", "exit 7"):
        done = cluster.run(f"srun -K -N2 --ntasks-per-node=2 --mpi={kind} bash -c 'if [ $SLURM_PROCID = 1 ]; then {how}; fi; exec {program}'", check=False)
        assert done.rc and "task 1: " in done.err and "Terminating StepId=" in done.err, done
    cluster.wait("no step is left", lambda: cluster.out("squeue -h -s") == "")
    cluster.wait("no folder of PMIx left", lambda: not cluster.out("ls -d $BERTH_DIR/spool/*/pmix.* 2>/dev/null || true"))


def test_32_ranks_on_4_nodes(cluster, mpi):
    kind, program = mpi
    out = cluster.run(f"srun --mpi={kind} -N4 --ntasks-per-node=8 {program}").out.splitlines()
    assert sorted(int(x.split()[1]) for x in out) == list(range(32)) and all(x.endswith("sum 496") for x in out)


def test_environment_of_pmix(cluster):
    if not os.path.exists(f"{conftest.BUILD}/sbin/slurmstepd-pmix"):
        pytest.skip("built without libpmix")
    rows = cluster.run("srun --mpi=pmix -N2 --ntasks-per-node=2 bash -c 'echo $PMIX_RANK $SLURM_PROCID $PMIX_NAMESPACE $PMIX_HOSTNAME $SLURMD_NODENAME $SLURM_MPI_TYPE $SLURM_JOB_ID'").out
    for rank, task, space, host, node, kind, job in (x.split() for x in rows.splitlines()):
        assert rank == task and space == f"slurm.pmix.{job}.0" and host == node and kind == "pmix"
    assert len(rows.splitlines()) == 4


def test_mpi_conf(cluster):
    """Where its folders are, variables for its programs; keys of other servers of PMIx change nothing; what does not work is refused."""
    if not os.path.exists(f"{conftest.BUILD}/sbin/slurmstepd-pmix"):
        pytest.skip("built without libpmix")
    path, base = f"{cluster.home}/etc/mpi.conf", f"{cluster.work}/pmix"
    os.makedirs(base)
    os.chmod(base, 0o1777)
    try:
        with open(path, "w") as f:
            f.write(f"# PMIx\nPMIxCliTmpDirBase={base}\npmixenv=PMIX_MCA_gds=hash;SITE_OF=mpi.conf\nPMIxTimeout=60\nPMIxDirectConnUCX=true\nPMIxCollFence=ring\nPMIxDebug=1\n")
        cluster.run("scontrol reconfigure")
        cluster.wait("it is used", lambda: cluster.run("srun --mpi=pmix -N4 -n4 printenv SITE_OF", check=False).out.split() == ["mpi.conf"] * 4)
        shown = cluster.run("srun --mpi=pmix -N2 -n2 bash -c 'echo $PMIX_SERVER_TMPDIR $SLURM_JOB_ID $SLURMD_NODENAME'").out
        for folder, job, node in (x.split() for x in shown.splitlines()):
            assert folder == f"{base}/pmix.{job}.0.{node}"
        cluster.wait("nothing is left there", lambda: not os.listdir(base))
        assert "SITE_OF" not in cluster.run("srun -n1 env").out
        with open(path, "w") as f:
            f.write(f"PMIxCliTmpDirBase={base}/not\n")
        cluster.run("scontrol reconfigure")
        wrong = cluster.wait("it is used", lambda: (r := cluster.run("srun --mpi=pmix -n1 true", check=False)).rc and r)
        assert f"cannot make {base}/not/pmix." in wrong.err and "PMIxCliTmpDirBase in mpi.conf" in wrong.err
        for line, word in (("PMIxShareServerTopology=true", "does not work yet"), ("PMIxTimeout=soon", "PMIxTimeout"), ("PMIxFoo=1", "PMIxFoo")):
            with open(path, "w") as f:
                f.write(f"\n{line}\n")
            refused = cluster.run("slurmd -C >/dev/null; slurmctld -D -t 2>&1 || scontrol reconfigure 2>&1", check=False)
            assert f"{path}:2:" in refused.out and word in refused.out, refused
    finally:
        os.unlink(path)
        cluster.run("scontrol reconfigure")
    cluster.wait("as before", lambda: cluster.run("srun --mpi=pmix -n1 true", check=False).rc == 0)


LAUNCHERS = [("openmpi", "mpirun.openmpi"), ("mpich", "mpiexec.hydra -bootstrap slurm"), ("mpich", "mpiexec.hydra")]


@pytest.mark.parametrize("kind,launcher", LAUNCHERS, ids=[x[1] for x in LAUNCHERS])
def test_launchers_of_the_libraries(cluster, kind, launcher):
    """They read SLURM_* for the nodes and start their daemons by srun: so a site's old scripts go on working."""
    if not shutil.which(launcher.split()[0]):
        pytest.skip(f"{launcher} is not installed")
    program = ring(cluster, kind)
    env = dict(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    lines = sorted(cluster.run(f"salloc -Q -N2 --ntasks-per-node=4 {launcher} {program}", env=env).out.splitlines(), key=lambda x: int(x.split()[1]))
    assert [x.split()[1:4] for x in lines] == [[str(r), "of", "8"] for r in range(8)]
    assert len({x.split()[5] for x in lines[:4]}) == 1 and len({x.split()[5] for x in lines}) == 2
    assert all(x.endswith("sum 28") for x in lines)
    cluster.wait("no job is left", lambda: cluster.out("squeue -h -o %i") == "")
