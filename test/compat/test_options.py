"""Every option and option variable that the reference's manuals list has its row in tables/options.def; --usage keeps the grammar checkers look for."""
import os
import re
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("BERTH_BUILD", os.path.join(ROOT, "build"))
COMMANDS = ("sbatch", "salloc", "srun")
# Variables that are no option's: the configuration, exit codes, PMI, the mask, what a killed step says; --power is gone since 25.11.
OTHER = re.compile(r"SLURM_(CONF|DEBUG_FLAGS|EXIT_ERROR|EXIT_IMMEDIATE|STEP_KILLED_MSG_NODE_ID|UMASK|PMI_KVS_NO_DUP_KEYS|SRUN_REDUCE_TASK_EXIT_MSG|"
                   r"TEST_EXEC|DIST_PLANESIZE)$|S[A-Z]+_POWER$")


def rows():
    text = open(os.path.join(ROOT, "tables", "options.def")).read()
    for row in re.findall(r"^OPTION\((.*?)\)$", text, re.M | re.S):
        part = re.match(r"(\w+), (NULL|\"[^\"]*\"), ('.'|0), (\w+), (NULL|\"[^\"]*\"), ([A-Z |]+), (NULL|\"[^\"]*\"), (NULL|\"[^\"]*\"), (NULL|\"[^\"]*\"), (\w+),", row)
        assert part, row
        commands = COMMANDS if part[6] == "ALL" else tuple(c.strip().lower() for c in part[6].split("|"))
        env = dict(zip(COMMANDS, (v.strip('"').split(",") if v != "NULL" else [] for v in part.group(7, 8, 9))))
        yield {"name": part[2].strip('"'), "commands": commands, "env": env, "state": part[10], "help": not row.rstrip().endswith("NULL")}


def listed():
    return {words[0]: words[1:] for words in (l.split() for l in open(os.path.join(HERE, "options.txt")) if not l.startswith("#"))}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_row(command):
    have = {r["name"] for r in rows() if command in r["commands"]}
    assert not set(listed()[command]) - have


@pytest.mark.parametrize("command", COMMANDS)
def test_every_variable_has_a_row(command):
    have = {v for r in rows() for v in r["env"][command]}
    assert not {v for v in listed()[command + "-env"] if not OTHER.search(v)} - have


def test_what_works_has_help():
    assert not [r["name"] for r in rows() if r["state"] in ("WORKS", "LATER", "TODO") and r["name"] != "NULL" and not r["help"]]


@pytest.mark.parametrize("command", COMMANDS)
def test_todo_is_refused_by_name(command):
    todo = [r for r in rows() if command in r["commands"] and r["state"].startswith("TODO")]
    for r in todo:
        done = subprocess.run([os.path.join(BUILD, "bin", command), f"--{r['name']}", "x"], capture_output=True, text=True, timeout=30,
                              env={"SLURM_CONF": "/nonexistent"}, stdin=subprocess.DEVNULL)
        assert done.returncode == 1 and f"option '--{r['name']}' is not supported by this version" in done.stderr, r["name"]


@pytest.mark.parametrize("command,tail", [("sbatch", r"executable \[args\.\.\.\]"), ("salloc", r"\[command \[args\.\.\.\]\]"), ("srun", r"executable \[args\.\.\.\]")])
def test_usage_grammar(command, tail):
    out = subprocess.run([os.path.join(BUILD, "bin", command), "--usage"], capture_output=True, text=True, timeout=30)
    assert out.returncode == 0
    option = r"\[(-\w( [^\[\]]*(\[[^\]]*\][^\[\]]*)*)?|--[a-z0-9-]+(=[^\[\]]*(\[[^\]]*\][^\[\]]*)*|\[=[^\]]*\])?)\]"
    assert re.fullmatch(rf"Usage: {command}(\s+{option})+\s+{tail}\n", out.stdout), out.stdout
