"""The cases of cases/, each run inside one booted machine."""
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import machine  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("BERTH_BUILD", os.path.join(ROOT, "build")))
CASES = sorted(name[:-3] for name in os.listdir(os.path.join(HERE, "cases")) if name.endswith(".sh"))


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    try:
        found, console = machine.boot(BUILD, str(tmp_path_factory.mktemp("vm")))
    except machine.Missing as e:
        pytest.skip(str(e))
    if not found:
        pytest.fail("the machine ran no case; its console ends with:\n" + console[-3000:])
    return found, console


@pytest.mark.parametrize("name", CASES)
def test_case(results, name):
    found, console = results
    assert name in found, f"{name} did not end; the console ends with:\n" + console[-3000:]
    rc, output = found[name]
    assert rc == 0, output
