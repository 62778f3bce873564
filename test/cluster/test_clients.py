"""The programs that people run on top of Slurm: the command lines they send, as they send them, and what they read with their own expressions.

Each test names the program whose command lines these are: submitit, snakemake, Nextflow, torchx, batchtools, ClusterShell, gcm, AWS ParallelCluster,
Slurm-web's exporters, jobstats, nvidia-resiliency-ext, NeMo-Run. Where such a program is packaged (snakemake 7, ClusterShell 1.9.1), it was run by hand
on Berth and on the reference with equal results."""
import json
import re

import pytest

CLUSTER = dict(nodes=3, cpus=8, gpus=4)
LONG = "while [ ! -e clients-go ]; do sleep 0.2; done"


@pytest.fixture(scope="module")
def jobs(cluster):
    """One of each kind: running on two nodes, a held array, failed, an array that ended."""
    found = dict(run=cluster.submit(f"-J cli -N2 -n2 -c2 --mem=100 --gres=gpu:2 -t 10 --comment=hello -o /dev/null --wrap 'srun sleep 600 & {LONG}'"),
                 held=cluster.submit("-J arr -a 0-9%4 -H -t 5 -o /dev/null --wrap true"),
                 failed=cluster.submit("-J fin -t 5 -o fin-%j.out --comment=world --wrap 'srun -n1 hostname; exit 3'"),
                 array=cluster.submit("-a 0-1 -J fina -o /dev/null --wrap 'exit $SLURM_ARRAY_TASK_ID'"))
    cluster.wait_state(found["run"], "RUNNING")
    cluster.wait_end(found["failed"])
    cluster.wait("array over", lambda: not cluster.out(f"squeue -h -j {found['array']} -o %i || true"))
    cluster.wait("all in accounting", lambda: len(cluster.out(f"sacct -nXP -o state -j {found['failed']},{found['array']} -s F,CD").split()) == 3)
    cluster.wait("its step", lambda: cluster.out(f"squeue -h -s -j {found['run']} -o %i | grep '[.]0$' || true"))
    return found


def accounted(cluster, job, state):
    cluster.wait("in accounting", lambda: state in cluster.out(f"sacct -X -n -P -o state -j {job}"))


def test_submitit_sends_and_reads(cluster, jobs):
    script = "#!/bin/bash\n\n# Parameters\n#SBATCH --array=0-2%2\n#SBATCH --cpus-per-task=1\n#SBATCH --error=%A_%a_0_log.err\n#SBATCH --gpus-per-node=1\n" \
             "#SBATCH --job-name=submitit\n#SBATCH --mem=1GB\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=1\n#SBATCH --open-mode=append\n" \
             "#SBATCH --output=%A_%a_0_log.out\n#SBATCH --signal=USR2@90\n#SBATCH --time=5\n#SBATCH --wckey=submitit\n\n" \
             "# command\nexport SUBMITIT_EXECUTOR=slurm\nsrun --unbuffered --output %A_%a_%t_log.out --error %A_%a_%t_log.err /usr/bin/env\n"
    cluster.run("cat > submission.sh", stdin=script)
    job = re.search(r"job (?P<id>[0-9]+)", cluster.out("sbatch submission.sh")).group("id")
    cluster.wait("ended", lambda: cluster.out(f"sacct -nXP -o State -j {job}").split() == ["COMPLETED"] * 3)
    lines = cluster.out(f"sacct -o JobID,State,NodeList --parsable2 -j {job} -j {jobs['run']}").splitlines()
    assert lines[0].split("|") == ["JobID", "State", "NodeList"]
    rows = {line.split("|")[0]: line.split("|")[1:] for line in lines[1:]}
    ids = [re.match(r"^(?P<main>\d+)(_(?P<arrayed>\d+))?(\.(?P<rest>.*))?$", key) for key in rows]
    assert all(ids) and {m["arrayed"] for m in ids if m["main"] == job} == {"0", "1", "2"}
    assert rows[f"{job}_1"][0] == "COMPLETED" and rows[str(jobs["run"])] == ["RUNNING", "node-[1-2]"]
    env = cluster.read(f"{job}_1_0_log.out")
    assert f"SLURM_ARRAY_JOB_ID={job}\n" in env and "SLURM_LOCALID=0\n" in env and "CUDA_VISIBLE_DEVICES=" in env and "SLURM_NTASKS_PER_NODE=1\n" in env
    assert cluster.run(f"scancel {job} --signal USR2", check=False).rc in (0, 1)


def test_snakemake_submits_and_asks(cluster):
    out = cluster.out("sbatch --job-name 5b3f-uuid -o smk-%j.log --export=ALL --comment rule_a -p main -t 5 --mem 100 --ntasks=1 --cpus-per-task=1 -D . --wrap=\"echo done\" --parsable")
    assert re.fullmatch(r"\d+", out)
    accounted(cluster, out, "COMPLETED")
    text = cluster.out("sacct -X --parsable2 --clusters all --noheader --format=JobIdRaw,State --starttime 2026-01-01T00:00 --endtime now --name 5b3f-uuid")
    assert {entry[0]: entry[1].split(sep=None, maxsplit=1)[0] for entry in (line.split("|") for line in text.splitlines())} == {out: "COMPLETED"}
    assert {x.split("|")[0]: x.split("|")[1] for x in cluster.out(f"sacct -P -n --format=JobIdRaw,State -j {out}").split("\n")} == {out: "COMPLETED", f"{out}.batch": "COMPLETED"}
    assert re.search(r"JobState=(\w+)", cluster.out(f"scontrol show jobid -dd {out}")).group(1) == "COMPLETED"
    row = cluster.out("sacct --name=5b3f-uuid --parsable2 --noheader --format=JobID,JobName,Comment,Elapsed,TotalCPU,NNodes,NCPUS,MaxRSS,ReqMem").splitlines()
    first, batch = (line.split("|") for line in row)
    assert first[1:3] == ["5b3f-uuid", "rule_a"] and first[5:7] == ["1", "1"] and first[8] == "100M"
    assert re.fullmatch(r"(\d+-)?(\d\d:)?\d\d:\d\d(\.\d+)?", batch[4]) and re.fullmatch(r"\d+(\.\d+)?[KMGT]?", batch[7])
    assert cluster.run("sacct -nu root -o Account%256 '|' tail -1", check=False).rc != 0


def test_nextflow_submits_with_stderr_merged(cluster, jobs):
    script = "#!/bin/bash\n#SBATCH -J nf-task_1\n#SBATCH -o /dev/null\n#SBATCH --no-requeue\n#SBATCH --signal B:USR2@30\n#SBATCH -c 1\n#SBATCH -t 01:00:00\n#SBATCH --mem 64M\n#SBATCH -p main\ntrue\n"
    cluster.run("cat > .command.run", stdin=script)
    out = cluster.out("sbatch .command.run 2>&1")
    cluster.wait_end(re.fullmatch(r"Submitted batch job (\d+)", out).group(1))
    states = dict(line.split() for line in cluster.out("squeue --noheader -o '%i %t' -t all -u $(id -un)").splitlines())
    assert states[str(jobs["run"])] == "R" and states[f"{jobs['held']}_[0-9%4]"] == "PD" and states[str(jobs["failed"])] == "F"
    only = cluster.out("squeue --only-job-state -h -t all").splitlines()
    assert [line.split()[0] for line in only if line.split()[1] == "R"] == [str(jobs["run"])]


def test_torchx_and_nemo_read_columns_by_their_header(cluster, jobs):
    assert re.fullmatch(r"slurm \d+\.\d+\.\d+", cluster.out("sbatch --version"))
    header, row = cluster.out("sinfo --format '%P,%m' --noconvert").splitlines()[:2]
    assert dict(zip(header.split(","), row.split(","))) == {"PARTITION": "main*", "MEMORY": "16000"}
    header, *rows = cluster.out(f"sacct --parsable2 -j {jobs['failed']}").splitlines()
    table = [dict(zip(header.split("|"), row.split("|"))) for row in rows]
    assert [(r["JobID"], r["JobName"], r["State"], r["ExitCode"]) for r in table] == [
        (str(jobs["failed"]), "fin", "FAILED", "3:0"), (f"{jobs['failed']}.batch", "batch", "FAILED", "3:0"), (f"{jobs['failed']}.0", "hostname", "COMPLETED", "0:0")]
    unknown = cluster.run("squeue -j 99999999 -h", check=False)
    assert unknown.rc == 1 and unknown.out == "" and unknown.err == "slurm_load_jobs error: Invalid job id specified\n"
    found = json.loads(cluster.out(f"squeue --json -j {jobs['run']}"))["jobs"]
    assert len(found) == 1 and found[0]["job_state"] == ["RUNNING"] and found[0]["job_resources"]["nodes"]["list"] == "node-[1-2]"
    assert [a["name"] for a in found[0]["job_resources"]["nodes"]["allocation"]] == ["node-1", "node-2"]


def test_batchtools_lists_and_kills(cluster, jobs):
    assert cluster.out("squeue --noheader --format=%i -u $(id -un) -t R,S,CG -r --me").split() == [str(jobs["run"])]
    pending = cluster.out("squeue --noheader --format=%i -u $(id -un) -t PD -r").split()
    assert pending == [f"{jobs['held']}_{i}" for i in range(10)]
    spare = cluster.submit("-H --wrap true")
    assert cluster.run(f"scancel {spare}").out == ""


def test_clustershell_groups(cluster, jobs):
    """The group sources of /etc/clustershell/groups.conf.d/slurm.conf.example."""
    assert cluster.out('sinfo -h -o "%N" -p main') == "node-[1-3]" and cluster.out('sinfo -h -o "%N"') == "node-[1-3]"
    assert cluster.out('sinfo -h -o "%R"').split() == ["main", "short"] and cluster.out('sinfo -h -N -o "%R" -n node-1').split() == ["main", "short"]
    assert cluster.out('sinfo -h -o "%N" -t mix') == "node-[1-2]" and cluster.out('sinfo -h -o "%N" -t idle') == "node-3"
    assert cluster.out("sinfo -h -N -o \"%T\" -n node-1 | tr -d '*~#!%$@+^-'").split() == ["mixed", "mixed"]
    assert cluster.out(f'squeue -h -j {jobs["run"]} -o "%N"') == "node-[1-2]" and cluster.out('squeue -h -o "%i" -t R') == str(jobs["run"])
    assert cluster.out('squeue -h -w node-1 -o "%i"') == str(jobs["run"]) and cluster.out('squeue -h -u $(id -un) -o "%N" -t R') == "node-[1-2]"


def test_gcm_fields_with_long_delimiters(cluster, jobs):
    text = cluster.out('squeue --all -O "JOBARRAYID:|#,NAME:|#,STATE:|#,NODELIST:|#,REASON:|#,TRES-ALLOC:|#,tres-per-node:|#,COMMENT:|#,NUMCPUS:|#,TIMELIMIT:|#,SCHEDNODES:|#" --noheader')
    rows = {line.split("|#")[0]: line.split("|#") for line in text.splitlines()}
    assert rows[str(jobs["run"])][1:] == ["cli", "RUNNING", "node-[1-2]", "None", "cpu=4,mem=200M,node=2,billing=4,gres/gpu=4", "gres/gpu:2", "hello", "4", "10:00", "(null)", ""]
    assert rows[f"{jobs['held']}_[0-9%4]"][2] == "PENDING"
    text = cluster.out('sinfo --all -N -O "nodelist:256|,gres:256|,gresused:256|,cpus:256|,cpusstate:256|,statelong:256|,partitionname:256" --noheader')
    cells = [[c.strip() for c in line.split("|")] for line in text.splitlines()]
    assert ["node-1", "gpu:h100:4", "gpu:h100:2(IDX:0-1)", "8", "2/6/0/8", "mixed", "main"] in cells and len(cells) == 6
    text = cluster.out("sacct -P -s running,r --delimiter '|#' -a -o jobid,state,alloctres --duplicates --noconvert")
    assert f"{jobs['run']}|#RUNNING|#billing=4,cpu=4,gres/gpu=4,mem=200M,node=2" in text.splitlines()
    assert len(cluster.out("sacct -P -s running,r --delimiter '|#' -a -o all --duplicates --noconvert").splitlines()[0].split("|#")) > 100


def test_exporters_count_cpus_and_gpus(cluster, jobs):
    allocated, idle, other, total = map(int, cluster.out("sinfo -h -o %C | head -1").split("/"))
    assert (allocated, idle, other, total) == (4, 20, 0, 24)
    assert cluster.run('sinfo -h "-o \\"%n %G\\""').out.splitlines() == [f' "node-{i} gpu:h100:4"' for i in (1, 2, 3)]
    assert cluster.run('squeue -h "-o %A|%u|%T|%C"').out.splitlines()[-1].startswith(" ")   # the blank is the format's
    assert re.search(r"^Server thread count: +\d+$", cluster.out("sdiag"), re.M)
    stat = json.loads(cluster.out("sdiag --all --json"))["statistics"]
    assert all(isinstance(stat[k], int) for k in ("server_thread_count", "agent_queue_size", "agent_count", "agent_thread_count", "dbd_agent_queue_size"))


def test_parallelcluster_reads_nodes_and_partitions(cluster, jobs):
    text = cluster.out("scontrol show nodes node-1,node-3")
    found = re.findall(r"NodeName=(\S+)[\s\S]*?NodeAddr=(\S+) NodeHostName=(\S+)[\s\S]*?(?<!Next)State=(\S+)[\s\S]*?Partitions=(\S+)", text)
    assert [(n, h, s, p) for n, _, h, s, p in found] == [("node-1", "node-1", "MIXED", "main,short"), ("node-3", "node-3", "IDLE", "main,short")]
    assert re.search(r"LastBusyTime=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)", text)
    cluster.run("scontrol update nodename=node-3 state=down reason='static node replacement'")
    assert cluster.node_state("node-3") == "down"
    cluster.run("scontrol update nodename=node-3 state=resume")
    cluster.run("scontrol update partitionname=short state=INACTIVE")
    assert re.search(r"PartitionName=short[\s\S]*?State=(\w+)", cluster.out("scontrol show partitions")).group(1) == "INACTIVE"
    cluster.run("scontrol update partitionname=short state=UP")
    assert cluster.out("scontrol ping").endswith("is UP")


def test_jobstats_and_resiliency_ask_accounting(cluster, jobs):
    row = cluster.out(f"sacct -P -X -n -o jobidraw,start,end,cluster,alloctres,admincomment,user,account,state,nnodes,ncpus,reqmem,qos,partition,timelimitraw,jobname -j {jobs['failed']}",
                      env={"SLURM_TIME_FORMAT": "%s"}).split("|")
    assert row[0] == str(jobs["failed"]) and int(row[2]) >= int(row[1]) > 1500000000 and row[8:11] == ["FAILED", "1", "1"] and row[14:] == ["5", "fin"]
    assert cluster.out("sacct -n -P -X --name fin -S now-3600seconds -o JobID,State,ExitCode") == f"{jobs['failed']}|FAILED|3:0"
    log = cluster.out(f"sacct -j {jobs['failed']} --noheader --parsable2 --format=JobID,StdOut,StdErr").splitlines()[0].split("|")
    assert log[1].endswith("/fin-%j.out")
    path = cluster.out(f"sacct -j {jobs['failed']} -X --expand-patterns --noheader --parsable2 --format=StdOut")
    assert path == log[1].replace("%j", str(jobs["failed"])) and cluster.read(path).startswith("node-")
    assert sorted(line.split("|") for line in cluster.out(f"squeue -h -r -j {jobs['held']} -o '%F|%K|%T'").splitlines()) == [[str(jobs["held"]), str(i), "PENDING"] for i in range(10)]
    assert cluster.out(f"squeue -h -j {jobs['run']} -o '%F|%K|%T'") == f"{jobs['run']}|N/A|RUNNING"


def test_a_job_requeues_itself(cluster):
    """Lightning, submitit and NeMo-Run call scontrol requeue inside the job, from a step."""
    job = cluster.submit("--requeue --open-mode=append -o self.out --wrap 'echo try ${SLURM_RESTART_COUNT:-0}; [ -n \"$SLURM_RESTART_COUNT\" ] || { srun scontrol requeue $SLURM_JOB_ID; sleep 60; }'")
    cluster.wait_state(job, "COMPLETED")
    assert [line for line in cluster.read("self.out").splitlines() if line.startswith("try")] == ["try 0", "try 1"]
    assert cluster.job(job, "Restarts") == "1"


def test_an_allocation_as_json(cluster):
    """What REST clients and salloc's wrappers read of a job that has no script: its first node when it has nodes, nothing before."""
    cluster.run("salloc -J there --no-shell -t 5")
    cluster.submit("-J wait -H -p short --wckey=w --wrap true")
    found = {j["name"]: j for j in json.loads(cluster.out("squeue --json -n there,wait"))["jobs"]}
    assert found["there"]["batch_host"] == found["there"]["job_resources"]["nodes"]["list"] and found["wait"]["batch_host"] == ""
    assert "JOB_WAS_RUNNING" in found["there"]["flags"] and "USING_DEFAULT_WCKEY" in found["there"]["flags"]
    assert "JOB_WAS_RUNNING" not in found["wait"]["flags"] and "USING_DEFAULT_WCKEY" not in found["wait"]["flags"]
    default = {"USING_DEFAULT_PARTITION", "PARTITION_ASSIGNED"}        # -p was left out; an update does not change that
    assert default <= set(found["there"]["flags"]) and not default & set(found["wait"]["flags"])
    waits = cluster.submit("-J moved -H --wrap true")
    cluster.run(f"scontrol update job {waits} partition=short")
    assert default <= set(json.loads(cluster.out("squeue --json -n moved"))["jobs"][0]["flags"])
    assert cluster.out("scontrol show job $(squeue -h -n there -o %i) --json | grep -c JOB_WAS_RUNNING") == "1"
    cluster.run("scancel -n there; scancel -n wait; scancel -n moved")
