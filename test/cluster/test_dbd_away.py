"""slurmdbd is away for so long that MaxDBDMsgs is reached: with max_dbd_msg_action=exit slurmctld ends, and accounting has all of it afterwards."""
CLUSTER = dict(nodes=1, cpus=4, gpus=0, extra_conf="SlurmctldParameters=max_dbd_msg_action=exit\nMaxDBDMsgs=10000\n")


def test_it_ends_rather_than_lose_records(cluster):
    cluster.berth("kill slurmdbd")
    arrays = [cluster.submit("-H -a 1-1000 -o /dev/null --wrap true") for _ in range(22)]
    cluster.run("scancel " + " ".join(f"{a}_[1-999:2]" for a in arrays), check=False)      # half of each: a record for each task
    cluster.wait("slurmctld to end", lambda: cluster.out("berth status | awk '$1 == \"slurmctld\" { print $2 }'") != "up")
    assert "MaxDBDMsgs (10000) reached; slurmctld ends, as max_dbd_msg_action=exit says; no record is lost" in cluster.read(f"{cluster.home}/log/slurmctld.log")
    cluster.berth("start slurmdbd")
    cluster.berth("start slurmctld")
    cancelled = "sacct -n -X -P -o JobID,State -j " + ",".join(map(str, arrays))
    cluster.wait("all in accounting", lambda: len([line for line in cluster.run(cancelled, check=False).out.splitlines() if "[" not in line and "|CANCELLED" in line]) == 11000)
