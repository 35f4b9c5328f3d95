#!/bin/bash
# How long jobs take that share memory on the cpu, by each way to share, in turns: every round runs them all.
#
#	scripts/share-times.sh ROUNDS ITERATIONS MODEL... [flags of tensile run]
#
# A line is a run: the way, wall, user and system seconds of all its processes, from the start to the end,
# and a digest of all jobs' bits.
# alone: one job of a MODEL by itself. slices has the largest arena. TENSILE names the program.
set -euo pipefail
rounds=$1 iterations=$2
shift 2
models=()
for word in "$@"; do
	[[ $word == -* ]] && break
	models+=("$word")
done
flags=("${@:${#models[@]}+1}")
tensile=${TENSILE:-tensile}
run() { # way, jobs and flags
	local way=$1
	shift
	/usr/bin/time -o "$times" -f '%e %U %S' "$tensile" run "$@" --iterations "$iterations" --checkpoint none \
		--no-calibrate --json > "$out"
	grep -o '"digest": "[0-9a-f]*"' "$out" | tr -d '\n' | md5sum | head -c 8 > "$out.md5"
	printf '%-10s %s  %s  gate %s ms\n' "$way" "$(cat "$times")" "$(cat "$out.md5")" \
		"$(grep -o '"gate_ms": [0-9.]*' "$out" | tail -1 | cut -d' ' -f2)"
}
times=$(mktemp) out=$(mktemp)
trap 'rm -f "$times" "$out" "$out.md5"' EXIT
least=$("$tensile" plan "$@" --memory-sharing gates --no-calibrate --json |
	sed -n 's/^  "least_bytes": \([0-9]*\).*/\1/p')
largest=$("$tensile" plan "$@" --no-calibrate --json |
	sed -n 's/^ *"arena_bytes": \([0-9]*\).*/\1/p' | sed '$d' | sort -n | tail -1)
page=$((2 << 20))
largest=$(((largest + page - 1) / page * page))
more=$(((least * 11 / 10 + page - 1) / page * page))
echo "least $least bytes, an arena $largest bytes; columns: way, wall, user, system seconds, bits"
for _ in $(seq "$rounds"); do
	run gates "$@" --memory-sharing gates --budget "$least"
	run none "$@" --memory-sharing none
	run gates1.1 "$@" --memory-sharing gates --budget "$more"
	run slices "$@" --memory-sharing slices --budget "$largest"
	for model in "${models[@]}"; do
		run "alone" "${model%:*}" "${flags[@]}" --memory-sharing none
	done
done
uptime
