"""R15: what sacct prints, byte for byte, against recorded behaviour of the reference (sacct.txt); the jobs are those of src/cli/sacct_fake.c."""
import json
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


def sacct_json(*more, form="--json"):
    argv = [os.path.join(BUILD, "src", "cli", "sacct_fake"), form, *more]
    done = subprocess.run(argv, env={"PATH": "/usr/bin:/bin", "TZ": "UTC"}, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def shape(value):
    """Members and types; of a list of maps those of its first one."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def same_shape(ours, recorded, path="job"):
    assert type(ours) is type(recorded), path
    if isinstance(recorded, dict):
        assert list(ours) == list(recorded), path
        for key in recorded:
            same_shape(ours[key], recorded[key], f"{path}.{key}")
    elif isinstance(recorded, list) and recorded and ours:
        same_shape(ours[0], recorded[0], path + "[]")
    else:
        assert ours == recorded or isinstance(recorded, list), path


def test_json_has_the_members_of_the_reference():
    reply = json.loads(sacct_json("-j", "587"))
    assert list(reply) == ["jobs", "meta", "errors", "warnings"]
    assert reply["meta"]["command"] == ["sacct_fake", "--json", "-j", "587"]
    job = reply["jobs"][0]
    job["steps"].sort(key=lambda s: not s["tres"]["requested"]["max"])   # the measured one first, as it was recorded
    with open(os.path.join(HERE, "sacct_job.json"), encoding="utf-8") as f:
        same_shape(shape(job), shape(json.load(f)))


def test_json_values():
    job, task, cancelled, waiting = json.loads(sacct_json())["jobs"]
    assert job["state"] == {"current": ["FAILED"], "reason": "None"} and job["exit_code"]["return_code"]["number"] == 3
    assert job["derived_exit_code"]["return_code"]["number"] == 1
    assert job["time"]["limit"] == {"set": True, "infinite": False, "number": 5} and job["time"]["elapsed"] == 2
    assert [(t["type"], t["id"], t["count"]) for t in job["tres"]["allocated"]] == [("cpu", 1, 2), ("mem", 2, 200), ("node", 4, 1), ("billing", 5, 2)]
    assert [s["step"]["id"] for s in job["steps"]] == ["587.batch", "587.0", "587.1"]
    measured = job["steps"][1]["tres"]
    assert {"type": "mem", "name": "", "id": 2, "count": 1875968, "task": 0, "node": "node-2"} in measured["requested"]["max"]
    assert {"type": "fs", "name": "disk", "id": 6, "count": 8298} in measured["requested"]["total"]
    assert (task["array"]["job_id"], task["array"]["task_id"]["number"]) == (588, 0)
    assert cancelled["state"]["current"] == ["CANCELLED"] and cancelled["kill_request_user"] == "root" and cancelled["nodes"] == "None assigned"
    assert waiting["array"]["task"] == "0xE" and waiting["time"]["limit"]["infinite"] and not waiting["steps"]


def test_json_without_steps_and_yaml():
    assert [j["steps"] for j in json.loads(sacct_json("-X", "-j", "587"))["jobs"]] == [[]]
    assert sacct_json("-j", "587", form="--yaml").startswith("%YAML 1.1\n--- !!map\n!!str jobs: !!seq\n- !!map\n  !!str account: !!str research\n")
