#!/usr/bin/python3
"""check_share.py BERTH-SIM TASKS PLACEMENT LEAST: the share (%) of GPUs allocated in the end must be at least LEAST (one order of arrival)."""
import subprocess
import sys

out = subprocess.run([sys.argv[1], "--trace", sys.argv[2], "--placement", sys.argv[3], "--seeds", "1", "--summary"], capture_output=True, text=True, check=True).stdout
print(out, end="")
if float(out.split()[1]) < float(sys.argv[4]):
    sys.exit(f"{sys.argv[3]}: {out.split()[1]} %, expected at least {sys.argv[4]}")
