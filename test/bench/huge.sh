#!/bin/bash
# huge.sh BUILD [NODES [JOBS]] - a whole system of the largest size: emulated nodes (100000), pending jobs (1000000)
#
# Prints "name value unit" lines: a job on 10,000 nodes from sbatch until nothing of it is left; how fast JOBS jobs are taken by one connection; how long a submission waits
# while they are planned (one at a time); the controller's memory; the time from its start on that store, after kill -9, until it answers.
# SlurmdTimeout is the default, 300 s: that of the local cluster, 5 s, would mean 60,000 pings a second.
# Needs 4 GB of memory, 2 GB under /tmp and some minutes. Also: make bench BENCH=huge
set -euo pipefail
build=$(cd "$1" && pwd)
nodes=${2:-100000} jobs=${3:-1000000}
wide=$((nodes < 10000 ? nodes : 10000))
dir=$(mktemp -d /tmp/berth-huge.XXXXXX)
chmod 755 "$dir"
emulator=
trap '[ -z "$emulator" ] || kill "$emulator" 2>/dev/null || true; "$build/bin/berth" down --dir "$dir/c" --purge >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$dir/extra.conf" <<END
MaxJobCount=$((jobs + 100000))
SlurmdTimeout=300
SchedulerParameters=bf_max_job_test=10000,bf_window=10080
NodeName=e[1-$nodes] NodeAddr=127.0.0.1 Port=$port CPUs=8 RealMemory=16000
PartitionName=emu Nodes=e[1-$nodes] State=UP
END
"$build/bin/berth" up --dir "$dir/c" --nodes 1 --cpus 8 --gpus 0 --conf "$dir/extra.conf" >/dev/null
eval "$("$build/bin/berth" env --dir "$dir/c")"

ms() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }
pid_file=$(scontrol show config | awk '$1 == "SlurmctldPidFile" { print $3 }')
pid() { cat "$pid_file"; }
mib() { awk -v k="$1" '$1 == k ":" { printf "%.0f", $2 / 1024 }' "/proc/$(pid)/status"; }
# SECONDS COMMAND...: waits until it succeeds
until_true() {
	local end=$(($(ms) + $1 * 1000)); shift
	until "$@" 2>/dev/null; do
		[ "$(ms)" -lt "$end" ] || { echo "# gave up waiting: $*" >&2; exit 1; }
		sleep 0.1
	done
}
idle() { [ "$(sinfo -h -p emu -t idle -o %D)" = "$nodes" ]; }
gone() { [ -z "$(squeue -h -j "$1" -o %i)" ]; }
shown() { [ "$(squeue -h -j "$1" -o %i)" = "$1" ]; }

t=$(ms)
"$build/sbin/slurmd" -D --emulate "$nodes" -N e1 >"$dir/emulator.log" 2>&1 &
emulator=$!
until_true 300 idle
echo "huge.register $(($(ms) - t)) ms for $nodes nodes"

t=$(ms)
job=$(sbatch --parsable -p emu -N"$wide" --exclusive -o /dev/null --wrap true)
until_true 300 gone "$job"
echo "huge.wide_job $(($(ms) - t)) ms on $wide nodes"

for ((i = 0; i < 100; i++)); do # every node has something for hours
	sbatch -p emu -N$((nodes / 100)) --exclusive -t $((60 + 7 * i)) -o /dev/null --wrap 'sleep 100000' >/dev/null
done
full() { [ "$(sinfo -h -p emu -t alloc -o %D)" = "$((nodes / 100 * 100))" ]; }
until_true 300 full

held=$(sbatch --parsable -H -o /dev/null --wrap true) # one that stays
"$build/bench/submit_api" "$jobs" 256 huge mixed | sed 's/^submit_api/huge.fill/'
passes() { sdiag | awk '/Total cycles/ && ++n == 2 { print $3 }'; }
before=$(passes)
"$build/bench/submit_api" 2000 1 probe mixed | sed 's/^submit_api.w1/huge.while_planning/'
echo "huge.planned $(($(passes) - before)) slices meanwhile"
echo "huge.memory $(mib VmRSS) MiB, $(mib VmHWM) MiB at most"

old=$(pid)
kill -9 "$old"
while kill -0 "$old" 2>/dev/null; do sleep 0.01; done # it gives its memory back
t=$(ms)
"$build/bin/berth" start slurmctld --dir "$dir/c" >/dev/null
until_true 300 shown "$held"
echo "huge.restart $(($(ms) - t)) ms with $jobs jobs, $nodes nodes"
echo "huge.memory_after $(mib VmRSS) MiB"
