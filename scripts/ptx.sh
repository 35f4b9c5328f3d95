#!/bin/sh
# Compiles the CUDA kernels of device/cuda/kernels/src to a folder: clang's text is the same on every machine.
# .target sm_60 and .version 6.0 are taken by every driver from CUDA 9.0 on, and by every chip from Pascal on.
set -eu
test $# = 1 || { echo "usage: $0 FOLDER" >&2; exit 2; }
sources=$(dirname "$0")/../device/cuda/kernels/src
for source in "$sources"/*.c; do
	${CLANG:-clang-19} --target=nvptx64-nvidia-cuda -march=sm_60 -Xclang -target-feature -Xclang +ptx60 -std=gnu11 -O3 \
		-S -nostdlib -ffreestanding -ffp-contract=off -fno-strict-aliasing -Wall -Wextra -Werror \
		"$source" -o "$1/$(basename "$source" .c).ptx"
done
