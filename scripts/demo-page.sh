#!/bin/sh
# Starts two controllers, one of a simulated a6000 with three jobs and one of the cpu with one, and prints where a browser
# finds their pages. Ctrl-C ends all of it. The first argument is the program, bin/tensile if there is none.
set -eu
tensile=${1:-bin/tensile}
dir=$(mktemp -d)
pids=

end() {
	trap - EXIT INT TERM
	echo "ending"
	for state in "$dir/sim" "$dir/cpu"; do
		"$tensile" stop $("$tensile" jobs --json --state "$state" | sed -n 's/^ *"name": "\(.*\)",$/\1/p') \
			--state "$state" >"$dir/stop.log" 2>&1 || cat "$dir/stop.log"
	done
	for state in "$dir/sim" "$dir/cpu"; do # executors leave when their jobs are over
		tries=0
		while ls "$state"/executors/*.json >/dev/null 2>&1 && [ $tries -lt 60 ]; do
			tries=$((tries + 1))
			sleep 0.5
		done
	done
	[ -z "$pids" ] || kill -INT $pids 2>/dev/null || true
	wait
	rm -rf "$dir"
	exit
}
trap end EXIT INT TERM

# A Ctrl-C is for this script: it ends the controllers after their jobs.
setsid "$tensile" controller --device sim:a6000 --budget 5GiB --memory-sharing none --state "$dir/sim" >"$dir/sim.log" 2>&1 &
pids="$pids $!"
setsid "$tensile" controller --budget 48MiB --memory-sharing none --state "$dir/cpu" >"$dir/cpu.log" 2>&1 &
pids="$pids $!"
for which in sim cpu; do
	until grep -q "page at" "$dir/$which.log"; do
		kill -0 $pids || { cat "$dir/$which.log"; exit 1; }
		sleep 0.2
	done
done
"$tensile" submit resnet50:2 vgg16 --batch 16 --iterations 100000 --state "$dir/sim"
"$tensile" submit resnet:1,1,1,1 --image 32 --batch 32 --iterations 100000 --state "$dir/cpu"
echo
echo "three jobs on a simulated a6000:  $("$tensile" page --steer --state "$dir/sim")"
echo "one job on the cpu:               $("$tensile" page --steer --state "$dir/cpu")"
echo "Ctrl-C ends all of it."
while :; do
	sleep 1
done
