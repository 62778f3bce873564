# Processes that left their session, ignore SIGTERM and go on forking are all gone after scancel: cgroup.kill.
job=$(submit -n1 --mem=300 --wrap 'vmtool forks 150')
count() { ps -e -o args= | grep -c '^vmtool forks' || true; }
many() { [ "$(count)" -ge 150 ]; }
wait_for "the forks" many
scancel $job
finish $job
want "$(job $job JobState)" CANCELLED state
none() { [ "$(count)" = 0 ]; }
wait_for "their end" none
