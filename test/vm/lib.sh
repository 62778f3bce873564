# lib.sh - what the cases use. Each waits for a state, with a limit; the machine is slow (no KVM).
wait_for() { # WHAT COMMAND...: until it succeeds
	local what=$1 n=300; shift
	until "$@" >/dev/null 2>&1; do n=$((n - 1)); [ $n -gt 0 ] || { echo "waited for: $what"; return 1; }; sleep 0.1; done
}
want() { # GOT EXPECTED WHAT
	[ "$1" = "$2" ] || { echo "${3:-value}: got '$1', want '$2'"; return 1; }
}
want_match() { [[ $1 =~ $2 ]] || { echo "${3:-value}: got '$1', want a match of '$2'"; return 1; }; }
job() { scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
job_is() { [[ $(job "$1" JobState) =~ ^($2)$ ]]; }
job_over() { ! job_is "$1" "PENDING|RUNNING|COMPLETING|CONFIGURING"; }
submit() { sbatch --parsable -o /tmp/job-%j.out "$@"; }
finish() { wait_for "job $1 to end" job_over "$1"; }
node_is() { [ "$(sinfo -h -n vm -o %T)" = "$1" ]; }
cgroup_of_job() { echo /sys/fs/cgroup/${SLICE:-system.slice/slurmstepd.scope}/job_$1; }
daemons_start() {
	slurmctld -f /etc/slurm/slurm.conf && slurmd -f /etc/slurm/slurm.conf -N vm && wait_for "the node" node_is idle
}
slurmd_restart() { # after a change of configuration
	kill "$(cat /run/slurm/slurmd.pid)" 2>/dev/null || true
	wait_for "slurmd to end" not_running slurmd.pid
	scontrol reconfigure || true
	slurmd -f /etc/slurm/slurm.conf -N vm
	wait_for "the node" node_is idle
}
not_running() { ! kill -0 "$(cat /run/slurm/$1)" 2>/dev/null; }
config() { # FILE: write it from stdin, restart slurmd
	cat > "/etc/slurm/$1"; slurmd_restart
}
clean_up() {
	scancel -u root -u alice 2>/dev/null
	wait_for "an idle node" node_is idle || { scontrol update nodename=vm state=resume; sinfo -R; }
	cp /vm/etc/* /etc/slurm/; 
}
