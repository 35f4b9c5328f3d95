#!/bin/bash
# gpu-check.sh [FOLDER]: try Tensile on this machine's NVIDIA GPU, in nine minutes at most, without Go.
#
# It wants the folder that `make gpu-check` makes: this script, tensile, conformance.test, digests.txt, torch_step.py, torch_bridge.py and
# the folder python beside one another. What every part prints goes to FOLDER (default: gpu-check-results), and a table of all parts comes last. It exits with 1
# if a part has failed. With FAKE=1 it goes through all parts on a driver without a GPU, with small networks.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-gpu-check-results}
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
begin=$SECONDS
limit=540 # seconds, for everything
device=(--device cuda)
resnet=(resnet50 --batch 16 --iterations 12)
vgg=(vgg16 --batch 16 --iterations 12)
calibrate=60s
tight=40%
if [ -n "${FAKE:-}" ]; then
	device+=(--fake)
	resnet=(lenet --batch 16 --iterations 3)
	vgg=(lenet --batch 8 --iterations 3)
	tight=55% # less does not hold the largest step
fi
rows=()
failed=0

# part NAME SECONDS COMMAND...: run a command for so long at most and keep what it prints. Its status is in $status.
part() {
	local name=$1 most=$2
	shift 2
	local left=$((limit - SECONDS + begin))
	if [ "$left" -lt 5 ]; then
		status=skipped
		rows+=("$name|skipped|no time was left")
		return
	fi
	[ "$left" -lt "$most" ] && most=$left
	timeout -k 5 "$most" "$@" >"$out/$name.txt" 2>"$out/$name.err"
	status=$?
	[ -s "$out/$name.err" ] || rm -f "$out/$name.err"
}

# row NAME FIGURES: a line of the table for a part that has run.
row() {
	case $status in
	skipped) ;;
	0) rows+=("$1|ok|$2") ;;
	*)
		failed=1
		local why
		why=$(cat "$out/$1.txt" "$out/$1.err" 2>/dev/null | grep -v '^$' | tail -1 | cut -c1-90)
		[ "$status" -ge 124 ] && why="it took too long or was killed: $why"
		rows+=("$1|FAILED ($status)|$why")
		;;
	esac
}

skip() { rows+=("$1|skipped|$2"); }

# figure FILE KEY: the first number of a key in a JSON document.
figure() { grep -o "\"$2\": *[-0-9.e+nul]*" "$out/$1.txt" 2>/dev/null | head -1 | sed 's/.*: *//'; }

tensile=$here/tensile
if [ ! -x "$tensile" ]; then
	echo "gpu-check: $tensile is missing: run make gpu-check where Go is, and bring the folder here" >&2
	exit 1
fi
echo "gpu-check: what each part prints goes to $out; a table comes in nine minutes at most" >&2
export XDG_CACHE_HOME=$out/cache # models of latencies stay here

{
	date
	uname -a
	"$tensile" --version
	nproc
} >"$out/machine.txt" 2>&1
command -v nvidia-smi >/dev/null && nvidia-smi -q >"$out/nvidia-smi.txt" 2>&1

part devices 30 "$tensile" devices
row devices "$(grep -i -m1 'nvidia\|gpu' "$out/devices.txt" 2>/dev/null | tr -s ' ' | cut -c1-80)"

if [ -n "${FAKE:-}" ]; then
	skip conformance "the suite runs on the fake driver in go test"
elif [ -x "$here/conformance.test" ]; then
	part conformance 150 "$here/conformance.test" -test.v -test.timeout 140s
	passed=$(grep -c '^ *--- PASS' "$out/conformance.txt" 2>/dev/null)
	if [ "$status" = 0 ] && [ "$passed" = 0 ]; then
		status=1 # the suite skips what it finds no GPU for
		echo "nothing ran: $(grep -m1 'needs an NVIDIA GPU' "$out/conformance.txt" | sed 's/^ *//')" >>"$out/conformance.err"
	fi
	row conformance "$passed checks passed"
else
	skip conformance "conformance.test is not here"
fi

# Every line of digests.txt is a digest and the words of a run that comes to it.
same=0
all=0
: >"$out/digests.txt"
while read -r want words; do
	case $want in '' | '#'*) continue ;; esac
	all=$((all + 1))
	# shellcheck disable=SC2086 # the words are words
	part digest 60 "$tensile" run $words "${device[@]}" --no-calibrate --json
	got=$(grep -o '"digest": *"[0-9a-f]*"' "$out/digest.txt" | head -1 | sed 's/.*: *"//; s/"//')
	if [ "$got" = "$want" ]; then
		same=$((same + 1))
	fi
	echo "want $want got ${got:-nothing} $words" >>"$out/digests.txt"
	cat "$out/digest.err" >>"$out/digests.txt" 2>/dev/null
done <"$here/digests.txt"
rm -f "$out/digest.txt" "$out/digest.err"
if [ "$same" = "$all" ] && [ "$all" -gt 0 ]; then
	rows+=("digests|ok|$same of $all as committed")
else
	failed=1
	rows+=("digests|FAILED|$same of $all as committed")
fi

part rates 60 "$tensile" debug rates "${device[@]}"
row rates "$(grep -v 'COPY\|PRODUCT\|BESIDE\|device\|fake' "$out/rates.txt" | tail -2 | tr -s ' ' | tr '\n' ';')"

# train NAME WORDS...: with a plan and without.
train() {
	local name=$1
	shift
	part "$name" 75 "$tensile" run "$@" "${device[@]}" --no-calibrate --compare --json
	row "$name" "$(figure "$name" arena_bytes) bytes of $(figure "$name" vanilla_peak_live_bytes), eor $(figure "$name" eor), bits $(grep -o \
		'"bit_identical": *[a-z]*' "$out/$name.txt" | head -1 | sed 's/.*: *//')"
}
train resnet50-60 "${resnet[@]}" --budget 60%
train vgg16-60 "${vgg[@]}" --budget 60%
train resnet50-tight "${resnet[@]}" --budget "$tight"

if [ -n "${FAKE:-}" ]; then
	skip calibrate "the fake driver has no time of its own"
else
	part calibrate 120 "$tensile" calibrate "${device[@]}" --time "$calibrate" --output "$out/model.json" \
		--samples "$out/samples.json"
	row calibrate "$(tail -1 "$out/calibrate.txt" 2>/dev/null | sed 's/.*: //' | cut -c1-80)"
fi

if [ -z "${FAKE:-}" ] && command -v python3 >/dev/null && python3 -c 'import torch, torchvision' 2>/dev/null; then
	part torch 75 python3 "$here/torch_step.py"
	row torch "$(tr '\n' ';' <"$out/torch.txt")"
else
	skip torch "python3 with torch and torchvision is not here"
fi

if [ -z "${FAKE:-}" ] && command -v python3 >/dev/null && python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
	part bridge 150 python3 "$here/torch_bridge.py" "$tensile" cuda
	row bridge "$(tr '\n' ';' <"$out/bridge.txt")"
else
	skip bridge "python3 with a torch that has CUDA is not here"
fi

echo
printf '%-14s %-14s %s\n' PART RESULT FIGURES | tee "$out/table.txt"
for r in "${rows[@]}"; do
	IFS='|' read -r name result figures <<<"$r"
	printf '%-14s %-14s %s\n' "$name" "$result" "$figures" | tee -a "$out/table.txt"
done
exit $failed
