"""scrontab: a crontab kept by slurmctld, each entry a job that comes again; taken whole or not; what is wrong is said with its line."""
import os

import pytest

CLUSTER = dict(nodes=2, cpus=4, gpus=0, extra_conf="ScronParameters=enable\n")
TAB = """# mine
GREETING="hello  there"
DIR=/tmp

#SCRON -J yearly -o {out}
#SCRON -t 5
@yearly echo "$GREETING from $DIR $SLURM_JOB_NAME $(pwd)"; sleep ${{NAP:-0}}
30 6 1 1 mon-fri /bin/sleep 600
"""


@pytest.fixture
def tab(cluster, tmp_path):
    os.chmod(tmp_path, 0o777)
    out = tmp_path / "out"
    cluster.run("scrontab -", stdin=TAB.format(out=out))
    yield out
    cluster.run("scrontab -r; scancel -u $(id -un)", check=False)


def cron_jobs(cluster):
    """Names and ids of the caller's jobs of crontabs that wait or run."""
    return {name: int(i) for i, name, cron in (l.split() for l in cluster.out("squeue -h -O jobid,name,cronjob").splitlines()) if cron == "Yes"}


def test_kept_shown_and_removed(cluster, tab):
    assert cluster.run("scrontab -l").out == TAB.format(out=tab)
    jobs = cron_jobs(cluster)
    assert set(jobs) == {"yearly", "sleep"}
    shown = cluster.out(f"scontrol show job {jobs['yearly']}")
    assert '   CronJob=Yes CrontabSpec="0 0 1 1 *"\n' in shown and "TimeLimit=00:05:00" in shown and "-01-01T00:00:00" in shown and "Reason=BeginTime" in shown, shown
    assert 'CrontabSpec="30 6 1 1 1,2,3,4,5"' in cluster.out(f"scontrol show job {jobs['sleep']}")
    assert f'"cron": "0 0 1 1 *"' in cluster.out(f"squeue --json -j {jobs['yearly']}").replace("\\/", "/")
    cluster.run("scrontab -r")
    assert not cron_jobs(cluster)
    gone = cluster.run("scrontab -l", check=False)
    assert gone.rc == 1 and gone.out.startswith("no crontab for ") and not gone.err
    assert not cluster.run("scrontab -r").err


def test_an_entry_runs_and_comes_again(cluster, tab):
    """Its environment is a login's, its folder home; the same job, one more restart, for the next due time; one record a run."""
    job = cron_jobs(cluster)["yearly"]
    cluster.run(f"scontrol update JobId={job} StartTime=now", env={"NAP": "60"})
    cluster.wait("its run", lambda: "Restarts=1 " in cluster.out(f"scontrol show job {job}") and cluster.state(job) == "PENDING")
    home = cluster.out("getent passwd $(id -un) | cut -d: -f6").strip()
    cluster.wait("its output", lambda: tab.exists() and tab.read_text() == f"hello  there from /tmp yearly {home}\n")
    assert "-01-01T00:00:00" in cluster.out(f"squeue --start -h -j {job}")
    cluster.wait("both records", lambda: cluster.out(f"sacct -X -D -n -P -j {job} -o state").split() == ["REQUEUED", "PENDING"])


def test_requeue_skips_a_run(cluster, tab):
    job = cron_jobs(cluster)["yearly"]
    first = cluster.out(f"squeue -h -o %S -j {job}").strip()
    cluster.run(f"scontrol requeue {job}")
    assert cluster.out(f"squeue -h -o %S -j {job}").strip() == f"{int(first[:4]) + 1}{first[4:]}"


def test_a_cancelled_entry_is_commented_out(cluster, tab):
    jobs = cron_jobs(cluster)
    cluster.run(f"scancel {jobs['yearly']}")
    lines = TAB.format(out=tab).splitlines()
    expected = [f"#DISABLED: {l}" if 4 <= i <= 6 else l for i, l in enumerate(lines)]
    cluster.wait("the entry commented out", lambda: cluster.run("scrontab -l").out.splitlines() == expected)
    assert set(cron_jobs(cluster)) == {"sleep"}


def test_replaced_while_it_runs(cluster, tab):
    """What waits of the old one is cancelled, what runs finishes and does not come again."""
    old = cron_jobs(cluster)
    cluster.run(f"scontrol update JobId={old['sleep']} StartTime=now")
    cluster.wait_state(old["sleep"], "RUNNING")
    cluster.run("scrontab -", stdin="@daily true\n")
    assert cluster.state(old["yearly"]) == "CANCELLED" and cluster.state(old["sleep"]) == "RUNNING"
    assert set(cron_jobs(cluster)) == {"sleep", "true"}
    cluster.run(f"scontrol update JobId={old['sleep']} EndTime=now; scancel -s TERM -b {old['sleep']}; scancel -s KILL --full {old['sleep']}", check=False)
    cluster.wait_state(old["sleep"], "CANCELLED", "FAILED", "COMPLETED", "TIMEOUT")
    assert cluster.run("scrontab -l").out == "@daily true\n"


def test_outlives_the_controller(cluster, tab):
    before = cluster.out("squeue -h -O jobid,name,starttime,cronjob")
    cluster.berth("kill slurmctld")
    cluster.berth("start slurmctld")
    assert cluster.out("squeue -h -O jobid,name,starttime,cronjob") == before and "Yes" in before
    assert cluster.run("scrontab -l").out == TAB.format(out=tab)
    cluster.run(f"scancel {cron_jobs(cluster)['sleep']}")
    cluster.wait("the entry commented out", lambda: "#DISABLED: 30 6 1 1" in cluster.run("scrontab -l").out)


BAD = [("61 * * * * x\n", 'line 1: minute "61"'), ("* * * * *\n", "line 1: no command"), ("\n* * * * x\n", 'line 2: day of week "x"'), ("@nosuch x\n", "line 1: @nosuch: known are @hourly"),
       ("#SCRON --nosuch\n@daily x\n", "line 1: unrecognized option '--nosuch'"), ("#SCRON --array=1-3\n@daily x\n", "--array cannot be used"), ("#SCRON --wrap=x\n@daily x\n", "--wrap cannot be used"),
       ("#SCRON -n 0\n@daily x\n", "line 1: "), ("FOO\n", "line 1: "), ("@daily fine\n@daily\n", "line 2: no command")]


@pytest.mark.parametrize("text,told", BAD, ids=[b[0].split("\n")[0] or "empty" for b in BAD])
def test_what_is_wrong_is_said(cluster, tab, text, told):
    jobs = cron_jobs(cluster)
    result = cluster.run("scrontab -", stdin=text, check=False)
    assert result.rc == 1 and result.out == "There are errors in your crontab.\n" and "standard input, " in result.err and told in result.err, result
    assert cron_jobs(cluster) == jobs and cluster.run("scrontab -l").out == TAB.format(out=tab)


def test_one_that_is_refused_takes_all_back(cluster, tab):
    jobs = cron_jobs(cluster)
    result = cluster.run("scrontab -", stdin="@daily good\nA=1\n#SCRON -p nosuch\n@daily bad\n", check=False)
    assert result.rc == 1 and result.out.startswith("There was an issue with the job submission on lines 3-4\nThe error code return was: Invalid partition name specified\n"), result
    assert "nosuch" in result.out
    assert cron_jobs(cluster) == jobs and cluster.run("scrontab -l").out == TAB.format(out=tab)
    never = cluster.run("scrontab -", stdin="0 0 30 2 * x\n", check=False)
    assert never.rc == 1 and '"0 0 30 2 *" is never due' in never.out


def test_editor(cluster, tab):
    text = cluster.run("scrontab -l").out
    assert cluster.run("VISUAL=true scrontab -e").out == "no change\n"
    cluster.run("VISUAL= EDITOR='sed -i s/mine/yours/' sh -c 'unset VISUAL; scrontab -e'")
    assert cluster.run("scrontab -l").out == text.replace("mine", "yours")
    failed = cluster.run("VISUAL=false scrontab -e", check=False)
    assert failed.rc == 1 and failed.err == 'scrontab: fatal: the editor "false" failed; the crontab is as it was\n'
    wrong = cluster.run("VISUAL='sed -i s/@yearly/@nosuch/' scrontab -e", check=False, stdin="n\n")
    assert wrong.rc == 1 and "@nosuch" in wrong.err
    assert cluster.run("scrontab -l").out == text.replace("mine", "yours")


def test_of_others(cluster, tab, user):
    for action in ("-l", "-r"):
        told = cluster.run(f"scrontab -u $(id -un 0) {action}" if os.getuid() == 0 else f"scrontab -u root {action}", user=user, check=False)
        assert told.rc == 1 and told.err.endswith("failed: Invalid user id\n"), told
    assert cluster.run("scrontab -l").out == TAB.format(out=tab)


def test_disabled(cluster, tab):
    cluster.run("sed -i s/^ScronParameters/#ScronParameters/ $(dirname $SLURM_CONF)/*.conf && scontrol reconfigure")
    try:
        for action in ("scrontab -l", "echo '@daily x' | scrontab -"):
            told = cluster.run(action, check=False)
            assert told.rc == 1 and "scrontab is disabled on this cluster" in told.err, told
    finally:
        cluster.run("sed -i s/^#ScronParameters/ScronParameters/ $(dirname $SLURM_CONF)/*.conf && scontrol reconfigure")
