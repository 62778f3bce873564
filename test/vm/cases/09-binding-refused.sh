# What cannot be is refused, as the reference words it; nothing is left behind.
rc=0; out=$(srun -n2 --cpu-bind=map_cpu:0,9 true 2>&1) || rc=$?
want $rc 192 "exit code"
want_match "$out" "CPU binding outside of job step allocation, allocated CPUs are: 0x3\." "outside of the step"
want_match "$out" "Unable to satisfy cpu bind request" "refusal"
rc=0; out=$(srun -n1 --mem-bind=map_mem:9 true 2>&1) || rc=$?
want $rc 1 "exit code"
want_match "$out" "NUMA node 9 does not exist; cannot bind local task 0 to it \(--mem-bind=map_mem\)" "no such node"
node_is idle
