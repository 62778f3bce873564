"""Proves: cases that others got wrong and that need no daemon: host lists, scripts, options. Each test names its row ("case 14")."""
import os
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(os.environ.get("BERTH_BUILD", os.path.join(ROOT, "build")), "bin")


def run(*argv, stdin=None, **more):
    env = dict({"PATH": "/usr/bin:/bin", "SLURM_CONF": "/nonexistent/slurm.conf"}, **more)
    return subprocess.run([os.path.join(BIN, argv[0]), *argv[1:]], env=env, input=stdin, capture_output=True, text=True, timeout=30,
                          **({} if stdin is not None else {"stdin": subprocess.DEVNULL}))


def hostnames(text):
    return run("scontrol", "show", "hostnames", text)


@pytest.mark.parametrize("case, text, hosts", [
    (14, "nodeA,nodeB[001,003],nodeC", "nodeA nodeB001 nodeB003 nodeC"),
    (16, "b1u01n1,b2u[05,02]n3,b3u03n4", "b1u01n1 b2u05n3 b2u02n3 b3u03n4"),
    (16, "node[0008-0010]-int", "node0008-int node0009-int node0010-int"),
    (19, "ml-16-node-[001-002,004],ml-17-node-[001-003]",
     "ml-16-node-001 ml-16-node-002 ml-16-node-004 ml-17-node-001 ml-17-node-002 ml-17-node-003"),
    (20, "c457-[011-012]", "c457-011 c457-012"),
    (20, "c427-032,c429-002", "c427-032 c429-002"),
    (20, "c438-[062,104]", "c438-062 c438-104"),
])
def test_host_names(case, text, hosts):
    got = hostnames(text)
    assert got.stdout.split() == hosts.split() and got.stderr == "" and got.returncode == 0


@pytest.mark.parametrize("text, position", [("node[01", 8), ("node01]", 7), ("node[[01]]", 6), ("node[]", 6), ("node[01,]", 9), ("node[,01]", 6), ("node[01,,02]", 9)])
def test_case_17_malformed_host_lists_are_refused_with_the_position(text, position):
    got = hostnames(text)
    assert got.returncode == 1 and got.stdout == ""
    assert f'"{text}"' in got.stderr and got.stderr.rstrip().endswith(f"at position {position}")


@pytest.mark.parametrize("hosts, folded", [("c457-011,c457-012", "c457-[011-012]"), ("c427-032,c429-002", "c427-032,c429-002"), ("a1,a2,a3", "a[1-3]"), ("node01,node02", "node[01-02]")])
def test_case_20_folding_keeps_padding_and_prefixes(hosts, folded):
    assert run("scontrol", "show", "hostlist", hosts).stdout == folded + "\n"


def test_case_22_host_lists_from_stdin_and_file(tmp_path):
    assert run("scontrol", "show", "hostlist", "-", stdin="n1\nn2\nn3\n").stdout == "n[1-3]\n"
    (tmp_path / "hosts").write_text("n1\nn2\nn3\n")
    assert run("scontrol", "show", "hostlist", str(tmp_path / "hosts")).stdout == "n[1-3]\n"
    bad = run("scontrol", "show", "hostlist", "-", stdin="n1\nn[2\n")
    assert bad.returncode == 1 and bad.stdout == "" and "n[2" in bad.stderr


def script(tmp_path, text):
    path = tmp_path / "s.sh"
    path.write_bytes(text.encode())
    return run("sbatch", str(path))


@pytest.mark.parametrize("text, message", [
    ("", "Batch script is empty!"),
    ("echo hi\n", "This does not look like a batch script."),
    ("#!/bin/bash\r\necho hi\r\n", "Batch script contains DOS line breaks (\\r\\n)"),
])
def test_case_25_scripts_that_are_none(tmp_path, text, message):
    got = script(tmp_path, text)
    assert got.returncode == 1 and got.stdout == "" and message in got.stderr.splitlines()[0]


def test_case_28_words_behind_a_directive(tmp_path):
    got = script(tmp_path, "#!/bin/bash\n#SBATCH --job-name=my_nice_job      (sets the job name)\ntrue\n")
    assert got.returncode != 0 and "(sets" in got.stderr


def test_case_41_parentheses_in_a_directive_do_not_eat_the_rest(tmp_path):
    got = script(tmp_path, "#!/bin/bash\n#SBATCH -J nf-see (1)\n#SBATCH -o x\ntrue\n")
    assert got.returncode != 0 and "(1)" in got.stderr


@pytest.mark.parametrize("case, argv, message", [
    (2, ["-t", "2-x"], "Invalid --time specification"),
    (2, ["-t", "1:2:3:4"], "Invalid --time specification"),
    (7, ["--begin="], "Invalid --begin specification"),
    (7, ["--time="], "Invalid --time specification"),
    (35, ["--requeue=foo"], "--requeue"),
    (35, ["--gres=gpu:2", "--gpus-per-node=4"], "--gpus-per-node"),
])
def test_bad_values_are_refused(case, argv, message):
    got = run("sbatch", *argv, "--wrap", "true")
    assert got.returncode != 0 and got.stdout == "" and message in got.stderr
