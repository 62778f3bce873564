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


def test_every_option_with_a_value_has_its_row():
    """A new option needs its row, recorded on the reference."""
    with open(os.path.join(ROOT, "tables", "options.def"), encoding="utf-8") as f:
        found = re.findall(r'^OPTION\(\w+, "([\w-]+)", [^,]+, (?:REQUIRED|OPTIONAL), (?:NULL|"[^"]*"), ([A-Z| ]+),.*, (?:WORKS|HIDDEN|LATER), ', f.read(), re.M)
    mine = {name for name, commands in found if re.search(r"ALL|SBATCH", commands)}
    other = {"account", "qos", "mail-user", "chdir", "uid", "gid", "wrap", "output", "error", "wait", "verbose", "get-user-env", "ignore-pbs", "parsable"}
    assert mine - {option for option, _ in table()} - other == set()
