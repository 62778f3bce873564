"""The requests of cases.txt, run on any cluster; what their processes saw of SLURM_*, normalised.

  cases.py record COMMAND...    runs them and writes recorded/NAME (COMMAND: a prefix that runs a shell line on the reference; :NAME ones: only these)

Kept apart: what differs between two runs of one cluster (ids, times, addresses, ports, process ids) becomes a word.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GRAB = r"""#!/bin/bash
env | grep -E "^(SLURM|SRUN_|SBATCH|SALLOC|CUDA_VIS|ROCR_|GPU_DEVICE|ZE_AFF|PMI)" | sort > "$OUT/task.$SLURM_PROCID.part"; mv "$OUT/task.$SLURM_PROCID.part" "$OUT/task.$SLURM_PROCID"
"""
BATCH = r"""#!/bin/bash
want=${0##*script}
OUT=%s; export OUT
[ -z "$SLURM_ARRAY_TASK_ID" ] || [ "$SLURM_ARRAY_TASK_ID" = 6 ] || exit 0
env | grep -E "^(SLURM|SRUN_|SBATCH|SALLOC|CUDA_VIS|ROCR_|GPU_DEVICE|ZE_AFF|PMI)" | sort > "$OUT/batch"
exec "$@" "$OUT/grab"
"""
SALLOC = r"""#!/bin/bash
env | grep -E "^(SLURM|SRUN_|SBATCH|SALLOC|CUDA_VIS|ROCR_|GPU_DEVICE|ZE_AFF|PMI)" | sort > "$OUT/salloc"
exec "$@" "$OUT/grab"
"""
WORDS = [
    (r"(SLURM_(JOB_ID|JOBID|ARRAY_JOB_ID)(_(HET|PACK)_GROUP_\d)?|PMI_JOBID)", "ID"), (r"PMI_FD", "NUMBER"), (r"SLURM_HOSTFILE", "PATH"), (r"SLURM_(TASK_PID|STEP_LAUNCHER_PORT|SRUN_COMM_PORT)", "NUMBER"),
    (r"SLURM_JOB_(START|END)_TIME", "TIME"), (r"SLURM_JOB_SLUID", "SLUID"), (r"SLURM_(CONF|SUBMIT_DIR)", "PATH"),
    (r"SLURM_(SUBMIT_HOST|SRUN_COMM_HOST|LAUNCH_NODE_IPADDR)", "HOST"), (r"SLURM_CLUSTER_NAME", "CLUSTER"),
    (r"SLURM_JOB_(ACCOUNT|QOS)", "NAME"), (r"SLURM_WORKING_CLUSTER", "CLUSTER"),
]


def cases():
    with open(os.path.join(HERE, "cases.txt")) as f:
        return [tuple(line.rstrip("\n").split(None, 1)) for line in f if line.strip() and not line.startswith("#")]


def normalise(text):
    lines = []
    for line in text.splitlines():
        name, _, value = line.partition("=")
        for pattern, word in WORDS:
            if re.fullmatch(pattern, name) and value:
                value = word
        lines.append(f"{name}={value}")
    return sorted(lines)


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o755)


def run_case(line, run, folder):
    """Runs one request with run(shell line, environment, cwd); returns {file: lines}."""
    out = tempfile.mkdtemp(dir=folder)
    os.chmod(out, 0o777)
    write(f"{out}/grab", GRAB)
    write(f"{out}/script", BATCH % out)
    write(f"{out}/in-salloc", SALLOC)
    line = line.replace("{sbatch}", "sbatch --wait -Q -o /dev/null").replace("script-6", "script").replace(" script ", f" {out}/script ")
    line = line.replace("$ENV", f"{out}/grab").replace("$SALLOC", f"{out}/in-salloc")
    said = run(line, {"OUT": out}, out)
    found = {}
    for name in sorted(os.listdir(out)):
        if re.fullmatch(r"batch|salloc|task\.\d+", name):
            with open(f"{out}/{name}") as f:
                found[name] = normalise(f.read())
    assert found, f"{line}: nothing was left: {said}"
    return found


def text_of(found):
    return "".join(f"== {name}\n" + "".join(line + "\n" for line in lines) for name, lines in found.items())


def recorded(name):
    found, lines = {}, None
    with open(os.path.join(HERE, "recorded", name)) as f:
        for line in f.read().splitlines():
            if line.startswith("== "):
                lines = found[line[3:]] = []
            else:
                lines.append(line)
    return found


def record(prefix):
    folder = tempfile.mkdtemp(prefix="env-record-", dir="/tmp")
    os.chmod(folder, 0o755)
    clean = {k: v for k, v in os.environ.items() if not re.match(r"S(LURM|BATCH|RUN|ALLOC)_", k) or k.startswith("SLURM_REF")}

    def run(line, env, cwd):
        return subprocess.run([*prefix, "env", *[f"-u{k}" for k in clean if k.startswith("SLURM_REF")], "bash", "-c", line], env={**clean, **env}, cwd=cwd,
                              capture_output=True, text=True, timeout=120)
    os.makedirs(os.path.join(HERE, "recorded"), exist_ok=True)
    only = [a[1:] for a in sys.argv[2:] if a.startswith(':')]
    prefix = [a for a in prefix if not a.startswith(':')]
    for name, line in cases():
        if only and name not in only:
            continue
        try:
            got = text_of(run_case(line, run, folder))
        except AssertionError as e:
            print(f"{name}: {e}")
            continue
        with open(os.path.join(HERE, "recorded", name), "w") as f:
            f.write(got)
    shutil.rmtree(folder)


if __name__ == "__main__":
    record(sys.argv[2:])
