# slurmd may be spared when memory runs out (OOMScoreAdjust of its unit); what users run is not.
slurmd=/proc/$(cat /run/slurm/slurmd.pid)/oom_score_adj
echo -900 > $slurmd
want "$(srun cat /proc/self/oom_score_adj)" 0 "a task"
job=$(submit --wrap 'cat /proc/self/oom_score_adj')
finish $job
want "$(cat /tmp/job-$job.out)" 0 "a batch script"
want "$(cat $slurmd)" -900 "slurmd"
want "$(srun bash -c 'echo 300 > /proc/self/oom_score_adj; cat /proc/self/oom_score_adj')" 300 "what a task makes of itself"
echo 0 > $slurmd
