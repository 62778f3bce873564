# Where systemd runs, steps live in a scope of its making (a systemd-run of our own plays it): limits hold there, steps outlive slurmd, CgroupSlice says where.
mkdir -p /run/systemd/system
cat > /usr/bin/systemd-run <<'END'
#!/bin/bash
[ ! -e /run/no-scopes ] || exit 1
while [[ ${1:-} == --* ]]; do case $1 in --unit=*) unit=${1#*=};; --slice=*) slice=${1#*=};; --property=Delegate=yes) delegated=yes;; esac; shift; done
d=/sys/fs/cgroup/$slice/$unit
mkdir -p $d
echo "+cpuset +memory +pids" > /sys/fs/cgroup/$slice/cgroup.subtree_control
[ ${delegated:-no} = yes ] && echo $$ > $d/cgroup.procs
exec "$@"
END
chmod +x /usr/bin/systemd-run
slurmd_restart
look='p=$(sed -n s/^0:://p /proc/self/cgroup); echo $p; cat /sys/fs/cgroup$p/../memory.max'
out=$(srun -n1 --mem=100 bash -c "$look")
want_match "$out" "^/system\.slice/berth-vm-[^/]*\.scope/job_[0-9]+/step_0/task_0" "cgroup of a task"
want "${out##*$'\n'}" "$((100 << 20))" "its limit"
rc=0; srun -n1 --mem=60 vmtool eat 200 >/dev/null 2>&1 || rc=$?
[ $rc != 0 ]
job=$(submit -n1 --mem=60 --wrap 'until [ -e /tmp/go ]; do sleep 0.1; done; cat /proc/self/cgroup')
wait_for "the job" job_is $job RUNNING
kill -9 "$(cat /run/slurm/slurmd.pid)"
slurmd -f /etc/slurm/slurm.conf -N vm
touch /tmp/go; finish $job; rm -f /tmp/go
want "$(job $job JobState)" COMPLETED "a job whose slurmd was killed"
want_match "$(cat /tmp/job-$job.out)" "berth-vm-[^/]*\.scope/job_$job/step_batch" "its cgroup"
printf 'ConstrainRAMSpace=yes\nCgroupSlice=jobs.slice\n' | config cgroup.conf
want_match "$(srun -n1 bash -c "$look")" "^/jobs\.slice/berth-vm" CgroupSlice
# Without a scope it is done without systemd, and said; IgnoreSystemd does not ask.
touch /run/no-scopes
printf 'ConstrainRAMSpace=yes\nCgroupSlice=other.slice\nSystemdTimeout=200\n' | config cgroup.conf
want_match "$(srun -n1 --mem=100 bash -c "$look")" "^/other\.slice/vm-[^/]*/vm/job_.*$((100 << 20))" "without a scope"
grep -q "systemd gives no scope for steps" /var/log/slurm/slurmd.log
rm /run/no-scopes
printf 'ConstrainRAMSpace=yes\nIgnoreSystemd=yes\n' | config cgroup.conf
want_match "$(srun -n1 bash -c "$look")" "^/berth/vm-" IgnoreSystemd
rm -r /run/systemd /usr/bin/systemd-run
slurmd_restart
