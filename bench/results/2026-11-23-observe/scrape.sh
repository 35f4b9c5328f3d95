#!/bin/bash
# usage: scrape.sh TENSILE: processor time of a controller with 50 jobs, by scrape of its metrics
set -eu
bin=$1; dir=$(mktemp -d); trap 'kill $pid 2>/dev/null; rm -rf $dir' EXIT
$bin controller --state $dir/state --device sim:a6000 --budget 20GiB >$dir/log & pid=$!
until grep -q "page at" $dir/log; do sleep 0.2; done
until $bin submit lenet:50 --batch 8 --iterations 10000000 --state $dir/state >/dev/null 2>$dir/err; do cat $dir/err; done
until [ "$($bin jobs --json --state $dir/state 2>/dev/null | grep -c '"phase": "running"')" = 50 ]; do sleep 1; done
echo "50 jobs train"
for i in $(seq 50); do until $bin park lenet.$i --state $dir/state >/dev/null 2>&1; do :; done; done
until [ "$($bin jobs --json --state $dir/state 2>/dev/null | grep -c '"phase": "parked"')" = 50 ]; do sleep 1; done
echo "50 jobs are parked"
url=$($bin page --state $dir/state); token=${url##*token=}; at=${url%%/\?*}/metrics
cpu() { awk '{print $14+$15}' /proc/$pid/stat; } # in hundredths of a second
printf 'header = "Authorization: Bearer %s"\n' $token >$dir/curlrc
curl -s -K $dir/curlrc $at | grep -c "^tensile_" | sed 's/$/ series of ours in a scrape/'
for round in 1 2 3; do
	a=$(cpu); sleep 20; b=$(cpu)
	for i in $(seq 200); do echo "url = $at"; echo "output = /dev/null"; done >$dir/urls
	c=$(cpu); t0=$(date +%s.%N); curl -s -K $dir/curlrc -K $dir/urls; t1=$(date +%s.%N); d=$(cpu)
	echo "round $round: idle $((b-a)) hundredths in 20 s; 200 scrapes $((d-c)) hundredths in $(echo "$t1 - $t0" | bc) s"
done
