"""Proves: small inputs that others got wrong, end to end. Each test names its row ("case 25"); those that need no daemon are in test/compat/test_cases_offline.py."""
import json
import os
import re

import pytest

from conftest import add_user

CLUSTER = dict(extra_conf="PartitionName=four Nodes=ALL MaxTime=4:00:00 State=UP\n")


def held(cluster, args, **kw):
    """The id of a job that only waits, for looking at."""
    return cluster.submit(f"-H -o /dev/null {args} --wrap true", **kw)


def field(cluster, args, name):
    job = held(cluster, args)
    value = cluster.job(job, name)
    cluster.run(f"scancel {job}")
    return value


def refused(cluster, command, *words, **kw):
    got = cluster.run(command, check=False, **kw)
    assert got.rc != 0, got
    for word in words:
        assert word in got.err, got
    return got


def output(cluster, args, script="", **kw):
    """What a job wrote, once it has ended."""
    job = cluster.submit(f"-o case-%j.out {args}", stdin=script or None, **kw)
    cluster.wait_end(job)
    return cluster.read(f"case-{job}.out")


# --- times ---

@pytest.mark.parametrize("case, text, held_as", [
    (1, "4:00", "00:04:00"), (1, "30:00", "00:30:00"), (1, "1:30", "00:02:00"), (1, "0:30", "00:01:00"), (1, "10", "00:10:00"),
    (1, "1:2:3", "01:03:00"), (1, "2-3", "2-03:00:00"), (1, "2-3:4", "2-03:04:00"), (1, "2-3:4:5", "2-03:05:00"),
    (2, "2-12", "2-12:00:00"), (4, "90", "01:30:00"), (4, "0", "UNLIMITED"), (4, "0:30", "00:01:00"), (5, "0:240:0", "04:00:00"),
])
def test_time_limits(cluster, case, text, held_as):
    assert field(cluster, f"-t {text}", "TimeLimit") == held_as


def test_case_1_limits_of_partitions(cluster):
    assert "MaxTime=00:30:00" in cluster.out("scontrol show partition short")
    assert "MaxTime=04:00:00" in cluster.out("scontrol show partition four")


@pytest.mark.parametrize("value", ["foo", "", "2-x", "1:2:3:4"])
def test_case_2_a_limit_that_is_none_is_refused_by_update(cluster, value):
    job = held(cluster, "-t 10")
    refused(cluster, f"scontrol update job={job} TimeLimit={value}", "Invalid TimeLimit value")
    assert cluster.job(job, "TimeLimit") == "00:10:00"
    cluster.run(f"scancel {job}")


def test_case_5_a_limit_exceeded_says_which(cluster):
    waits = cluster.submit("-p four -t 0:300:0 -o /dev/null --wrap true")
    assert cluster.job(waits, "Reason") == "PartitionTimeLimit"
    cluster.run(f"scancel {waits}")
    assert cluster.wait_end(cluster.submit("-p four -t 0:240:0 -o /dev/null --wrap true")) == "COMPLETED"


@pytest.mark.parametrize("command", ["sacct -S ''", "sacct -E ''", "sacct -S foo"])
def test_case_7_empty_and_unknown_times_of_sacct(cluster, command):
    refused(cluster, command, "Invalid time specification")


def test_case_8_unlimited_has_no_more_or_less(cluster):
    job = held(cluster, "-t 0")
    for change in ("+=1", "-=1"):
        got = refused(cluster, f"scontrol update job={job} TimeLimit{change}")
        assert got.err == "scontrol: error: Cannot increment/decrement TimeLimit when set to UNLIMITED.\n"
    assert cluster.job(job, "TimeLimit") == "UNLIMITED"
    cluster.run(f"scancel {job}")


def test_case_8_limits_of_a_task_by_its_own_id(cluster):
    array = cluster.submit("-b now+1hour -t 10 -a 1-3 -o /dev/null --wrap true")
    cluster.run(f"scontrol hold {array}_2")
    raw = cluster.out(f"squeue -h -t PD -j {array} -o '%A %K %r' | sed -n 's/ 2 JobHeld[AU].*//p'")
    assert raw != str(array)
    cluster.run(f"scontrol update job={raw} TimeLimit+=5")
    assert cluster.job(f"{array}_2", "TimeLimit") == "00:15:00" and cluster.job(f"{array}_3", "TimeLimit") == "00:10:00"
    cluster.run(f"scontrol update job={raw} TimeLimit-=3")
    assert cluster.job(f"{array}_2", "TimeLimit") == "00:12:00"
    cluster.run(f"scancel {array}")


def test_case_11_cannot_finish_by_its_deadline(cluster):
    refused(cluster, "sbatch --time=2:00:00 --begin=now+3hours --deadline=now+4hours --wrap true", "Batch job submission failed: ")


def test_case_13_times_in_text_and_json(cluster):
    job = cluster.submit("-o /dev/null --wrap true")
    cluster.wait_end(job)
    start = cluster.wait("the end in accounting", lambda: cluster.out(f"sacct -n -X -P -s CD -j {job} -o Start -S now-1hour -E now"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", start)
    assert re.fullmatch(r"\d{10}\|", cluster.out(f"sacct -n -X --parsable -j {job} -o Start", env={"SLURM_TIME_FORMAT": "%s"}))
    long = cluster.out(f"sacct -n -X --parsable -j {job} -o Start", env={"SLURM_TIME_FORMAT": "%Y" + "x" * 60})
    assert long.endswith("x" * 60 + "|")
    offset = cluster.out(f"sacct -n -X -P -j {job} -o Start", env={"SLURM_TIME_FORMAT": "rfc3339", "TZ": "Asia/Kolkata"})
    assert offset.endswith("+05:30")
    number = json.loads(cluster.out(f"scontrol show job {job} --json"))["jobs"][0]["start_time"]["number"]
    assert str(number) == cluster.out(f"squeue -h -t all -j {job} -o %S", env={"SLURM_TIME_FORMAT": "%s"})


# --- scripts and directives ---

def test_case_26_directives_after_the_first_command(cluster):
    got = cluster.run("sbatch -H -o /dev/null --parsable", stdin="#!/bin/bash\nset -euo pipefail\n#SBATCH -J x\n#SBATCH -N2\ntrue\n")
    job = got.out.strip()
    assert cluster.out(f"squeue -h -j {job} -o '%j %D'") == "sbatch 1"
    assert "warning: 2 #SBATCH lines after the first command (line 2)" in got.err
    cluster.run(f"scancel {job}")


@pytest.mark.parametrize("case, directive, what, want", [
    (28, "--job-name=my_nice_job      # sets the job name", "JobName", "my_nice_job"),
    (29, "-o my\\ file.out", "StdOut", "{work}/my file.out"),
])
def test_directives(cluster, case, directive, what, want):
    job = cluster.submit("-H", stdin=f"#!/bin/bash\n#SBATCH {directive}\ntrue\n")
    assert cluster.job(job, what) == want.format(work=cluster.work)
    cluster.run(f"scancel {job}")


def test_case_31_command_line_then_environment_then_directive(cluster):
    job = cluster.submit("-H --nodes=2", stdin="#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH -p main\n#SBATCH -J mine\ntrue\n", env={"SBATCH_PARTITION": "short"})
    assert cluster.out(f"squeue -h -j {job} -o '%D %P %j'") == "2 short mine"
    cluster.run(f"scancel {job}")


def test_case_32_the_script_runs_once(cluster):
    text = output(cluster, "-N2 --ntasks-per-node=8", "#!/bin/bash\nmkdir d32 || echo again\nsrun hostname\n")
    assert sorted(text.split()) == ["node-1"] * 8 + ["node-2"] * 8


def test_case_34_stdout_is_the_id_alone(cluster):
    got = cluster.run("sbatch -H --parsable -o /dev/null --wrap hostname", env={"SBATCH_EXCLUSIVE": "true"})
    assert re.fullmatch(r"\d+\n", got.out)
    cluster.run(f"scancel {got.out}")


def test_case_35_more_nodes_than_tasks(cluster):
    got = cluster.run("sbatch -H --parsable -n1 -N2 -o /dev/null --wrap true")
    assert "can't run 1 processes on 2 nodes, setting nnodes to 1" in got.err
    assert cluster.out(f"squeue -h -j {got.out.strip()} -o %D") == "1"
    cluster.run(f"scancel {got.out}")


# --- names, files, environment ---

def test_case_37_patterns_of_arrays(cluster):
    array = cluster.submit("--array=7-12 -o o_%A_%4a_%b_%x -J nam --wrap true")
    cluster.wait("all tasks to end", lambda: not cluster.out(f"squeue -h -j {array}"))
    want = {f"o_{array}_{i:04}_{i % 10}_nam" for i in range(7, 13)}
    assert want <= set(os.listdir(cluster.work))
    plain = cluster.submit("--array=3 --wrap true")
    cluster.wait("the task to end", lambda: not cluster.out(f"squeue -h -j {plain}"))
    assert f"slurm-{plain}_3.out" in os.listdir(cluster.work)


def test_case_38_a_blank_in_a_file_name(cluster):
    job = cluster.submit("-J 'test job' -o 'test output' --wrap 'echo hi'")
    cluster.wait_end(job)
    path = f"{cluster.work}/test output"
    assert cluster.job(job, "StdOut") == path
    assert cluster.wait("its end in accounting", lambda: cluster.out(f"sacct -n -X -P -j {job} -o JobName,StdOut")) == f"test job|{path}"
    shown = json.loads(cluster.out(f"scontrol show job {job} --json"))["jobs"][0]
    assert shown["standard_output"] == shown["stdout_expanded"] == path
    assert cluster.read("test output") == "hi\n"


def test_case_40_slashes_in_names_and_missing_folders(cluster):
    job = cluster.submit("--job-name=/a/b/c/ -o logs/%x-%j.out --wrap 'echo hi'")
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.job(job, "JobName") == "/a/b/c/"
    assert cluster.read(f"logs/a/b/c/-{job}.out") == "hi\n"
    deep = cluster.submit("-o logs/missing/dir/%j.out --wrap 'echo hi'")
    assert cluster.wait_end(deep) == "COMPLETED" and cluster.read(f"logs/missing/dir/{deep}.out") == "hi\n"


@pytest.mark.parametrize("option, which, error", [("-o /proc/no/%j.out", "stdout", "No such file or directory"), ("-o /proc/self/%j.out -e /etc", "stdout", None),
                                                  ("-e /dev/null/x", "stderr", "Not a directory"), ("-i no-such-input", "stdin", "No such file or directory")])
def test_case_40_a_file_that_cannot_be_opened_is_named_in_the_reason(cluster, option, which, error):
    job = cluster.submit(f"-o /dev/null {option} --wrap 'echo hi'")
    assert cluster.wait_end(job) == "FAILED"
    reason = cluster.job(job, "Reason")
    assert reason.startswith("RaisedSignal:53,_Could_not_open_") and which in reason
    name = option.split()[1].replace("%j", str(job))
    assert name in reason
    if error:
        assert reason.endswith(f"{name}:_{error.replace(' ', '_')}")
    assert cluster.job(job, "ExitCode") == "0:53"
    assert f"Could not open {which} file" in cluster.out(f"squeue -h -t all -j {job} -o %r")


def test_case_43_commas_in_exported_values(cluster):
    env = cluster.out("srun --export SSKEYIN=name_0,name_1,OTHER=v /usr/bin/env")
    assert "SSKEYIN=name_0\n" in env and "OTHER=v\n" in env
    quoted = cluster.out("srun --export 'SSKEYIN=\"name_0,name_1\",OTHER=v' /usr/bin/env")
    assert 'SSKEYIN="name_0,name_1"\n' in quoted
    assert "SSKEYIN=name_0,name_1\n" in cluster.out("srun --export SSKEYIN /usr/bin/env", env={"SSKEYIN": "name_0,name_1"})


def test_case_44_cpus_per_node(cluster):
    assert output(cluster, "-N2 -n16 --wrap 'echo $SLURM_JOB_CPUS_PER_NODE $SLURM_TASKS_PER_NODE'") == "8(x2) 8(x2)\n"


def test_case_46_a_token_is_not_passed_on(cluster):
    assert output(cluster, "--wrap 'echo [$SLURM_JWT]; srun echo ok'", env={"SLURM_JWT": "secret"}) == "[]\nok\n"


def test_control_characters_stay_in_the_record(cluster):
    name = "a\tb\x1b[31mc\x9b1m"
    job = held(cluster, "--comment $'x\\ny' -J $'a\\tb\\033[31mc\\u009b1m'")
    for command in (f"squeue -h -j {job} -o '%j|%k'", f"scontrol show job {job}", f"squeue -h -j {job} -O name:40,comment:20", f"scontrol -o show job {job}"):
        text = cluster.out(command)
        assert "a?b?[31mc??1m" in text and not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x9b]", text)
    assert json.loads(cluster.out(f"squeue -j {job} --json"))["jobs"][0]["name"] == name
    assert "\n" not in cluster.out(f"squeue -h -j {job} -o %k")
    cluster.run(f"scancel {job}")
    text = cluster.wait("it in accounting", lambda: cluster.out(f"sacct -n -X -P -j {job} -o JobName,Comment"))
    assert text == "a?b?[31mc??1m|x?y"


def test_bytes_that_are_no_text_leave_json_readable(cluster):
    odd = {rb"\xff": "\ufffd", rb"\xc3": "\ufffd", rb"\xc0\x80": "\ufffd" * 2, rb"\xed\xa0\x80": "\ufffd" * 3, rb"\xf4\x90\x80\x80": "\ufffd" * 4,
           rb"\xc3\xa9": "é", rb"\xe2\x82\xac": "€", rb"\xf0\x9f\x98\x80": "\U0001f600", rb"\xe2\x82": "\ufffd" * 2}
    job = held(cluster, "-J $'%s'" % ".".join(key.decode() for key in odd))
    name = ".".join(odd.values())
    for command in (f"squeue -j {job} --json", f"scontrol show job {job} --json"):
        assert json.loads(cluster.out(command))["jobs"][0]["name"] == name
    cluster.run(f"scancel {job}")
    assert cluster.wait("it in accounting", lambda: json.loads(cluster.out(f"sacct -X -j {job} --json"))["jobs"])[0]["name"] == name


# --- arrays and dependencies ---

def test_case_47_dependencies_on_arrays(cluster):
    ok = cluster.submit("-a 0-2 -o /dev/null --wrap 'sleep 1'")
    after_all = cluster.submit(f"-d afterok:{ok} -o /dev/null --wrap true")
    by_task = cluster.submit(f"-d aftercorr:{ok} -a 0-2 -o /dev/null --wrap true")
    later = cluster.submit(f"-d after:{ok}+2 -o /dev/null --wrap true")
    assert cluster.wait_end(after_all) == "COMPLETED"
    cluster.wait("the tasks to follow", lambda: not cluster.out(f"squeue -h -j {by_task}"))
    assert cluster.state(later) == "PENDING" and cluster.job(later, "Reason") == "Dependency"
    cluster.run(f"scancel {later}")


def test_case_47_dependencies_as_shown(cluster):
    array, single = held(cluster, "-a 1-3"), held(cluster, "")
    shown = lambda job: cluster.out(f"squeue -h -j {job} -o %E").splitlines()
    for option, text, lines in (("-d afterok:{0}", "afterok:{0}_*(unfulfilled)", 1), ("-d afterok:{0}_2", "afterok:{0}_2(unfulfilled)", 1), ("-d after:{0}+5", "after:{0}_*+5(unfulfilled)", 1),
                                ("-d afterany:{0}?afternotok:{1}", "afterany:{0}_*(unfulfilled)?afternotok:{1}(unfulfilled)", 1), ("-d aftercorr:{0}", "aftercorr:{0}_*(unfulfilled)", 1),
                                ("-a 1-2 -d aftercorr:{1}", "aftercorr:{1}(unfulfilled)", 2), ("-a 1-2 -d aftercorr:{0}", "aftercorr:{0}_*(unfulfilled)", 2)):
        job = cluster.submit(f"-o /dev/null {option.format(array, single)} --wrap true")
        assert shown(job) == [text.format(array, single)] * lines, option
        cluster.run(f"scancel {job}")
    cluster.run(f"scancel {array} {single}")


def test_case_49_an_id_that_never_was(cluster):
    refused(cluster, "sbatch -d afterok:999999 --wrap true", "999999", "Job dependency problem")


def test_case_49_a_job_forgotten_long_ago_is_looked_up(cluster):
    good = cluster.submit("-o /dev/null --wrap true")
    bad = cluster.submit("-o /dev/null --wrap 'exit 1'")
    array = cluster.submit("-a 0-1 -o /dev/null --wrap 'exit $SLURM_ARRAY_TASK_ID'")
    open_end = held(cluster, "")
    for job in (good, bad):
        cluster.wait_end(job)
    cluster.wait("all ends in accounting", lambda: len(re.findall("COMPLETED|FAILED", cluster.out(f"sacct -n -X -P -j {good},{bad},{array} -o State"))) == 4)
    cluster.run("cp $SLURM_CONF saved49 && sed -i s/^MinJobAge=.*/MinJobAge=2/ $SLURM_CONF && scontrol reconfigure")
    cluster.wait("slurmctld to forget them", lambda: cluster.run(f"scontrol show job {array}", check=False).rc and cluster.run(f"scontrol show job {bad}", check=False).rc)
    cluster.run("cp saved49 $SLURM_CONF && scontrol reconfigure")
    assert cluster.wait_end(cluster.submit(f"-d afterok:{good} -o /dev/null --wrap true")) == "COMPLETED"
    assert cluster.wait_end(cluster.submit(f"-d afternotok:{bad},afterok:{array}_0 -o /dev/null --wrap true")) == "COMPLETED"
    for never in (f"afterok:{good}:{bad}", f"afterok:{array}"):
        waits = cluster.submit(f"-d {never} -o /dev/null --wrap true")
        assert cluster.job(waits, "Reason") == "DependencyNeverSatisfied"
        cluster.run(f"scancel {waits}")
    refused(cluster, f"sbatch -d afterok:{array}_7 --wrap true", "Job dependency problem")
    cluster.run(f"scontrol update job={open_end} dependency=afterok:{good}")
    refused(cluster, f"scontrol update job={open_end} dependency=afterok:{open_end + 5000}", "Job dependency problem")
    cluster.run(f"scancel {open_end}")


def test_case_50_a_dependent_that_can_never_run_ends_in_accounting_too(cluster):
    fails = cluster.submit("-o /dev/null --wrap 'sleep 1; exit 1'")
    child = cluster.submit(f"-d afterok:{fails} --kill-on-invalid-dep=yes -o /dev/null --wrap true")
    assert cluster.wait_end(child) == "CANCELLED"
    row = cluster.wait("its end in accounting", lambda: cluster.out(f"sacct -n -X -P -s CA -S now-1hour -E now -j {child} -o State,End"))
    assert re.fullmatch(r"CANCELLED by \d+\|\d{4}-.*", row) or re.fullmatch(r"CANCELLED\|\d{4}-.*", row)


@pytest.mark.parametrize("case, indexes", [(52, "1-2000"), (52, "1001-2000"), (53, "4294967297")])
def test_array_indexes_that_are_too_large(cluster, case, indexes):
    refused(cluster, f"sbatch -a {indexes} --wrap true", "1001", "Invalid job array specification")


def test_case_52_the_largest_index(cluster):
    cluster.run(f"scancel {held(cluster, '-a 0-1000')}")


def test_case_55_wait_exits_with_the_highest_status(cluster):
    assert cluster.run("sbatch --wait -a 1-3 -o /dev/null --wrap '[ $SLURM_ARRAY_TASK_ID = 2 ] && exit 3; exit 0'", check=False).rc == 3


# --- lists and accounting ---

# What the reference prints for a running job with a limit and for a held one without; a pattern where it moves.
LETTERS = {
    "a": (r"(?:root|\(null\))", r"(?:root|\(null\))"), "A": (r"{id}", r"{id}"), "b": ("N/A", "N/A"), "B": ("node-1", "n/a"), "c": ("1", "1"), "C": ("1", "1"), "d": ("0", "0"), "D": ("1", "1"),
    "e": (r"\d{{4}}-\d\d-\d\dT\S+", "N/A"), "E": (r"\(null\)", r"\(null\)"), "f": (r"\(null\)", r"\(null\)"), "F": ("{id}", "{id}"), "g": (r"\w+", r"\w+"), "G": (r"\d+", r"\d+"),
    "h": ("NO", "NO"), "H": (r"\*", r"\*"), "i": ("{id}", "{id}"), "I": (r"\*", r"\*"), "j": ("wrap", "wrap"), "J": (r"\*", r"\*"), "k": (r"\(null\)", r"\(null\)"), "K": ("N/A", "N/A"),
    "l": ("10:00", "UNLIMITED"), "L": (r"(?:9:\d\d|10:00)", "UNLIMITED"), "m": ("2000M", "2000M"), "M": (r"0:\d\d", "0:00"), "n": ("node-1", ""), "N": ("node-1", ""), "o": (r"\(null\)", r"\(null\)"),
    "O": ("0", "0"), "p": (r"0\.\d{{14}}", r"0\.0{{14}}"), "P": ("main", "main"), "q": ("normal", "normal"), "Q": (r"[1-9]\d*", "0"), "r": ("None", "JobHeldUser"), "R": ("node-1", r"\(JobHeldUser\)"),
    "s": (r"s\w{{13}}", r"s\w{{13}}"), "S": (r"\d{{4}}-\d\d-\d\dT\S+", "N/A"), "t": ("R", "PD"), "T": ("RUNNING", "PENDING"), "u": (r"\w+", r"\w+"), "U": (r"\d+", r"\d+"),
    "v": (r"\(null\)", r"\(null\)"), "V": (r"\d{{4}}-\d\d-\d\dT\S+", r"\d{{4}}-\d\d-\d\dT\S+"), "w": (r"\(null\)", r"\(null\)"), "W": (r"\(null\)", r"\(null\)"), "x": ("", ""), "X": ("N/A", "N/A"),
    "y": ("0", "0"), "Y": (r"\(null\)", r"\(null\)"), "z": (r"\*:\*:\*", r"\*:\*:\*"), "Z": ("/.*", "/.*"),
}


def test_case_56_time_left_and_every_letter(cluster):
    cluster.wait_idle()
    limited = cluster.submit("-w node-1 -t 10 -o /dev/null --wrap 'sleep 60'")
    waits = held(cluster, "-t 0")
    free = cluster.submit("-t 0 -o /dev/null --wrap 'sleep 60'")
    for job in (limited, free):
        cluster.wait_state(job, "RUNNING")
    assert cluster.out(f"squeue -h -j {free} -o %L") == "UNLIMITED"
    wrong = []
    for letter, want in LETTERS.items():
        for job, pattern in zip((limited, waits), want):
            got = cluster.run(f"squeue -h -j {job} -o %{letter}").out
            if not re.fullmatch(pattern.format(id=job) + "\n", got):
                wrong.append((letter, job, got, pattern))
    assert not wrong
    cluster.run(f"scancel {limited} {free} {waits}")


def test_case_58_long_columns_keep_a_blank_between_them(cluster):
    job = held(cluster, "-J averyverylongnameindeed")
    assert cluster.out(f"squeue -h -j {job} -o '%.4j %.3T %.18i'").split() == ["aver", "PEN", str(job)]
    assert cluster.out(f"squeue -h -j {job} -O Name:5,State:5,JobID:8,UserName:3").split()[0] == f"averyPENDI{job}"
    assert cluster.out(f"squeue -h -j {job} -O 'Name: ,State: ,JobID: '") == f"averyverylongnameindeed PENDING {job}"
    cluster.run(f"scancel {job}")


def test_case_59_sorting(cluster):
    jobs = [held(cluster, f"-J sort59 -p {part}") for part in ("main", "short", "main")]
    def order(how):
        return cluster.out(f"squeue -h -n sort59 -o %i {how}").split()
    a, b, c = map(str, jobs)
    assert order("-S i") == order("-Si") == [a, b, c] and order("-S -i") == order("-S-i") == [c, b, a]
    assert order("") == order("-S P,t,-p") == order("-S P,i") == [a, c, b] and order("-S -P,-i") == [b, c, a]
    cluster.run(f"scancel {a} {b} {c}")


def test_case_61_unknown_ids(cluster):
    known = held(cluster, "")
    got = refused(cluster, "squeue -j 999999", "slurm_load_jobs error: Invalid job id specified")
    assert got.rc == 1
    assert cluster.out(f"squeue -h -j 999999,{known} -o %i") == str(known)
    cluster.run(f"scancel {known}")


def test_case_62_format_from_the_environment(cluster):
    job = held(cluster, "")
    assert cluster.out(f"squeue -h -j {job}", env={"SQUEUE_FORMAT": "%i"}) == str(job)
    assert cluster.out(f"squeue -h -j {job} -o %t", env={"SQUEUE_FORMAT": "%i"}) == "PD"
    cluster.run(f"scancel {job}")


def test_case_65_json_by_the_name_of_its_version(cluster):
    plain, named = (json.loads(cluster.out(f"squeue --json{v}")) for v in ("", "=v0.0.45"))
    assert plain["jobs"] == named["jobs"] and named["meta"]["plugin"]["data_parser"] == "data_parser/v0.0.45"
    assert "v0.0.39" in refused(cluster, "squeue --json=v0.0.39", "data_parser/v0.0.39").err
    assert cluster.out("squeue --json=list").split() == ["Possible", "data_parser", "plugins:", "data_parser/v0.0.45"]


@pytest.mark.parametrize("mode", ["truncate", "append"])
def test_case_67_a_job_requeued_three_times(cluster, mode):
    job = cluster.submit(f"--requeue --open-mode={mode} -o rq-%j.out --wrap 'echo run ${{SLURM_RESTART_COUNT:-0}}; touch up-$SLURM_JOB_ID-${{SLURM_RESTART_COUNT:-0}}; sleep 100'")
    for i in range(4):
        cluster.wait(f"run {i}", lambda: os.path.exists(f"{cluster.work}/up-{job}-{i}"))
        if i < 3:
            cluster.run(f"scontrol requeue {job}")
    cluster.run(f"scancel {job}")
    cluster.wait_end(job)
    runs = re.findall(r"run \d", cluster.read(f"rq-{job}.out"))
    assert runs == (["run 3"] if mode == "truncate" else [f"run {i}" for i in range(4)])
    last = cluster.wait("the end in accounting", lambda: [x for x in cluster.out(f"sacct -n -X -P -j {job} -o State,Restarts").split("\n") if x.startswith("CANCELLED")])
    assert len(last) == 1 and last[0].endswith("|3")
    every = cluster.out(f"sacct -n -X -D -P -j {job} -o State,Restarts").split("\n")
    assert [x.split("|")[0].split()[0] for x in every] == ["REQUEUED"] * 3 + ["CANCELLED"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a user")
def test_case_68_large_user_ids(cluster):
    name = "berthbig"
    add_user(name, "--no-log-init", "-u", "3000000000")
    job = cluster.submit("-H -o /dev/null --wrap true", user=name)
    assert cluster.out("squeue --me -h -o '%i %U'", user=name) == f"{job} 3000000000"
    assert cluster.out(f"squeue -u 3000000000 -h -o %i") == str(job)
    assert json.loads(cluster.out(f"squeue -j {job} --json"))["jobs"][0]["user_id"] == 3000000000
    assert "UserId=berthbig(3000000000)" in cluster.out(f"scontrol show job {job}")
    cluster.run("scancel --me", user=name)
    assert cluster.wait_end(job) == "CANCELLED"
    assert cluster.wait("it in accounting", lambda: cluster.out(f"sacct -n -X -P -j {job} -o UID,State")).startswith("3000000000|CANCELLED by 3000000000")


def test_a_running_script_has_its_row(cluster):
    job = cluster.submit("-n2 --mem=1536 -o /dev/null --wrap 'sleep 60'")
    cluster.wait_state(job, "RUNNING")
    rows = cluster.wait("it in accounting", lambda: cluster.out(f"sacct -n -P -j {job} -s R -o JobID,State,NCPUS,NTasks,AllocTRES"))
    assert rows.split("\n")[1] == f"{job}.batch|RUNNING|2|1|cpu=2,mem=1.50G,node=1"
    assert cluster.out(f"sacct -n -P -X -j {job} -o JobID") == str(job)
    assert cluster.out(f"sacct -n -P -j {job}.batch -o JobID") == f"{job}.batch"
    cluster.run(f"scancel {job}")
    cluster.wait_end(job)
    cluster.wait("one row of the script", lambda: cluster.out(f"sacct -n -P -j {job} -o JobID,State").split("\n")[1:] == [f"{job}.batch|CANCELLED"])


# --- how jobs end ---

def ends(cluster, job, want_exit, want_derived):
    cluster.wait_end(job)
    assert cluster.job(job, "ExitCode") == want_exit
    assert f"DerivedExitCode={want_derived}" in cluster.out(f"scontrol -d show job {job}")
    assert cluster.out(f"squeue -h -t all -j {job} -O exit_code:20,DerivedEC:20").split() == [want_exit, want_derived]
    cluster.wait("the same in accounting", lambda: cluster.out(f"sacct -n -X -P -j {job} -o ExitCode,DerivedExitCode") == f"{want_exit}|{want_derived}")


def test_case_71_exit_codes_are_the_same_everywhere(cluster):
    killed = cluster.submit("-o /dev/null --wrap 'kill -9 $$'")
    ends(cluster, killed, "0:9", "0:0")
    assert cluster.job(killed, "Reason") == "RaisedSignal:9(Killed)"
    steps = cluster.submit("-o /dev/null --wrap 'srun -n1 sh -c \"exit 3\"; srun -n1 sh -c \"exit 5\"; exit 0'")
    ends(cluster, steps, "0:0", "5:0")
    shot = cluster.submit("-o /dev/null --wrap 'srun -n1 sh -c \"kill -11 \\$\\$\"; exit 0'")
    ends(cluster, shot, "0:0", "0:11")
    assert cluster.out(f"sacct -n -P -j {shot}.0 -o State") == "CANCELLED"


@pytest.mark.parametrize("signal, said", [("USR1@55", "step"), ("B:USR1@55", "shell")])
def test_case_74_the_signal_before_the_limit(cluster, signal, said):
    script = "#!/bin/bash\ntrap 'echo shell; exit 0' USR1\nsrun sh -c 'trap \"echo step; exit 0\" USR1; sleep 50 & wait' &\nsleep 1\nwait\nexit 0\n"
    assert output(cluster, f"-t 1 --signal={signal}", script).split()[0] == said


def test_case_85_a_step_that_waits_says_for_what(cluster):
    script = "#!/bin/bash\nsrun -n1 -J first sh -c 'until [ -e go85 ]; do sleep 0.1; done' &\nsleep 0.5\nsrun -n1 --exact true 2>second85.txt\nwait\n"
    job = cluster.submit("-n2 --mem=1000 -o /dev/null", stdin=script)
    said = cluster.wait("the second step to wait", lambda: os.path.exists(f"{cluster.work}/second85.txt") and "held by" in cluster.read("second85.txt") and cluster.read("second85.txt"))
    assert f"Job {job} step creation temporarily disabled, retrying (Requested nodes are busy)" in said
    assert f"all 1000 MiB of memory of job {job} are held by step {job}.0 (first)" in said
    open(f"{cluster.work}/go85", "w").close()
    assert cluster.wait_end(job) == "COMPLETED"


def test_case_86_all_memory_of_each_node(cluster):
    job = cluster.submit("-w node-[1-2] --mem=0 -o /dev/null --wrap 'sleep 20'")
    cluster.wait_state(job, "RUNNING")
    assert cluster.job(job, "AllocTRES").startswith("cpu=2,mem=32000M")
    assert "AllocMem=16000" in cluster.out("scontrol show node node-1")
    cluster.run(f"scancel {job}")


# --- other users' jobs, missing steps, counters ---

def test_refusals_of_other_users(cluster, user):
    job = cluster.submit("-o /dev/null --wrap 'sleep 60'")
    cluster.wait_state(job, "RUNNING")
    assert refused(cluster, f"scancel {job}", f"Kill job error on job id {job}: Access/permission denied", user=user).rc == 210
    for act in ("hold", "release"):
        refused(cluster, f"scontrol {act} {job}", f"Invalid user id for job {job}\nslurm_suspend error:Invalid user id", user=user)
    refused(cluster, f"scontrol update job {job} timelimit=1", f"Invalid user id for job {job}", user=user)
    refused(cluster, f"scontrol notify {job} hi", "job notify failure: Invalid user id", user=user)
    refused(cluster, f"scontrol suspend {job}", f"Access/permission denied for job {job}", user=user)
    missing = refused(cluster, f"scancel -v {job}.7", f"Terminating step {job}.7", f"Kill job error on job step id {job}: Invalid job id specified")
    assert missing.rc == 225
    cluster.run(f"scancel {job}")


def test_what_is_not_there_is_said_on_stdout(cluster):
    for thing in ("partition nope", "node nope"):
        got = cluster.run(f"scontrol show {thing}", check=False)
        assert got.rc == 1 and got.err == "" and got.out == f"{thing.split()[0].capitalize()} nope not found\n"


def test_only_testing_names_a_time_and_a_place(cluster):
    got = cluster.run("sbatch --test-only --wrap true")
    next_id = re.search(r"NEXT_JOB_ID\s+= (\d+)", cluster.out("scontrol show config")).group(1)
    assert re.search(rf"sbatch: Job {next_id} to start at \S+ a using 1 processors on nodes node-\d in partition main", got.err)
    refused(cluster, "sbatch --test-only -N9 --wrap true", "allocation failure: ")


def test_counters_are_counted(cluster):
    job = held(cluster, "-a 1-7")
    text = cluster.out("sdiag")
    value = {k.strip(): int(v) for k, v in re.findall(r"^\s*([A-Z][^:\n]*):\s+(\d+)$", text, flags=re.M)}
    assert value["Jobs pending"] >= 7 and value["Jobs submitted"] > 0
    assert int(re.search(r"Main schedule.*?Total cycles: (\d+)", text, flags=re.S).group(1)) > 0
    assert "Not kept yet" not in text
    assert re.search(r"SUBMIT +\( +\d+\) count:\d+ +ave_time:\d+ +total_time:\d+", text)
    assert re.search(r"root +\( +0\) count:\d+", text) or os.geteuid() != 0
    shown = json.loads(cluster.out("sdiag --json"))["statistics"]
    assert shown["schedule_exit"]["end_job_queue"] > 0 and set(shown["bf_exit"]) == {"end_job_queue", "bf_max_job_start", "bf_max_job_test", "state_changed", "bf_node_space_size",
                                                                                     "bf_max_time"}
    assert re.search(r"^Latency for 1000 calls to gettimeofday\(\): \d+ microseconds$", text, re.M) and shown["gettimeofday_latency"] > 0
    assert shown["jobs_pending"] >= 7 and shown["rpcs_by_user"][0]["count"] > 0
    cluster.run(f"scancel {job}")


@pytest.mark.parametrize("command", ["squeue", "sinfo", "scontrol", "scancel", "sdiag", "sbatch", "salloc", "srun"])
def test_clusters_are_this_one_or_none(cluster, command):
    rest = {"scontrol": "show node node-1", "scancel": "999999", "sbatch": "-H -o /dev/null --wrap true", "salloc": "true", "srun": "true"}.get(command, "")
    refused(cluster, f"{command} -M nope {rest}", f"{command}: error: No cluster 'nope' known by database.",
            f"{command}: error: 'nope' can't be reached now, or it is an invalid entry for --cluster.  Use 'sacctmgr list clusters' to see available clusters.")
    for name in ("berth", "all"):
        got = cluster.run(f"{command} -M {name} {rest}")
        if command in ("squeue", "sinfo"):
            assert got.out.startswith("CLUSTER: berth\n")
            assert not cluster.out(f"{command} -h -M {name}").startswith("CLUSTER")
        if command == "sbatch":
            job = re.fullmatch(r"Submitted batch job (\d+) on cluster berth\n", got.out).group(1)
            assert re.fullmatch(r"\d+;berth", cluster.out(f"sbatch --parsable -M {name} {rest}"))
            cluster.run(f"scancel --me {job}")
