"""What sacct prints, byte for byte, against recorded behaviour of the reference (sacct.txt); the jobs are those of src/cli/sacct_fake.c."""
import os
import shlex
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BERTH_BUILD", os.path.join(os.path.dirname(os.path.dirname(HERE)), "build"))


def cases():
    found = []
    for number, line in enumerate(open(os.path.join(HERE, "sacct.txt")), 1):
        line = line.rstrip("\n")
        if line.startswith("$ "):
            found.append({"command": line[2:], "stdout": [], "stderr": [], "status": 0, "line": number})
        elif line.startswith("2 "):
            found[-1]["stderr"].append(line[2:])
        elif line.startswith("= "):
            found[-1]["status"] = int(line[2:])
        else:
            found[-1]["stdout"].append(line)
    return found


@pytest.mark.parametrize("case", cases(), ids=lambda c: f"line{c['line']}")
def test_as_recorded(case):
    argv = shlex.split(case["command"])
    argv[0] = os.path.join(BUILD, "src", "cli", "sacct_fake")
    done = subprocess.run(argv, env={"PATH": "/usr/bin:/bin", "TZ": "UTC"}, capture_output=True, text=True, timeout=30)
    assert done.stdout.splitlines() == case["stdout"]
    assert done.stderr.splitlines() == case["stderr"]
    assert done.returncode == case["status"]
