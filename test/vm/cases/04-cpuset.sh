# ConstrainCores: a task cannot leave its CPUs, whatever it asks for.
out=$(srun -n1 -c2 bash -c 'd=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup); cat $d/../cpuset.cpus.effective; vmtool affinity; vmtool widen')
want "$out" "0-1
0-1
0-1" "CPUs of the cgroup, of the task, after asking for all"
out=$(salloc -Q -n4 srun -n1 -c2 --exact bash -c 'd=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup); cat $d/../cpuset.cpus.effective $d/../../cpuset.cpus')
want "$out" "0-1
0-1,4-5" "CPUs of step and job"
job=$(submit -n3 --wrap 'vmtool widen')
finish $job
want "$(cat /tmp/job-$job.out)" "0-1,4-5" "CPUs of a script"
