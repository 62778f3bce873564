"""What sbatch, salloc, srun and scancel say and return before any controller is asked, against recorded behaviour of the reference (submit.txt, srun.txt)."""
import os
import shlex
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BERTH_BUILD", os.path.join(os.path.dirname(os.path.dirname(HERE)), "build"))


def unescape(text):
    return text.encode().decode("unicode_escape").encode("latin-1")


def cases():
    found, case = [], None
    lines = [(name, number, line) for name in ("submit", "srun") for number, line in enumerate(open(os.path.join(HERE, name + ".txt")), 1)]
    for name, number, line in lines:
        kind, _, rest = line.rstrip("\n").partition(" ")
        if kind == "$":
            case = {"command": rest, "script": None, "stderr": [], "line": f"{name}-{number}"}
            found.append(case)
        elif kind == "<":
            case["script"] = unescape(rest)
        elif kind in ("2", "2?"):
            case["stderr"].append(rest)
        elif kind == "=":
            case["status"] = int(rest)
    return found


@pytest.mark.parametrize("case", cases(), ids=lambda c: c["line"])
def test_as_recorded(case, tmp_path):
    if case["script"] is not None:
        (tmp_path / "s.sh").write_bytes(case["script"])
    argv = shlex.split(case["command"])
    argv[0] = os.path.join(BUILD, "bin", argv[0])
    env = {"PATH": "/usr/bin:/bin", "SLURM_CONF": "/nonexistent/slurm.conf"}
    done = subprocess.run(argv, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    assert done.stderr.splitlines() == case["stderr"]
    assert done.returncode == case["status"]
    assert done.stdout == ""


def test_scancel_usage_ends_as_the_reference(tmp_path):
    out = subprocess.run([os.path.join(BUILD, "bin", "scancel"), "--usage"], capture_output=True, text=True, timeout=30).stdout
    assert out.startswith("Usage: scancel [") and out.rstrip().endswith("[job_id[_array_id][.step_id]]")


@pytest.mark.parametrize("command", "sacct salloc sattach sbatch sbcast scancel scontrol sdiag sinfo sprio squeue srun sstat".split())
def test_help_says_usage_once(command):
    got = subprocess.run([os.path.join(BUILD, "bin", command), "--help"], capture_output=True, text=True, timeout=30)
    assert got.returncode == 0 and got.stderr == ""
    assert got.stdout.startswith(f"Usage: {command} ") and got.stdout.count("Usage:") == 1


@pytest.mark.parametrize("command", ["sbatch", "salloc", "srun", "scancel"])
def test_version_and_help(command):
    run = lambda option: subprocess.run([os.path.join(BUILD, "bin", command), option], capture_output=True, text=True, timeout=30)
    assert run("--version").stdout == "slurm 26.05.5\n"
    got = run("--help")
    assert got.returncode == 0 and got.stdout.startswith("Usage: ") and "Help options:" in got.stdout
