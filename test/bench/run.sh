#!/bin/bash
# run.sh BUILD [TEST...] - the benchmark on a local cluster, alone or in turn with another Slurm
#
#   make bench                            Berth alone, the usual tests
#   make bench BENCH="submit srun"        some tests (bench.sh without argument lists them)
#   make bench BENCH=huge                 100,000 emulated nodes, 1,000,000 jobs (huge.sh; minutes, 4 GB)
#   make bench BENCH=fanout               slurmctld and srun reach 10 to 10,000 emulated nodes (fanout.sh)
#   BENCH_REF=/path/to/prefix make bench  the same tests in turn on another Slurm: `prefix CMD...` must run CMD where its commands
#                                         are on PATH (a chroot wrapper, `env PATH=...`) and see /tmp
#   BENCH_ROUNDS=3                        rounds; the median of each figure is printed
# Output: name, Berth's figure, the other's, their ratio. Raw lines are kept in the folder named at the end.
set -euo pipefail
build=$(cd "$1" && pwd); shift
here=$(cd "$(dirname "$0")" && pwd)
tests=("${@:-}")
[ "${tests[*]}" != huge ] || exec "$here/huge.sh" "$build"
[ "${tests[*]}" != fanout ] || exec "$here/fanout.sh" "$build"
[ -n "${tests[0]}" ] || tests=(submit submit_par submit_spawn array jobs array_jobs srun salloc step tasks steps pty output sbcast stepd cancel\ 10000 query\ 50000 recover)
rounds=${BENCH_ROUNDS:-1}
dir=$(mktemp -d /tmp/berth-bench.XXXXXX)
chmod 755 "$dir"
cp "$here/bench.sh" "$here/hw.c" "$here/copy.c" "$build/bench/spawn" "$dir"
trap '"$build/bin/berth" down --dir "$dir/c" --purge >/dev/null 2>&1 || true' EXIT

cat >"$dir/extra.conf" <<'END'
MaxJobCount=200000
MaxArraySize=20000
END
"$build/bin/berth" up --dir "$dir/c" --nodes 4 --cpus 8 --gpus 4 --conf "$dir/extra.conf" >/dev/null
ours() {
	( eval "$("$build/bin/berth" env --dir "$dir/c")"
	  export BENCH_CTLD_START="$build/bin/berth start slurmctld --dir $dir/c" BENCH_FILL="$build/bench/submit_api"
	  unset BENCH_CTLD_PID # bench.sh reads SlurmctldPidFile each time: recover changes the pid
	  "$dir/bench.sh" "$@" )
}
theirs() { $BENCH_REF "$dir/bench.sh" "$@"; }

for ((r = 0; r < rounds; r++)); do
	for t in "${tests[@]}"; do
		# shellcheck disable=SC2086 # a test may carry arguments
		ours $t | tee -a "$dir/ours" | sed 's/^/berth  /'
		# shellcheck disable=SC2086
		[ -z "${BENCH_REF:-}" ] || theirs $t | tee -a "$dir/theirs" | sed 's/^/other  /'
	done
done
touch "$dir/theirs"
awk '
	/^#/ { next }
	{ k = FILENAME ~ /ours$/ ? "o" : "t"; v[k, $1, ++n[k, $1]] = $2; unit[$1] = $3; if (!($1 in seen)) { seen[$1] = 1; order[++m] = $1 } }
	function median(k, x,    i, j, a, c, t) {
		c = n[k, x]; if (!c) return "-"
		for (i = 1; i <= c; i++) a[i] = v[k, x, i] + 0
		for (i = 1; i < c; i++) for (j = i + 1; j <= c; j++) if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }
		return a[int((c + 1) / 2)]
	}
	END {
		printf "%-34s %12s %12s %8s  %s\n", "figure", "berth", "other", "ratio", "unit"
		for (i = 1; i <= m; i++) { x = order[i]; a = median("o", x); b = median("t", x)
			printf "%-34s %12s %12s %8s  %s\n", x, a, b, (b != "-" && b + 0 ? sprintf("%.2f", a / b) : "-"), unit[x] } }
' "$dir/ours" "$dir/theirs"
echo "# raw lines: $dir/ours $dir/theirs"
echo "# the core alone (doc/bench.md)"
"$build/src/sim/corebench" flow burst full restart growth
