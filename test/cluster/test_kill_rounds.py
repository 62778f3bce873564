"""Daemons are killed at random while clients submit, cancel and run steps. Afterwards every acknowledged job has run once, accounting has each, and nothing is
left: no process, no held CPU or GPU, no stuck node, no file in the spool (R46).

The seed is printed; BERTH_KILL_SEED takes it again, BERTH_KILL_ROUNDS (default 1) says how many rounds.
"""
import datetime
import glob
import os
import random
import re
import signal
import threading
import time

NODES = 3
import pytest

CLUSTER = dict(nodes=NODES, cpus=4, gpus=2)
ROUND_SEC = 6
JOB = """#!/bin/bash
echo start >> run-$SLURM_JOB_ID
srun -o /dev/null bash -c 'echo step >> step-$SLURM_JOB_ID' 2>> srun-err-$SLURM_JOB_ID
sleep 0.$((RANDOM % 10))
echo end >> run-$SLURM_JOB_ID
"""
OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


class Round:
    def __init__(self, cluster, seed):
        self.cluster, self.seed, self.random = cluster, seed, random.Random(seed)
        self.acked, self.cancelled, self.sruns, self.killed_steps, self.kills = [], set(), [], set(), {}
        self.told = []
        self.lock, self.stop = threading.Lock(), threading.Event()

    def submitter(self, seed):
        rng = random.Random(seed)
        while not self.stop.is_set():
            got = self.cluster.run(f"sbatch --parsable -J round -n{rng.randint(1, 2)} -o /dev/null --gres=gpu:{rng.randint(0, 1)} job.sh", check=False)
            if got.rc:
                continue
            job = int(got.out)
            with self.lock:
                self.acked.append(job)
            if rng.random() < 0.15:
                with self.lock:
                    self.cancelled.add(job)
                self.cluster.run(f"scancel {job}", check=False)
            time.sleep(0.1)

    def sruns_go(self):
        while not self.stop.is_set():
            got = self.cluster.run("srun -J srun -N1 -n2 bash -c 'echo $SLURM_JOB_ID; sleep 0.3; echo ran >> srun-$SLURM_JOB_ID'", check=False)
            ids = set(re.findall(r"^\d+$", got.out, re.M))
            self.sruns.append((got.rc, ids, got.err))

    def slurmstepds(self, title=r"slurmstepd: \[(\d+)\."):
        """(process id, what the title says) of each of this cluster."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path) as f:
                    match = re.match(title, f.read())
                pid = int(path.split("/")[2])
                if match and f"{self.cluster.home}/" in os.readlink(f"/proc/{pid}/cwd"):
                    found.append((pid, match.group(1)))
            except OSError:
                continue
        return found

    def kill_step(self):
        steps = self.slurmstepds()
        if steps:
            pid, job = self.random.choice(sorted(steps))
            self.killed_steps.add(int(job))
            kill(pid)

    def kill_zygote(self):
        """The one that waits to be forked, not one that was forked a moment ago and bears its title still: no job may notice."""
        for pid, _ in self.slurmstepds(r"slurmstepd: (waiting)"):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    parent = f.read().split()[3]
                with open(f"/proc/{parent}/comm") as f:
                    if f.read() == "slurmd\n":
                        kill(pid)
            except OSError:
                continue

    def kill_one(self):
        what = self.random.choice(["slurmctld", "slurmctld", "slurmdbd", "slurmd", "slurmd", "slurmstepd", "zygote"])
        pause = self.random.random()
        self.kills[what] = self.kills.get(what, 0) + 1
        if what in ("slurmstepd", "zygote"):
            self.kill_step() if what == "slurmstepd" else self.kill_zygote()
            return
        name = what if what != "slurmd" else f"node-{self.random.randint(1, NODES)}"
        self.told.append(f"{datetime.datetime.now().isoformat(timespec='milliseconds')} kill -9 {name}")
        pid = self.cluster.out(f"berth status | awk '$1 == \"{name}\" {{ print $3 }}'")
        if not pid.isdigit():
            return
        os.kill(int(pid), signal.SIGKILL)
        time.sleep(pause)
        self.cluster.wait(f"{name} starts again", lambda: self.cluster.berth(f"start {name}", check=False).rc == 0)
        self.told.append(f"{datetime.datetime.now().isoformat(timespec='milliseconds')} {name} is started")

    def play(self):
        with open(os.path.join(self.cluster.work, "job.sh"), "w") as f:
            f.write(JOB)
        threads = [threading.Thread(target=self.submitter, args=(self.random.random(),)) for _ in range(3)]
        threads += [threading.Thread(target=self.sruns_go)]
        for t in threads:
            t.start()
        end = time.monotonic() + ROUND_SEC
        while time.monotonic() < end:
            time.sleep(self.random.random() / 2)
            self.kill_one()
        self.stop.set()
        for t in threads:
            t.join()

    def count(self, name, word):
        path = os.path.join(self.cluster.work, name)
        return self.cluster.read(path).split().count(word) if os.path.exists(path) else 0

    def story(self, job):
        """What the daemons' logs say of a job that went wrong."""
        return "\n".join(self.told) + "\n" + self.cluster.run(f"grep -wE '(JobId=|job |StepId=|step ){job}|registered|version' $BERTH_DIR/log/*.log | sed \"s,$BERTH_DIR/log/,,\" | sort -t'[' -k2; squeue -a -j {job}; sacct -D -j {job} -o jobid,state,start,end,nodelist",
                                check=False).out

    def check_jobs(self):
        c = self.cluster
        try:
            c.wait("the queue to empty", lambda: not c.out("squeue -h -n round,srun -o '%i %T %r'"), 120)
        except pytest.fail.Exception:
            for job in c.out("squeue -h -n round,srun -o %i").split():
                print(self.story(job))
            raise
        assert len(set(self.acked)) == len(self.acked), "an id was given out twice"
        text = c.out("scontrol show job -o")
        shown = dict(re.findall(r"^JobId=(\d+) .*?JobState=(\w+)", text, re.M))
        for job in self.acked:
            state, starts, ends = shown.get(str(job)), self.count(f"run-{job}", "start"), self.count(f"run-{job}", "end")
            what = f"job {job}: {state}, {starts} starts, {ends} ends"
            if job in self.cancelled:
                assert state in OVER and starts <= 1, what
            elif job in self.killed_steps:
                again = int(re.search(rf"^JobId={job} .*? Restarts=(\d+)", text, re.M).group(1))
                assert state in ("COMPLETED", "FAILED") and starts <= 1 + again, what # FAILED: it was the slurmstepd of its srun
            else:
                assert (state, starts, ends) == ("COMPLETED", 1, 1), what + "\n" + self.story(job)
                assert self.count(f"step-{job}", "step") >= 1, what
        for rc, ids, err in self.sruns:
            for job in ids:
                ran = self.count(f"srun-{job}", "ran")
                assert ran <= 2 and (int(job) in self.killed_steps or ran == 2), f"srun {job}: rc={rc}, {ran} of 2 tasks ran once: {err}"
        return shown

    def check_accounting(self, shown):
        def rows():
            text = self.cluster.out("sacct -a -n -X -P -S now-1hour -o JobIDRaw,State", check=False)
            return [line.split("|") for line in text.split("\n") if "|" in line]

        def agrees():
            got = {}
            for job, state in rows():
                got.setdefault(job, []).append(state.split()[0])
            wrong = {str(job): (shown[str(job)], got.get(str(job))) for job in self.acked if got.get(str(job), [""])[-1] != shown[str(job)]}
            self.wrong = wrong
            return not wrong
        try:
            self.cluster.wait("accounting of each job", agrees)
        except pytest.fail.Exception as e:
            raise AssertionError(f"job: (scontrol, sacct): {self.wrong}\n{self.cluster.out('sdiag')}\n{self.cluster.out('sacct -a -n -X -P -S now-1hour', check=False)[-3000:]}") from e

    def processes(self):
        found = []
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(path, "rb") as f:
                    env = f.read()
            except OSError:
                continue
            if b"SLURM_JOB_ID=" in env and f"SLURM_CONF={self.cluster.home}/".encode() in env:
                found.append(path)
        return found

    def check_nothing_left(self):
        c = self.cluster
        c.wait_idle()
        for node in c.out("scontrol show node -o").split("\n"):
            assert "CPUAlloc=0" in node and "DRAIN" not in node and not re.search(r"GresUsed=\S*[1-9]\(IDX", node), node
        c.wait("no process of a job", lambda: not self.processes())

        def spool():
            return [p for word in ("step.*", "done.*", "launch.*", "job*") for p in glob.glob(f"{c.home}/**/spool*/**/{word}", recursive=True) + glob.glob(f"{c.home}/spool*/*/{word}")]
        c.wait("an empty spool", lambda: not spool())


def test_kills_at_random(cluster):
    seed = int(os.environ.get("BERTH_KILL_SEED", time.time_ns() % 1000000))
    for i in range(int(os.environ.get("BERTH_KILL_ROUNDS", "1"))):
        print(f"seed {seed + i}")
        r = Round(cluster, seed + i)
        r.play()
        shown = r.check_jobs()
        r.check_accounting(shown)
        r.check_nothing_left()
        print(f"seed {seed + i}: kills {r.kills}; {len(r.acked)} jobs acknowledged, {len(r.cancelled)} cancelled, {len(r.sruns)} srun, "
              f"{len(r.killed_steps)} slurmstepds killed")
