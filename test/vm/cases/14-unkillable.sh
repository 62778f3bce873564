# R08: a process that cannot be killed (frozen by another hand) drains the node, is named with what it waits on; when it is gone the node resumes by itself.
mkdir -p /tmp/freezer; mount -t cgroup -o freezer freezer /tmp/freezer; mkdir -p /tmp/freezer/x
echo 'UnkillableStepProgram=/tmp/unkillable.sh' >> /etc/slurm/slurm.conf
printf '#!/bin/bash\necho $SLURM_JOB_ID > /tmp/unkillable.out\n' > /tmp/unkillable.sh; chmod +x /tmp/unkillable.sh
slurmd_restart
job=$(submit -n1 --wrap 'exec vmtool stuck')
pid() { pidof vmtool; }
wait_for "the process" pid
echo $(pid) > /tmp/freezer/x/cgroup.procs
echo FROZEN > /tmp/freezer/x/freezer.state
scancel $job
wait_for "the drain" node_is draining
want "$(sinfo -h -n vm -o %E)" "Kill task failed" reason
wait_for "UnkillableStepProgram" test -s /tmp/unkillable.out
want "$(cat /tmp/unkillable.out)" $job "SLURM_JOB_ID of UnkillableStepProgram"
want_match "$(grep 'do not end' /var/log/slurm/slurmctld.log)" "vmtool \([0-9]+\) waits in [a-z_]" "what slurmctld says"
echo THAWED > /tmp/freezer/x/freezer.state
finish $job
wait_for "the node to be used again" node_is idle
want "$(sinfo -h -n vm -o %E)" none reason
umount /tmp/freezer
