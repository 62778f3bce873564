#!/usr/bin/env python3
"""Field numbers of every message as C constants (PB_JobRecord_job_id = 1), for readers that
skim encoded messages without unpacking them. Usage: fields.py OUT IN.proto..."""
import re
import sys

out = ["/* generated from the .proto files: do not edit */", "#pragma once", "enum pb_field_number {"]
for path in sys.argv[2:]:
    text = re.sub(r"//[^\n]*", "", open(path, encoding="utf-8").read())
    text = re.sub(r"\benum\s+\w+\s*\{[^}]*\}", "", text)
    for name, body in re.findall(r"\bmessage\s+(\w+)\s*\{([^}]*)\}", text):
        for field, number in re.findall(r"(\w+)\s*=\s*(\d+)\s*;", body):
            out.append(f"\tPB_{name}_{field} = {number},")
out.append("};")
with open(sys.argv[1], "w", encoding="utf-8") as f:
    f.write("\n".join(out) + "\n")
