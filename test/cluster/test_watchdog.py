"""Daily work without cron on the login node (R34), and watchdogs as sites publish them: jobs gone from the queue, jobs that hang, kill switch files (R35)."""
import datetime
import os

import pytest

CLUSTER = dict(nodes=2, cpus=4, gpus=0)

DAILY = """#!/bin/bash
#SBATCH --job-name=cron-daily
#SBATCH --ntasks=1
#SBATCH --nodes=1
#SBATCH --time=0:30:00
#SBATCH --output=%x-%j.out
#SBATCH --partition=main
# no set -e: all of it is to run
for file in cron.daily/*.slurm; do
    sbatch "$file"
done
sbatch --begin=now+24hour cron-daily.slurm
"""

# Is the run still queued or running? Its name is looked for in the listing that people read.
STATUS = """#!/bin/bash
name=$1
format="%.16i %.9P %.26j %.8T %.10M %.8l %.6D %.20S %R"
line=$(squeue --user=$(whoami) -h -o "$format" | grep -w "$name" | head -1)
case "$line" in
    *RUNNING*) echo "$name is running" ;;
    *PENDING*) echo "$name is scheduled to start at $(echo $line | cut -d' ' -f8)" ;;
    *) echo "ALERT: $name is neither running nor scheduled"; exit 1 ;;
esac
"""

# Has its log grown since last time? Else it hangs: its stacks are looked at beside the step, and it is cancelled for the next in the chain to go on.
HANG = """#!/bin/bash
job=$1; log=$2; seen=$log.seen
size=$(stat -c %s "$log"); before=$(cat "$seen" 2>/dev/null || echo -1)
echo $size > "$seen"
[ "$size" = "$before" ] || exit 0
srun --overlap --jobid $job --ntasks=1 --nodes=1 ps -u $(whoami) -o args= | grep -cx '[f]orever-sleep 600' > "$log.stacks"
scancel $job
echo "ALERT: job $job wrote nothing to $log"
"""


def put(cluster, name, text):
    path = os.path.join(cluster.work, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


@pytest.fixture(scope="module", autouse=True)
def scripts(cluster):
    put(cluster, "cron-daily.slurm", DAILY)
    put(cluster, "cron.daily/clean.slurm", "#!/bin/bash\n#SBATCH --job-name=clean --output=/dev/null\ntouch cleaned\n")
    put(cluster, "slurm-status.sh", STATUS)
    put(cluster, "hang.sh", HANG)


def test_r34_a_daily_job_submits_itself(cluster):
    first = cluster.submit("cron-daily.slurm")
    assert cluster.wait_end(first) == "COMPLETED"
    cluster.wait("the daily work is done", lambda: os.path.exists(f"{cluster.work}/cleaned"))
    again = cluster.out("squeue -h -n cron-daily -o '%i %T %r'").split()
    assert int(again[0]) > first and again[1:] == ["PENDING", "BeginTime"]
    begin = datetime.datetime.fromisoformat(cluster.job(again[0], "StartTime"))
    submitted = datetime.datetime.fromisoformat(cluster.job(again[0], "SubmitTime"))
    assert datetime.timedelta(hours=24) - datetime.timedelta(seconds=2) <= begin - submitted <= datetime.timedelta(hours=24, seconds=2)
    cluster.run(f"scontrol update job {again[0]} StartTime=now")         # a day later
    assert cluster.wait_end(int(again[0])) == "COMPLETED"
    assert cluster.out("squeue -h -n cron-daily -o %T") == "PENDING"
    cluster.run("scancel -n cron-daily")


def test_r35_a_run_that_is_gone_is_told(cluster):
    waits = cluster.submit("-J tr1-training --begin=2039-01-20T12:34:00 --wrap true")
    assert cluster.out("bash slurm-status.sh tr1-training") == "tr1-training is scheduled to start at 2039-01-20T12:34:00"
    cluster.run(f"scancel {waits}")
    runs = cluster.submit("-J tr1-training -o /dev/null --wrap 'sleep 600'")
    cluster.wait_state(runs, "RUNNING")
    assert cluster.out("bash slurm-status.sh tr1-training") == "tr1-training is running"
    cluster.run(f"scancel {runs}")
    cluster.wait_end(runs)
    gone = cluster.run("bash slurm-status.sh tr1-training", check=False)
    assert gone.rc == 1 and gone.out.strip() == "ALERT: tr1-training is neither running nor scheduled"


def test_r35_a_run_that_hangs_is_ended_and_the_next_of_its_chain_starts(cluster):
    script = "echo epoch 1; exec -a forever-sleep sleep 600"
    hung = cluster.submit(f"-J chain -o chain-%j.log --wrap \"srun bash -c '{script}'\"")
    following = cluster.submit(f"-J chain -o /dev/null -d {hung} --wrap true")
    log = f"chain-{hung}.log"
    cluster.wait("it writes", lambda: os.path.exists(f"{cluster.work}/{log}") and "epoch 1" in cluster.read(log))
    assert cluster.out(f"bash hang.sh {hung} {log}") == ""
    assert cluster.out(f"bash hang.sh {hung} {log}") == f"ALERT: job {hung} wrote nothing to {log}"
    assert cluster.read(f"{log}.stacks").strip() == "1"
    assert cluster.wait_end(hung) == "CANCELLED" and cluster.wait_end(following) == "COMPLETED"


def test_r35_a_kill_switch_ends_all_of_an_array(cluster):
    """Each task of a one-at-a-time array looks for the file first: with it there, the rest passes by without work."""
    array = cluster.submit("-a 1-4%1 -o kill-%a.out --wrap '[ -e kill-switch ] && exit 0; echo works; while [ ! -e kill-switch ]; do sleep 0.1; done'")
    cluster.wait("the first works", lambda: os.path.exists(f"{cluster.work}/kill-1.out") and "works" in cluster.read("kill-1.out"))
    cluster.run("touch kill-switch")
    cluster.wait("the array is over", lambda: cluster.out(f"squeue -h -j {array} -o %i") == "")
    assert [cluster.read(f"kill-{i}.out") for i in (1, 2, 3, 4)] == ["works\n", "", "", ""]
