"""Figures of running steps: sstat, and what of them ends in accounting. Sentences on stderr are those of the reference 26.05.5."""
import os
import re

import pytest

CLUSTER = dict(nodes=2, cpus=8, gpus=0)

# Task N holds 20 + 20 N MB more than an idle one, and has written N + 1 MB.
WORK = """
import os, time
n = int(os.environ["SLURM_PROCID"])
x = bytearray((20 + 20 * n) << 20)
with open("/dev/null", "wb") as f:
    for i in range(n + 1):
        f.write(b"x" * 1000000)
end = time.process_time() + 0.3
while time.process_time() < end:
    pass
open(f"ready.{n}", "w").close()
while not os.path.exists("go"):
    time.sleep(0.05)
"""


def rows(text):
    """-P output as dicts."""
    lines = text.splitlines()
    return [dict(zip(lines[0].split("|"), line.split("|"))) for line in lines[1:]]


def kib(text):
    value, unit = re.fullmatch(r"([\d.]+)([KMG]?)", text).groups()
    return float(value) * {"": 1 / 1024, "K": 1, "M": 1024, "G": 1024 * 1024}[unit]


@pytest.fixture(scope="module")
def job(cluster):
    """A running job with a step of four tasks on two nodes, all of which have done their work and wait."""
    for name in ["go"] + [f"ready.{n}" for n in range(4)]:
        if os.path.exists(f"{cluster.work}/{name}"):
            os.remove(f"{cluster.work}/{name}")
    with open(f"{cluster.work}/work.py", "w") as f:
        f.write(WORK)
    job = cluster.submit("-N2 -n4 --acctg-freq=task=1 --wrap 'srun -n4 python3 work.py'")
    cluster.wait("tasks have worked", lambda: all(os.path.exists(f"{cluster.work}/ready.{n}") for n in range(4)))
    return job


def test_figures_while_running(cluster, job):
    r = rows(cluster.out(f"sstat -P -j {job}"))
    assert len(r) == 1
    r = r[0]
    assert r["JobID"] == f"{job}.0" and r["NTasks"] == "4"
    assert (r["MaxRSSNode"], r["MaxRSSTask"]) == ("node-2", "3") and (r["MaxVMSizeNode"], r["MaxVMSizeTask"]) == ("node-2", "3")
    assert (r["MaxDiskWriteNode"], r["MaxDiskWriteTask"]) == ("node-2", "3")
    assert 80 * 1024 < kib(r["MaxRSS"]) < 140 * 1024 and 50 * 1024 < kib(r["AveRSS"]) < kib(r["MaxRSS"]) <= kib(r["MaxVMSize"]) + 4096
    assert 4000000 <= kib(r["MaxDiskWrite"]) * 1024 < 4100000 and 2500000 <= kib(r["AveDiskWrite"]) * 1024 < 2600000
    assert r["AllocTRES"].startswith("cpu=4,mem=") and r["ReqCPUFreqMin"] == "Unknown"
    assert re.fullmatch(r"cpu=00:00:0\d,energy=0,fs/disk=\d+,mem=[\d.]+[KM],pages=\d+,vmem=[\d.]+[KM]", r["TRESUsageInTot"])
    assert re.fullmatch(r"cpu=\d,fs/disk=\d,mem=3,pages=\d,vmem=3", r["TRESUsageInMaxTask"])
    assert re.fullmatch(r"cpu=node-\d,energy=node-\d,fs/disk=node-\d,mem=node-1,pages=node-\d,vmem=node-1", r["TRESUsageInMinNode"])
    assert r["TRESUsageOutMaxTask"] == "fs/disk=3" and r["TRESUsageOutMin"].startswith("energy=0,fs/disk=100")
    exact = rows(cluster.out(f"sstat -P --noconvert -o JobID,MaxRSS,TRESUsageInMax -j {job}"))[0]
    assert f"mem={exact['MaxRSS']}," in exact["TRESUsageInMax"] and int(exact["MaxRSS"]) % 4096 == 0


def test_which_steps(cluster, job):
    assert cluster.out(f"sstat -nP -o jobid -j {job}") == f"{job}.0"
    assert sorted(cluster.out(f"sstat -anP -o jobid -j {job}").split()) == [f"{job}.0", f"{job}.batch"]
    assert cluster.out(f"sstat -nP -o jobid,ntasks -j {job}.batch") == f"{job}.batch|1"
    assert cluster.out(f"sstat -np -o jobid,nodelist {job}.0") == f"{job}.0|node-[1-2]|"
    sluid = cluster.out(f"sstat -nP -o sluid -j {job}")
    assert sluid and cluster.out(f"sstat -nP -o jobid -j {sluid}") == f"{job}.0"
    assert cluster.run(f"sstat -n -o JobID%5,NTasks%-4 -j {job}.0").out == f"{job}.0".rjust(5) + " 4    \n"
    one, two = cluster.out(f"sstat -nPi -j {job}.0").splitlines()
    assert one.split("|")[:2] == [f"{job}.0", "node-1"] and two.split("|")[:2] == [f"{job}.0", "node-2"]
    pids = [int(p) for line in (one, two) for p in line.split("|")[2].split(",")]
    assert all(b"work.py" in open(f"/proc/{p}/cmdline", "rb").read() for p in pids) and len(pids) == 4


def test_of_others(cluster, job, user):
    done = cluster.run(f"sstat -nP -j {job}", user=user)
    assert done.out == "" and done.rc == 0
    assert done.err.splitlines() == [
        "sstat: error: slurm_job_step_stat: there was an error with the request to node-1 rc = Invalid user id",
        "sstat: error: slurm_job_step_stat: there was an error with the request to node-2 rc = Invalid user id",
        f"sstat: error: problem getting step_layout for StepId={job}.0: Invalid user id"]


def test_errors(cluster, job):
    held = cluster.submit("-H --wrap true")
    for args, rc, text in (
            ("", 1, "sstat: error: You didn't give me any jobs to stat."),
            ("-j 99999", 0, "sstat: error: couldn't get steps for JobId=99999"),
            (f"-j {held}", 0, f"sstat: error: No steps running for JobId={held}"),
            (f"-j {job}.7", 0, f"sstat: error: StepId={job}.7 not found running."),
            (f"-j {job}.extern", 0, f"sstat: error: StepId={job}.extern not found running."),
            ("-j abc", 1, "sstat: fatal: Bad job/step specified: abc"),
            (f"-j {job} -o foo", 1, 'sstat: error: Invalid field requested: "foo"'),
            ("--foo", 1, "sstat: unrecognized option '--foo'"),
            ("-j", 1, "sstat: option requires an argument -- 'j'")):
        done = cluster.run(f"sstat -n {args}", check=False)
        assert (done.rc, done.err.strip()) == (rc, text), args
    cluster.run(f"scancel {held}")
    assert cluster.run("sstat -e").out.split() == cluster.run("sstat --helpformat").out.split() and len(cluster.run("sstat -e").out.split()) == 53


def test_in_accounting(cluster, job):
    """The end of the step: its peaks, where they were, CPU times. Last of the tests that use the job."""
    live = rows(cluster.out(f"sstat -P --noconvert -j {job}"))[0]
    open(f"{cluster.work}/go", "w").close()
    assert cluster.wait_end(job) == "COMPLETED"
    fields = ("JobID,NTasks,MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,MaxVMSize,MaxVMSizeTask,AveVMSize,MinCPU,MinCPUNode,AveCPU,UserCPU,SystemCPU,TotalCPU,"
              "MaxDiskRead,MaxDiskWrite,MaxDiskWriteTask,MaxDiskWriteNode,AveDiskWrite,TRESUsageInTot,TRESUsageOutMaxTask")
    found = cluster.wait("accounting", lambda: [r for r in rows(cluster.out(f"sacct -P --noconvert -j {job} -o {fields}")) if r["JobID"] == f"{job}.0" and r["MaxRSS"]])
    r = found[0]
    assert int(live["MaxRSS"]) <= int(r["MaxRSS"]) < int(live["MaxRSS"]) + (16 << 20)
    assert (r["MaxRSSNode"], r["MaxRSSTask"], r["MaxVMSizeTask"], r["MaxDiskWriteTask"], r["MaxDiskWriteNode"]) == ("node-2", "3", "3", "3", "node-2")
    assert int(r["AveRSS"]) < int(r["MaxRSS"]) and int(r["AveVMSize"]) < int(r["MaxVMSize"])
    assert r["MaxDiskWrite"] in ("3.81M", "3.82M") and r["AveDiskWrite"] in ("2.38M", "2.39M") and r["TRESUsageOutMaxTask"] == "fs/disk=3"
    assert re.fullmatch(r"00:0\d\.\d{3}", r["UserCPU"]) and float(r["TotalCPU"][3:]) >= 1.2
    assert re.fullmatch(r"00:00:0\d", r["MinCPU"]) and r["MinCPUNode"].startswith("node-")
    whole = rows(cluster.out(f"sacct -P -j {job} -o TotalCPU,MaxRSS"))[0]
    assert float(whole["TotalCPU"][3:]) >= 1.2 and whole["MaxRSS"] == ""


def test_peak_of_a_short_step(cluster):
    """Memory is given back at once, and nothing is sampled so soon: the kernel's own peak tells."""
    job = cluster.submit("-n1 --wrap \"srun -n1 python3 -c 'x = bytearray(150 << 20); del x'\"")
    assert cluster.wait_end(job) == "COMPLETED"
    row = cluster.wait("accounting", lambda: [r for r in rows(cluster.out(f"sacct -P --units=M -j {job} -o JobID,MaxRSS")) if r["JobID"] == f"{job}.0" and r["MaxRSS"]])
    assert 150 < float(row[0]["MaxRSS"].rstrip("M")) < 200


def test_frequency(cluster):
    done = cluster.run("sbatch --acctg-freq=task=0 --wrap true", check=False)
    assert done.rc == 1 and "sbatch: error: Batch job submission failed: Invalid accounting frequency requested" in done.err
    assert cluster.run("sbatch --acctg-freq=100000 --wrap true", check=False).rc == 1
    job = cluster.submit("-o freq.out --acctg-freq=task=7 --wrap 'echo $SLURM_ACCTG_FREQ; srun printenv SLURM_ACCTG_FREQ'")
    assert cluster.wait_end(job) == "COMPLETED" and cluster.read("freq.out").split() == ["task=7", "task=7"]


def configured(cluster, line):
    """One more line in slurm.conf of the daemons, taken over by steps begun from now on."""
    path = f"{cluster.home}/etc/slurm.conf"
    with open(path) as f:
        before = f.read()
    with open(path, "w") as f:
        f.write(before + line + "\n")
    cluster.run("scontrol reconfigure")
    return path, before


def test_over_memory_kill(cluster):
    path, before = configured(cluster, "JobAcctGatherParams=OverMemoryKill\nJobAcctGatherFrequency=1")
    try:
        job = cluster.submit("-n1 --mem=60 -o over.out --wrap \"python3 -c 'import time; x = bytearray(200 << 20); time.sleep(600)'\"")
        assert cluster.wait_end(job) == "OUT_OF_MEMORY"
        assert re.search(rf"StepId={job}.batch exceeded memory limit \(\d+ > {60 << 20} bytes\), being killed", cluster.read("over.out"))
        small = cluster.submit("-n1 --mem=60 --wrap \"python3 -c 'import time; x = bytearray(10 << 20); time.sleep(3)'\"")
        assert cluster.wait_end(small) == "COMPLETED"
    finally:
        with open(path, "w") as f:
            f.write(before)
        cluster.run("scontrol reconfigure")


def test_without_gathering(cluster):
    """jobacct_gather/none: no figures; CPU time at the end is known all the same."""
    path, before = configured(cluster, "")
    with open(path, "w") as f:
        f.write(before.replace("JobAcctGatherType=jobacct_gather/linux", "JobAcctGatherType=jobacct_gather/none"))
    cluster.run("scontrol reconfigure")
    try:
        job = cluster.submit("-n1 --wrap \"python3 -c 'import time\nwhile time.process_time() < 0.2: pass\ntime.sleep(600)'\"")
        cluster.wait_state(job, "RUNNING")
        r = rows(cluster.out(f"sstat -aP -j {job} -o JobID,MaxRSS,AveCPU,TRESUsageInTot"))
        assert r == [{"JobID": f"{job}.batch", "MaxRSS": "", "AveCPU": "", "TRESUsageInTot": ""}]
        cluster.run(f"scancel {job}")
        cluster.wait_end(job)
        row = cluster.wait("accounting", lambda: [r for r in rows(cluster.out(f"sacct -P -j {job} -o JobID,MaxRSS,TotalCPU")) if r["JobID"] == f"{job}.batch"])
        assert row[0]["MaxRSS"] == ""
    finally:
        with open(path, "w") as f:
            f.write(before)
        cluster.run("scontrol reconfigure")
