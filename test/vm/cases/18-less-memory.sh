# scontrol update MinMemoryNode= of a running job: its cgroups get the new limit at once, and what needs more than that is killed for memory.
job=$(submit --mem=200 --wrap 'srun --mem=150 bash -c "sed -n s/^0:://p /proc/self/cgroup; echo begun; until [ -e /tmp/go ]; do sleep 0.1; done; vmtool eat 120 1"')
wait_for "its step" grep -q begun /tmp/job-$job.out
d=/sys/fs/cgroup$(grep ^/ /tmp/job-$job.out)/../..
want "$(cat $d/memory.max $d/step_0/memory.max $d/step_batch/memory.max | tr '\n' ' ')" "$((200 << 20)) $((150 << 20)) $((200 << 20)) " "limits before"
scontrol update jobid=$job MinMemoryNode=80
limits_are() { [ "$(cat $d/memory.max $d/step_0/memory.max $d/step_batch/memory.max | tr '\n' ' ')" = "$((80 << 20)) $((80 << 20)) $((80 << 20)) " ]; }
wait_for "the new limits" limits_are
want "$(job $job MinMemoryNode)" 80M "what is shown"
touch /tmp/go
finish $job
rm -f /tmp/go
want_match "$(cat /tmp/job-$job.out)" "the limit of the step on this node is 80.0M" "output"
