# scontrol reboot: RebootProgram restarts the machine itself (with it slurmctld, whose state is carried over). The node is used again without anybody's
# doing, and a job that waited for it runs. The second part is in the life after that.
if [ ! -e /vm/state.tgz ]; then
	cat > /tmp/reboot.sh <<'END'
#!/bin/bash
kill $(cat /run/slurm/slurmctld.pid)
while kill -0 $(cat /run/slurm/slurmctld.pid); do sleep 0.1; done
{ echo; echo "@@ state"; tar -C / -czf - var/spool/slurmctld etc/slurm/slurm.key | base64; echo "@@ state over"; } > /dev/console
sleep 1
exec vmtool reboot
END
	chmod +x /tmp/reboot.sh
	echo 'ResumeTimeout=600' >> /etc/slurm/slurm.conf
	slurmd_restart
	before=$(submit -n1 --wrap 'until [ -e /tmp/go ]; do sleep 0.1; done')
	wait_for "the job" job_is $before RUNNING
	scontrol reboot ASAP nextstate=resume reason=kernel vm
	after=$(submit -n1 --wrap 'cat /proc/sys/kernel/random/boot_id')
	job_is $after PENDING
	want_match "$(sinfo -h -n vm -o '%T %E')" "^(draining|drained|reboot|mixed)[^ ]* .*kernel" "node"
	job_is $before RUNNING
	echo "$before $after $(cat /proc/sys/kernel/random/boot_id)" > /var/spool/slurmctld/of-the-test
	touch /tmp/go                  # the machine restarts when the job has ended
	sleep 100
	echo "the machine was not restarted"; exit 1
fi
read -r before after boot < /var/spool/slurmctld/of-the-test
[ "$boot" != "$(cat /proc/sys/kernel/random/boot_id)" ]
finish $after
want "$(job $before JobState) $(job $after JobState)" "COMPLETED COMPLETED" "jobs"
want "$(cat /tmp/job-$after.out)" "$(cat /proc/sys/kernel/random/boot_id)" "where the second ran"
want "$(sinfo -h -n vm -o '%T %E')" "idle none" "node"
