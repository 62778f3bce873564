#!/bin/bash
# fanout.sh BUILD [NODES [SIZE...]] - how long slurmctld needs to reach the nodes of a job
#
# NODES (10000) emulated nodes (slurmd --emulate, one process over the real protocol), for each width of the tree (FANOUT_WIDTHS: 8 16 50 65533, that is directly) one job
# after the other on SIZE (10 100 1000 10000) of them.
# Columns: nodes; width (TreeWidth); depth and messages that slurmctld itself sends for the prolog; s from sbatch until PrologFlags=Alloc was done on all and the script
# runs; s from the end of the script until all nodes have answered and are free; s of a whole srun (allocation, launch, end of a step on all); median of FANOUT_REPS (1).
# One process plays all nodes: what a tree saves a sender the emulator pays for, so times show the work of all together, not what many machines would take.
set -euo pipefail
build=$(cd "$1" && pwd)
nodes=${2:-10000}
sizes=("${@:3}")
[ ${#sizes[@]} -gt 0 ] || sizes=(10 100 1000 10000)
reps=${FANOUT_REPS:-1}
read -ra widths <<<"${FANOUT_WIDTHS:-8 16 50 65533}"
dir=$(mktemp -d /tmp/berth-fanout.XXXXXX)
chmod 755 "$dir"
port=$((20000 + $$ % 10000))
emulator=
end() {
	[ -z "$emulator" ] || kill "$emulator" 2>/dev/null || true
	"$build/bin/berth" down --dir "$dir/c" --purge >/dev/null 2>&1 || true
	rm -rf "$dir"
}
trap end EXIT

cat >"$dir/extra.conf" <<END
PrologFlags=Alloc
MessageTimeout=100
TreeWidth=16
SlurmctldDebug=debug
SlurmdTimeout=600
NodeName=e[1-$nodes] NodeAddr=127.0.0.1 Port=$port CPUs=4 RealMemory=16000
PartitionName=emu Nodes=e[1-$nodes] State=UP
END
"$build/bin/berth" up --dir "$dir/c" --nodes 1 --cpus 2 --gpus 0 --conf "$dir/extra.conf" >/dev/null
eval "$("$build/bin/berth" env --dir "$dir/c")"
ulimit -n "$(ulimit -Hn)"
"$build/sbin/slurmd" -D --emulate "$nodes" -N e1 2>"$dir/emulator" &
emulator=$!

now() { echo "${EPOCHREALTIME/[.,]/}"; }
idle() { sinfo -h -p emu -t idle -o %D | awk '{ n += $1 } END { print n + 0 }'; }
all_idle() { until [ "$(idle)" = "$nodes" ]; do kill -0 "$emulator" || { cat "$dir/emulator" >&2; exit 1; }; sleep 0.05; done; }
median() { sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }

t=$(now)
all_idle
printf '# %s nodes registered after %.1f s\n' "$nodes" "$(awk "BEGIN { print ($(now) - $t) / 1e6 }")"
printf '%8s %6s %6s %6s %10s %10s %10s\n' nodes width depth sent start_s end_s srun_s
since() { awk "BEGIN { printf \"%.3f\\n\", ($(now) - $1) / 1e6 }"; }
for w in "${widths[@]}"; do
	sed -i "s/^TreeWidth=.*/TreeWidth=$w/" "$dir"/extra.conf "$dir"/c/etc/*.conf
	scontrol reconfigure
	until [ "$(scontrol show config | awk '$1 == "TreeWidth" { print $3 }')" = "$w" ]; do sleep 0.1; done
	all_idle
	for n in "${sizes[@]}"; do
		: >"$dir/start"; : >"$dir/end"; : >"$dir/srun"; : >"$dir/c/log/slurmctld.log"
		for ((r = 0; r < reps; r++)); do
			t=$(now)
			id=$(sbatch --parsable -p emu -N "$n" --exclusive --mem=1 -o /dev/null --wrap 'sleep 1000')
			until [ "$(squeue -h -j "$id" -o %T)" = RUNNING ]; do :; done
			since "$t" >>"$dir/start"
			t=$(now)
			scancel "$id"
			all_idle
			since "$t" >>"$dir/end"
			t=$(now)
			srun -p emu -N "$n" --mem=1 true
			since "$t" >>"$dir/srun"
			all_idle
		done
		depth=$(sed -n "s/.*D_PROLOG to $n nodes: [0-9]* messages, \([0-9]*\) levels/\1/p" "$dir/c/log/slurmctld.log" | tail -1)
		printf '%8s %6s %6s %6s %10s %10s %10s\n' "$n" "$w" "${depth:-1}" "$((n > w ? w : n))" "$(median <"$dir/start")" "$(median <"$dir/end")" "$(median <"$dir/srun")"
	done
done
