# R17: --hint=nomultithread gives one thread of each core. R16: --cpus-per-task of the script counts for a plain srun in it.
job=$(submit -n2 --hint=nomultithread --wrap 'srun vmtool affinity | sort; srun --cpus-per-task=1 -n1 vmtool affinity')
finish $job
want_match "$(tr '\n' ' ' < /tmp/job-$job.out)" "^0 [24] 0 $" "one thread a core"
job=$(submit -n1 --cpus-per-task=6 --wrap 'srun vmtool affinity; SRUN_CPUS_PER_TASK=2 srun vmtool affinity; srun --cpus-per-task=4 vmtool affinity')
finish $job
want "$(tr '\n' ' ' < /tmp/job-$job.out)" "0-5 0-1 0-3 " "CPUs of a task in the script"
