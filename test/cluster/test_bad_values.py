"""Wrong values of every option of sbatch: exit codes as recorded from the reference (test/compat/bad_values.txt), and a line that says what is wrong."""
import os
import re
import shlex

import pytest

CLUSTER = dict(nodes=4, cpus=8, gpus=4)
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def table():
    with open(os.path.join(ROOT, "test", "compat", "bad_values.txt"), encoding="utf-8") as f:
        rows = [line.split() for line in f if line.strip() and not line.startswith("#")]
    values = ["" if value == "(none)" else value for value in rows[0][1:]]
    return [(row[0], [(value, int(cell.split("/")[-1])) for value, cell in zip(values, row[1:], strict=True)]) for row in rows[1:]]


@pytest.fixture(scope="module", autouse=True)
def nothing_left(cluster):
    yield
    cluster.run("scancel --state=PENDING -u $(id -un)")


@pytest.mark.parametrize("option, cells", table(), ids=lambda x: x if isinstance(x, str) else "")
def test_wrong_values(cluster, option, cells):
    wrong = {}
    for value, code in cells:
        got = cluster.run(f"sbatch -H -Q -o /dev/null --{option}={shlex.quote(value)} --wrap true", check=False)
        said = got.err.strip() if code else True
        if got.rc != code or not said or got.out:
            wrong[value] = (code, got)
    assert not wrong


# salloc's own: --immediate is another option there, an empty --kill-command is SIGTERM; --container is refused whatever its value.
SALLOC_OTHER = {"immediate", "kill-command", "container"}


def options_of_salloc():
    with open(os.path.join(ROOT, "test", "compat", "options.txt"), encoding="utf-8") as f:
        return next(line.split()[1:] for line in f if line.startswith("salloc "))


@pytest.mark.parametrize("option, cells", [row for row in table() if row[0] in set(options_of_salloc()) - SALLOC_OTHER], ids=lambda x: x if isinstance(x, str) else "")
def test_wrong_values_of_salloc(cluster, option, cells):
    """What sbatch refuses salloc refuses, with the same code and nothing allocated. The reference's salloc was asked too: it agrees but where the table has a "/"."""
    wrong = {}
    for value, code in cells:
        got = cluster.run(f"salloc -Q -N1 --{option}={shlex.quote(value)} echo allocated", check=False) if code else None
        if got and (got.rc != code or not got.err.strip() or got.out):
            wrong[value] = (code, got)
    assert not wrong


def test_a_container_needs_a_shell_on_the_node(cluster):
    got = cluster.run("salloc -N1 --container=/nowhere echo allocated", check=False)
    assert got.rc == 1 and got.err == "salloc: error: --container requires LaunchParameters=use_interactive_step\n" and not got.out


def test_every_option_with_a_value_has_its_row():
    """A new option needs its row, recorded on the reference."""
    with open(os.path.join(ROOT, "tables", "options.def"), encoding="utf-8") as f:
        found = re.findall(r'^OPTION\(\w+, "([\w-]+)", [^,]+, (?:REQUIRED|OPTIONAL), (?:NULL|"[^"]*"), ([A-Z| ]+),.*, (?:WORKS|HIDDEN|LATER), ', f.read(), re.M)
    mine = {name for name, commands in found if re.search(r"ALL|SBATCH", commands)}
    other = {"account", "qos", "mail-user", "chdir", "uid", "gid", "wrap", "output", "error", "wait", "verbose", "get-user-env", "ignore-pbs", "parsable"}
    assert mine - {option for option, _ in table()} - other == set()
