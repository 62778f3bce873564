"""What spank/walk.c wrote down, made comparable: `python3 spank_walk.py FILE` prints it (how the files of test/compat/spank were made from the reference's records)."""
import re
import sys

CONTEXT = {"local": 0, "allocator": 1, "script": 2, "remote": 3, "slurmd": 4}
HOOKS = ["init", "init_post_opt", "local_user_init", "user_init", "task_init_privileged", "task_post_fork", "task_init", "task_exit", "exit", "job_prolog", "job_epilog"]
STEP = {"4294967292": "extern", "4294967291": "batch"}


def blocks(text, uids):
    """[(context, step, node, task, callback, pid, [line])] in the order of the record."""
    found = []
    for part in re.split(r"^@", text, flags=re.M)[1:]:
        lines = part.rstrip("\n").split("\n")
        context, callback, uid, pid = lines[0].split()
        item = {line.split(" ")[0]: line.split(" ", 1)[-1] for line in lines[1:]}
        job = item["S_JOB_ID"]
        step = item["S_JOB_STEPID"]
        body = [f"as {'user' if uid in uids else 'root'}"]
        for line in lines[1:]:
            if not job.startswith("err"):
                line = re.sub(rf"\b{job}\b", "JOB", line) if line.startswith(("S_JOB_ID ", "S_JOB_ENV", "S_JOB_ARRAY_ID")) else line
            if line.startswith(("S_JOB_UID ", "S_JOB_GID ", "S_JOB_SUPPLEMENTARY_GIDS ")) and "err" not in line:
                line = re.sub(r" .*", " USER", line)
            if line.startswith("S_TASK_PID ") and "err" not in line:
                line = "S_TASK_PID PID"
            if line.startswith("S_JOB_ENV"):
                line = " ".join(["S_JOB_ENV", *sorted(w for w in line.split()[1:] if not w.startswith(("_SLURM_SPANK", "SLURM_PROCID=")) and context != "local")]).strip()
            if callback in ("task_post_fork", "task_exit"):          # which of the tasks was before
                line = re.sub(r"(S_JOB_ENV.* WALK_A=)\S+", r"\1.", line)
            if line.startswith("S_JOB_ARGV"):
                line = re.sub(r"/\S+/", "/.../", line) if "slurm_script" in line or "step.env" in line else line
            body.append(line)
        where = None if "err" in step else STEP.get(step, step)
        at = [None if "err" in item[k] else item[k] for k in ("S_JOB_NODEID", "S_TASK_GLOBAL_ID")]
        found.append((context, where, *at, callback, int(pid), body))
    return found


def context_is_whole(process):
    """Not the end of one that began before the record."""
    return process[0] not in ("local", "allocator") or process[2][0] == "init"


def normal(text, uids):
    """For each kind of process the order of its callbacks, then what the first one of each kind saw: lines that differ from those of the one before it."""
    found = blocks(text, uids)
    order, shown, out = {}, {}, []
    for context, step, _, task, callback, pid, _ in found:
        order.setdefault(pid, [context, step, []])
        order[pid][1] = order[pid][1] or step
        order[pid][2].append(callback + (f"[{task}]" if task else ""))
    found = [b for b in found if context_is_whole(order[b[5]])]
    for context, step, names in sorted({(c, s or "-", " ".join(sorted(n, key=lambda x: (HOOKS.index(x.split("[")[0]), x)) if "user_init" in n else n)) for c, s, n in order.values() if context_is_whole((c, s, n))}, key=lambda x: (CONTEXT[x[0]], x[1:])):
        out.append(f"{context} {step}: {names}")
    for b in sorted(found, key=lambda b: (CONTEXT[b[0]], b[1] if b[0] == "remote" else "", HOOKS.index(b[4]), b[2] or "", b[3] or "")):
        shown.setdefault((b[0], b[1] if b[0] == "remote" else None, b[4]), b)
    last = {}
    for (context, step, callback), b in shown.items():
        out.append(f"@{context} {step or '-'} {callback}")
        out += [line for line in b[6] if last.get((context, line.split(" ")[0])) != line]
        last.update({(context, line.split(" ")[0]): line for line in b[6]})
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as f:
        sys.stdout.write(normal(f.read(), sys.argv[2:]))
