#!/usr/bin/python3
"""Runs every test tier and ends in one line: "N passed, N failed, N skipped".

  check.py [--build DIR] [TIER...]      tiers: unit scenario simulation fuzz asan tidy compat cluster vm (default: all)

C tiers are meson suites (unit, scenario, simulation, fuzz); asan runs the first three again under AddressSanitizer and UBSan in
BUILD-asan; the others are pytest folders under test/. Each failed or skipped test is named, with its reason.
"""
import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MESON_TIERS = ["unit", "scenario", "simulation", "fuzz"]
PYTEST_TIERS = ["tidy", "compat", "cluster", "vm"]
TIERS = MESON_TIERS + ["asan"] + PYTEST_TIERS


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.notes = []

    def add(self, name, outcome, text=""):
        setattr(self, outcome, getattr(self, outcome) + 1)
        if outcome != "passed":
            first = (text.strip().splitlines() or [""])[0]
            self.notes.append(f"{outcome}: {name}: {first}")


def read_junit(path, tier, tally):
    """Adds the outcomes of one JUnit file; returns how many there were."""
    count = 0
    if not os.path.exists(path):
        return 0
    for case in ET.parse(path).iter("testcase"):
        name = f"{tier}: {case.get('classname', '')}/{case.get('name')}"
        bad = case.find("failure") if case.find("failure") is not None else case.find("error")
        skip = case.find("skipped")
        count += 1
        if bad is not None:
            tally.add(name, "failed", bad.get("message") or bad.text or "")
        elif skip is not None:
            tally.add(name, "skipped", skip.get("message") or skip.text or "")
        else:
            tally.add(name, "passed")
    return count


def run(command, **kwargs):
    return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, **kwargs)


def meson_tier(build, suite, label, tally):
    listed = run(["meson", "test", "-C", build, "--list", "--suite", suite], capture_output=True, text=True)
    if not [line for line in listed.stdout.splitlines() if " / " in line or suite in line]:
        return
    junit = os.path.join(build, "meson-logs", "testlog.junit.xml")
    if os.path.exists(junit):
        os.unlink(junit)
    env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0:abort_on_error=1", UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1")
    got = run(["meson", "test", "-C", build, "--no-rebuild", "--suite", suite, "--print-errorlogs", "--timeout-multiplier", "3"], env=env,
              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    count = read_junit(junit, label, tally)
    if got.returncode and (not count or not any(n.startswith(f"failed: {label}") for n in tally.notes)):
        tally.add(f"{label}: meson test", "failed", f"exit {got.returncode}")
    if got.returncode:
        print(got.stdout[-6000:])


def programs_of(build, suites):
    """What the tests of these suites run, as ninja targets: half of all there is to build."""
    def ask(what):
        return json.loads(run(["meson", "introspect", build, what], capture_output=True, text=True, check=True).stdout)
    needed = {target for test in ask("--tests") if suites & {s.split(":")[-1] for s in test["suite"]} for target in test["depends"]}
    return [os.path.relpath(name, os.path.realpath(build)) for target in ask("--targets") if target["id"] in needed for name in target["filename"]]


def asan_tier(build, tally):
    asan = build.rstrip("/") + "-asan"
    suites = ["unit", "scenario", "simulation"]
    if not os.path.exists(os.path.join(asan, "build.ninja")):
        # With sanitizers -O2 and full debug information cost three times the compiler's work; line numbers are there with -g1.
        run(["meson", "setup", asan, "-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dwerror=false", "-Dbuildtype=custom", "-Doptimization=1",
             "-Ddebug=false", "-Dc_args=-g1"], stdout=subprocess.DEVNULL, check=True)
    got = run(["ninja", "-C", asan, "--quiet", *programs_of(asan, set(suites))], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if got.returncode:
        print(got.stdout[-4000:])
        tally.add("asan: build", "failed", "does not build")
        return
    for suite in suites:
        meson_tier(asan, suite, f"asan {suite}", tally)


def pytest_tier(build, tier, tally):
    folder = os.path.join(ROOT, "test", tier)
    if not os.path.isdir(folder) or not any(n.startswith("test_") for n in os.listdir(folder)):
        return
    with tempfile.TemporaryDirectory() as tmp:
        junit = os.path.join(tmp, "junit.xml")
        env = dict(os.environ, BERTH_BUILD=os.path.abspath(build), PYTHONDONTWRITEBYTECODE="1")
        # Clusters mostly wait: one file beside another takes half as long (python3-pytest-xdist; without it one after the other).
        beside = ["-n", "2", "--dist", "loadfile"] if tier == "cluster" and importlib.util.find_spec("xdist") else []
        got = run(["/usr/bin/python3", "-m", "pytest", "-q", "-x" if os.environ.get("FAIL_FAST") else "-q", "-p", "no:cacheprovider", "--tb=short",
                   *beside, f"--junitxml={junit}", folder], env=env)
        if not read_junit(junit, tier, tally) and got.returncode not in (0, 5):
            tally.add(f"{tier}: pytest", "failed", f"exit {got.returncode}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("tiers", nargs="*", default=[])
    args = parser.parse_args()
    unknown = [t for t in args.tiers if t not in TIERS]
    if unknown:
        sys.exit(f"check: unknown tier {unknown[0]}: known are {' '.join(TIERS)}")
    tally = Tally()
    for tier in args.tiers or TIERS:
        began = time.time()
        before = (tally.passed, tally.failed, tally.skipped)
        if tier in MESON_TIERS:
            meson_tier(args.build, tier, tier, tally)
        elif tier == "asan":
            asan_tier(args.build, tally)
        else:
            pytest_tier(args.build, tier, tally)
        now = (tally.passed, tally.failed, tally.skipped)
        print("%-11s %4d passed, %d failed, %d skipped  (%.0f s)" % ((tier,) + tuple(n - b for n, b in zip(now, before)) + (time.time() - began,)), flush=True)
    for note in tally.notes:
        print(note)
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    sys.exit(1 if tally.failed or not tally.passed else 0)


if __name__ == "__main__":
    main()
