"""Proves: slurmctld runs MailProg for --mail-type as the reference does: arguments, environment, one mail for an array (cases 76, 77)."""
import atexit
import os
import shutil
import tempfile

FOLDER = tempfile.mkdtemp(prefix="berth-mail-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
os.chmod(FOLDER, 0o1777)
PROGRAM = f"{FOLDER}/mail"
with open(PROGRAM, "w") as f:
    f.write(f"""#!/bin/sh
{{ printf '%s|' "$@"; echo "$SLURM_JOB_ID|$SLURM_JOB_MAIL_TYPE|$SLURM_JOB_STATE|$SLURM_JOB_USER|$SLURM_JOB_EXIT_CODE2"; }} > {FOLDER}/part.$$
mv {FOLDER}/part.$$ {FOLDER}/got.$SLURM_JOB_ID.$$
""")
os.chmod(PROGRAM, 0o755)
CLUSTER = dict(extra_conf=f"MailProg={PROGRAM}\nMailDomain=example.org\n")


def mails(job="*"):
    got = []
    for name in sorted(os.listdir(FOLDER)):
        if name.startswith("got.") and (job == "*" or name.split(".")[1] == str(job)):
            with open(f"{FOLDER}/{name}") as f:
                got.append(f.read().rstrip("\n"))
    return got


def test_case_76_a_job_that_fails_has_ended_too(cluster):
    job = cluster.submit("--mail-type=END -J m -o /dev/null --wrap 'exit 1'")
    got = cluster.wait("the mail", lambda: mails(job))
    assert got == [f"-s|Slurm Job_id={job} Name=m Ended, Run time 00:00:00, FAILED, ExitCode 1|{cluster.user or 'root'}@example.org|{job}|Ended|FAILED|{cluster.user or 'root'}|1:0"] \
        or "Run time 00:00:01" in got[0]


def test_all_turns_of_a_job(cluster):
    job = cluster.submit("--mail-type=ALL --mail-user=a@b.c -J $'x\\ty' -o /dev/null --wrap 'sleep 100'")
    cluster.wait("the first mail", lambda: len(mails(job)) == 1)
    cluster.wait_state(job, "RUNNING")
    cluster.run(f"scontrol requeue {job}")
    cluster.wait("three mails", lambda: len(mails(job)) == 3)
    cluster.run(f"scancel {job}")
    got = cluster.wait("four mails", lambda: len(mails(job)) == 4 and mails(job))
    text = "\n".join(got)
    for turn in ("Began, Queued time 00:00:0", "Requeued, Run time 00:00:0", "CANCELLED, ExitCode 0"):
        assert f"Slurm Job_id={job} Name=x?y " in text and turn in text
    assert all("|a@b.c|" in line for line in got)


def test_case_77_mails_of_arrays(cluster):
    whole = cluster.submit("-a 1-3 --mail-type=BEGIN,END -J w -o /dev/null --wrap 'exit $SLURM_ARRAY_TASK_ID'")
    tasks = cluster.submit("-a 1-3 --mail-type=BEGIN,END,ARRAY_TASKS -J t -o /dev/null --wrap true")
    cluster.wait("eight mails", lambda: len([m for m in mails() if " Name=w " in m or " Name=t " in m]) >= 8)
    cluster.wait("the arrays to end", lambda: not cluster.out(f"squeue -h -j {whole},{tasks}"))
    of = {n: [m.split("|")[1] for m in mails() if f" Name={n} " in m] for n in "wt"}
    assert sorted(of["w"]) == [f"Slurm Array Summary Job_id={whole}_* ({whole}) Name=w Began",
                               f"Slurm Array Summary Job_id={whole}_* ({whole}) Name=w Ended, FAILED, ExitCode [1-3]"]
    assert len(of["t"]) == 6 and all(m.startswith(f"Slurm Array Task Job_id={tasks}_") for m in of["t"])


def test_an_address_is_no_option(cluster):
    job = cluster.submit("--mail-type=ALL --mail-user=-A/etc/passwd -o /dev/null --wrap true")
    cluster.wait_end(job)
    after = cluster.submit("--mail-type=END -o /dev/null --wrap true")
    cluster.wait("the next mail", lambda: mails(after))
    assert not mails(job)
