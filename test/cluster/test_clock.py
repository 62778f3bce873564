"""The wall clock jumps by hours, both ways, while jobs run: nothing is lost, killed or run twice. Daemons and commands share a clock that the test moves."""
import os
import struct
import subprocess
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
CLUSTER = dict(nodes=2, cpus=4, gpus=0)


@pytest.fixture(scope="module")
def clock(cluster):
    """set(seconds): the clock of all, from now on, beside the real one."""
    shim, offset = f"{cluster.dir}/clock.so", f"{cluster.dir}/offset"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, f"{HERE}/clock.c"], check=True)
    with open(offset, "wb") as f:
        f.write(struct.pack("q", 0))
    os.chmod(offset, 0o644)
    cluster.berth("down")
    os.environ.update(LD_PRELOAD=shim, CLOCK_OFFSET=offset)     # for all that the cluster runs from here on
    cluster.berth("up --nodes 2 --cpus 4 --gpus 0")

    class Clock:
        def set(self, seconds):
            with open(offset, "r+b") as f:
                f.write(struct.pack("q", seconds))

        def restart(self):
            cluster.berth("kill slurmctld")
            cluster.berth("start slurmctld")
            assert abs(self.read() - time.time() - self.now()) < 60, "slurmctld does not follow the clock of this test"

        def now(self):
            with open(offset, "rb") as f:
                return struct.unpack("q", f.read())[0]

        def read(self):
            probe = cluster.submit("--hold -o /dev/null --wrap true")
            at = cluster.out(f"squeue -h -j {probe} -O SubmitTime")
            cluster.run(f"scancel {probe}")
            return time.mktime(time.strptime(at, "%Y-%m-%dT%H:%M:%S"))
    moved = Clock()
    moved.restart()
    yield moved
    moved.set(0)
    cluster.berth("down")
    del os.environ["LD_PRELOAD"], os.environ["CLOCK_OFFSET"]


@pytest.mark.parametrize("hours", [3, -4, 30])
def test_jobs_go_on(cluster, clock, hours):
    cluster.wait_idle()
    count = f"{cluster.work}/count.{hours}"
    long = cluster.submit(f"-n1 -t UNLIMITED -o /dev/null --wrap 'echo x >> {count}; sleep 600'")
    short = cluster.submit(f"-n1 -t UNLIMITED -o /dev/null --wrap 'while [ ! -e {count}.end ]; do sleep 0.1; done'")
    for job in long, short:
        cluster.wait_state(job, "RUNNING")
    cluster.wait("it counts", lambda: os.path.exists(count))
    clock.set(hours * 3600)
    before = clock.read()           # set back, it goes on from where it was: the time of jobs does not run backwards
    cluster.wait("slurmctld's time goes on", lambda: clock.read() > before)
    new = cluster.submit("-n1 -o /dev/null --wrap true")
    assert cluster.wait_end(new) == "COMPLETED"
    clock.restart()
    newer = cluster.submit("-n1 -o /dev/null --wrap true")
    assert newer > new and cluster.wait_end(newer) == "COMPLETED"
    open(f"{count}.end", "w").close()
    assert cluster.wait_end(short) == "COMPLETED"
    assert cluster.state(long) == "RUNNING" and cluster.read(count) == "x\n"
    assert not [n for n in ("node-1", "node-2") if "down" in cluster.node_state(n) or "drain" in cluster.node_state(n)]
    cluster.run(f"scancel {long}")
    wanted = {str(short): "COMPLETED", str(new): "COMPLETED", str(newer): "COMPLETED", str(long): "CANCELLED"}

    def recorded():
        text = cluster.out(f"sacct -n -X -P -S now-10days -E now+10days -j {','.join(wanted)} -o JobIDRaw,State")
        return {line.split("|")[0]: line.split("|")[1].split()[0] for line in text.splitlines()} == wanted
    cluster.wait("accounting of all four", recorded)
