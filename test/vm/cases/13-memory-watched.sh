# Without the memory controller (no task/cgroup) memory is watched: OverMemoryKill.
sed -i 's/^TaskPlugin=.*/TaskPlugin=task\/affinity\nJobAcctGatherParams=OverMemoryKill\nJobAcctGatherFrequency=1/' /etc/slurm/slurm.conf
slurmd_restart
job=$(submit --mem=50 --wrap 'vmtool eat 100 60')
finish $job
want "$(job $job JobState)" OUT_OF_MEMORY state
want_match "$(cat /tmp/job-$job.out)" "exceeded memory limit \([0-9]+ > $((50 << 20)) bytes\), being killed" output
