#!/bin/sh
# Has ptxas assemble the committed PTX for the chips that it knows, and prints each kernel's registers, shared memory and
# spills. It fails if a text is refused or a kernel spills. Without ptxas it says so and succeeds.
set -eu
ptxas=${PTXAS:-ptxas}
if ! command -v "$ptxas" >/dev/null; then
	echo "ptx-check: nothing was checked, since $ptxas is not here; NVIDIA's CUDA toolkit has it"
	exit 0
fi
texts=$(dirname "$0")/../device/cuda/kernels/ptx
help=$("$ptxas" --help)
failed=0
printf '%-6s %-28s %9s %7s %7s\n' chip kernel registers shared spills
for chip in sm_60 sm_70 sm_75 sm_80 sm_86 sm_90; do
	case $help in
	*$chip*) ;;
	*)
		echo "$chip: this ptxas does not know it"
		continue
		;;
	esac
	for text in "$texts"/*.ptx; do
		if ! log=$("$ptxas" -v -arch "$chip" -o /dev/null "$text" 2>&1); then
			printf '%s: %s is refused:\n%s\n' "$chip" "$text" "$log"
			failed=1
			continue
		fi
		printf '%s\n' "$log" | awk -v chip="$chip" '
			/Compiling entry function/ { split($0, quoted, "\047"); kernel = quoted[2] }
			/bytes spill stores/ { spills = 0; for (i = 1; i <= NF; i++) if ($(i + 2) == "spill") spills += $i }
			/Used [0-9]+ registers/ {
				shared = 0
				for (i = 1; i <= NF; i++) {
					if ($i == "Used") registers = $(i + 1)
					if ($(i + 2) ~ /^smem/) shared = $i
				}
				printf "%-6s %-28s %9d %7d %7d\n", chip, kernel, registers, shared, spills
				if (spills > 0) spilled = 1
			}
			END { exit spilled }' || failed=1
	done
done
test $failed = 0 || { echo "ptx-check: a text is refused, or a kernel spills" >&2; exit 1; }
