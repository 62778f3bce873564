# A task runs in a cgroup of its own below its step's and its job's.
out=$(srun -n2 -l cat /proc/self/cgroup | sort)
want_match "$out" "0: 0::/berth/vm-.*/vm/job_[0-9]+/step_0/task_0" "cgroup of task 0"
want_match "$out" "1: 0::.*/step_0/task_1" "cgroup of task 1"
job=$(submit --wrap 'cat /proc/self/cgroup')
finish $job
want_match "$(cat /tmp/job-$job.out)" "job_$job/step_batch/task_0" "cgroup of the script"
wait_for "the cgroups to be gone" bash -c '[ -z "$(find /sys/fs/cgroup/berth -name "job_*")" ]'
