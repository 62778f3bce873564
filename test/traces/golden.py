#!/usr/bin/python3
"""golden.py EXPECTED COMMAND...: what COMMAND prints must be the content of the file EXPECTED.
golden.py --refused TEXT COMMAND...: COMMAND must fail and say TEXT."""
import difflib
import os
import subprocess
import sys

if sys.argv[1] == "--refused":
    done = subprocess.run(sys.argv[3:], capture_output=True, text=True, check=False)
    sys.exit(0 if done.returncode and sys.argv[2] in done.stderr else f"status {done.returncode}, said: {done.stderr}")
out = subprocess.run(sys.argv[2:], capture_output=True, text=True, check=True, env=dict(os.environ, TZ="UTC")).stdout
with open(sys.argv[1], encoding="utf-8") as f:
    want = f.read()
if out != want:
    sys.exit("".join(difflib.unified_diff(want.splitlines(True), out.splitlines(True), "expected", "printed")))
