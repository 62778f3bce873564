# --oom-kill-step: when one task is killed for memory the whole step is.
rc=0
out=$(srun --oom-kill-step=1 -n2 --mem=100 bash -c 'if [ $SLURM_PROCID = 1 ]; then vmtool eat 300; else sleep 60; fi' 2>&1) || rc=$?
[ $rc != 0 ]
want_match "$out" "oom_kill event" "output"
want_match "$out" "task 1" "output"
