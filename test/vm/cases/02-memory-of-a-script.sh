# A child eats more than the job has, the script ignores it and exits 0: the job is OUT_OF_MEMORY 0:125 all the same, and says what happened (case 73).
job=$(submit --mem=60 --wrap 'vmtool eat 200; echo went on; exit 0')
finish $job
want "$(job $job JobState)" OUT_OF_MEMORY state
want "$(job $job ExitCode)" 0:125 "exit code"
out=$(cat /tmp/job-$job.out)
want_match "$out" "went on" "output"
want_match "$out" "Detected 1 oom_kill event in StepId=$job.batch. Some of the step tasks have been OOM Killed." "output"
want_match "$out" "killed for memory: it had used (59|60|61)\.[0-9]M, the limit of the job on this node is 60\.0M" "output"
