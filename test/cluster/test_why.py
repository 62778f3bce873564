"""scontrol why and squeue --why: everything that holds a job back, as text and JSON."""
import json


def test_why_a_job_waits_and_died(cluster):
    c = cluster
    busy = c.submit("--exclusive -N4 -t 60 --wrap 'sleep 600'")
    c.wait_state(busy, "RUNNING")
    first = c.submit("-N2 --gres=gpu:2 -t 30 -J first --wrap true")
    second = c.submit(f"-H -d afterok:{busy} -t 30 --wrap true")
    text = c.out(f"scontrol why {first}")
    assert "2 nodes of partition main are needed at once" in text and f"job {busy} " in text and "gpu:2 a node" in text
    job = json.loads(c.out(f"scontrol why {first} --json"))["jobs"][0]
    codes = {i["code"]: i for i in job["conditions"]}
    assert job["name"] == "first" and codes["nodes"]["facts"]["needed"] == 2 and codes["nodes"]["facts"]["room"] == 0
    holder = codes["nodes"]["holders"][0]
    assert holder["id"] == str(busy) and holder["what"] == "running" and holder["nodes"] == 4
    assert {p["part"] for p in codes["nodes"]["parts"]} >= {"state", "cpus", "gres"}
    c.wait("a planned start", lambda: json.loads(c.out(f"scontrol why {first} --json"))["jobs"][0]["plan"]["start"]["set"])
    why = json.loads(c.out(f"squeue --why --json -j {second}"))["jobs"]
    assert [i["code"] for i in why[0]["conditions"]][:2] == ["hold", "dependency"]
    assert "hold: it is held by its owner" in c.out("squeue --why")
    c.run(f"scancel {busy} {first} {second}")
    c.wait_state(busy, "CANCELLED")
    assert "it was cancelled" in c.out(f"scontrol why {busy}")


def test_why_it_ended(cluster):
    c = cluster
    bad = c.submit("--wrap 'srun -J worse sh -c \"exit 7\"; exit 3'")
    c.wait_state(bad, "FAILED")
    text = c.out(f"scontrol why {bad}")
    assert "exit code 3" in text and "step 0 (worse) ended with exit code 7" in text
    gone = c.run("scontrol why 99999", check=False)
    assert gone.rc == 1 and "Invalid job id specified" in gone.err
