#!/bin/sh
# Compiles the CUDA kernels of device/cuda/kernels/src to a folder: clang's text is the same on every machine.
# .target sm_60 and .version 6.0 are taken by every driver from CUDA 9.0 on, and by every chip from Pascal on.
set -eu
test $# = 1 || { echo "usage: $0 FOLDER" >&2; exit 2; }
sources=$(dirname "$0")/../device/cuda/kernels/src
for source in "$sources"/*.c; do
	text=$1/$(basename "$source" .c).ptx
	${CLANG:-clang-19} --target=nvptx64-nvidia-cuda -march=sm_60 -Xclang -target-feature -Xclang +ptx60 -std=gnu11 -O3 \
		-S -nostdlib -ffreestanding -ffp-contract=off -fno-strict-aliasing -Wall -Wextra -Werror \
		"$source" -o "$text"
	# A kernel's BOUNDS are a comment in its body, since clang has no attribute for them in C. Their place is its head.
	awk '
		/^\.visible \.entry / { held = 1 }
		!held { print; next }
		/\/\/bounds / { bounds = substr($0, index($0, ".")); next }
		{ lines[n++] = $0 }
		/^}/ {
			for (i = 0; i < n; i++) {
				if (lines[i] == "{" && bounds != "") print bounds
				print lines[i]
			}
			n = held = 0
			bounds = ""
		}' "$text" > "$text.new"
	mv "$text.new" "$text"
done
