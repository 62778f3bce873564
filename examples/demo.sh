#!/bin/bash
# demo.sh - a distributed training starts, loses a node, resumes from its checkpoint and finishes
#   demo.sh BUILD_DIR        (called by `make demo`; leaves the cluster up to play with)
set -euo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
dir=${DEMO_DIR:-$( [ "$(id -u)" = 0 ] && echo /var/lib/berth-demo || echo "$HOME/.berth-demo")}
berth="$build/bin/berth"
limit=170

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
state() { scontrol show job "$job" -o 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'; }
give_up() { echo "demo: $*" >&2; scontrol show job "$job" >&2 || true; tail -n 20 "$out" >&2 || true; exit 1; }
wait_for() { # DESCRIPTION COMMAND...
	local what=$1; shift
	until "$@"; do
		[ $((SECONDS - began)) -lt $limit ] || give_up "waited too long for: $what"
		case $(state) in FAILED | CANCELLED | TIMEOUT | NODE_FAIL | OUT_OF_MEMORY) give_up "the job ended as $(state)" ;; esac
		sleep 0.2
	done
}
printed() { grep -q "$1" "$out" 2>/dev/null; }
is_done() { [ "$(state)" = COMPLETED ]; }

say "A cluster of 4 nodes, 8 CPUs and 8 pretended GPUs each"
"$berth" down --dir "$dir" --purge >/dev/null 2>&1 || true
rm -rf "$dir/work"
"$berth" up --dir "$dir" --nodes 4 --cpus 8 --gpus 8
eval "$("$berth" env --dir "$dir")"
sinfo

began=$SECONDS
work=$dir/work
mkdir -p "$work"
cp "$here"/ddp/* "$work"
cd "$work"
say "sbatch train.sbatch   (PyTorch DDP, 2 nodes x 2 ranks, a checkpoint each epoch)"
job=$(sbatch --parsable train.sbatch --epochs 15 --epoch-seconds 1)
out=$work/digits-$job.out
squeue
touch "$out"
tail -n +1 -f "$out" &
tail_pid=$!
trap 'kill $tail_pid 2>/dev/null || true' EXIT

wait_for "epoch 4" printed '^epoch  4'
victim=$(scontrol show job "$job" -o | sed -n 's/.* NodeList=\([^ ]*\).*/\1/p' | xargs scontrol show hostnames | tail -n 1)
say "kill -9 of everything on $victim: slurmd, slurmstepd, tasks"
"$berth" kill --dir "$dir" "$victim"
wait_for "the restart" printed '^resuming'
sinfo
squeue
wait_for "the end" is_done
sleep 0.3
kill $tail_pid 2>/dev/null || true

accuracy=$(sed -n 's/^done: accuracy \([0-9]*\).*/\1/p' "$out")
[ "${accuracy:-0}" -gt 90 ] || give_up "accuracy ${accuracy:-unknown} is not above 90 %"
printed 'restart 1' || give_up "SLURM_RESTART_COUNT was not 1"
say "sacct of both attempts"
for _ in $(seq 50); do
	sacct -n -X -P -D -j "$job" -o state | grep -q COMPLETED && break
	sleep 0.1
done
sacct -D -j "$job" --format=JobID,JobName%12,State,ExitCode,Elapsed,NodeList%16,AllocTRES%48
say "$victim comes back"
"$berth" start --dir "$dir" "$victim"
say "Done in $((SECONDS - began)) s: accuracy $accuracy %.  The cluster is still up. Try:"
cat <<END
  eval "\$($berth env --dir $dir)"
  sinfo; squeue; scontrol show node node-1; scontrol show job $job
  srun -N2 -n4 -l hostname
  srun --gres=gpu:2 --pty bash
  cd $work && sbatch torchrun.sbatch
  berth status; berth logs slurmctld; berth down --purge
END
