# Of two tasks one eats too much: it is named, with its peak and the limit; the other one's output is there.
rc=0
out=$(srun -n2 --mem=100 bash -c 'if [ $SLURM_PROCID = 1 ]; then vmtool eat 300; else sleep 1; echo fine; fi' 2>&1) || rc=$?
[ $rc != 0 ]
want_match "$out" "fine" "output"
want_match "$out" "oom_kill event" "output"
want_match "$out" "task 1 was killed for memory: it had used [0-9]+\.[0-9]M, the limit of the step on this node is 100.0M" "output"
# The memory of a step is a share of the job's: a step that asks for less gets less.
out=$(salloc -Q -n1 --mem=200 srun --mem=50 bash -c 'd=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup); cat $d/../memory.max $d/../../memory.max')
want "$out" "$((50 << 20))
$((200 << 20))" "limits of step and job"
