#!/usr/bin/python3
"""A policy of `berth sim` on a trace against known figures: check_trace.py BERTH-SIM TRACE POLICY WAIT SLOWDOWN TOLERANCE [LARGEST]

WAIT (min) and SLOWDOWN must be met within TOLERANCE (a share); TOLERANCE 0: they are upper bounds. LARGEST (min) is an upper bound of the longest wait.
"""
import subprocess
import sys

sim, trace, policy = sys.argv[1:4]
wait, slowdown, tolerance = map(float, sys.argv[4:7])
out = subprocess.run([sim, "--trace", trace, "--policy", policy, "--summary"], capture_output=True, text=True, check=True).stdout
print(out, end="")
got = {line.split()[0]: float(line.split()[1]) for line in out.splitlines()}
for name, want in (("wait_avg", wait), ("bsld_avg", slowdown)):
    ok = abs(got[name] / want - 1) <= tolerance if tolerance else got[name] < want
    if not ok:
        sys.exit(f"{policy}: {name} is {got[name]}, expected {'' if tolerance else 'less than '}{want}")
if len(sys.argv) > 7 and got["wait_max"] > float(sys.argv[7]):
    sys.exit(f"{policy}: somebody waited {got['wait_max']} min, more than {sys.argv[7]}")
