#!/bin/sh
# Builds libcuda.a, the calls of CUDA's driver API as cuda.h has them (see src), into a folder below bin/cudaabi, and
# prints the settings for the go command, to be evaluated by a shell:
#
#	eval "$(device/cuda/cudaabi/build.sh)" && go build -tags gpu ./...
#
# The folder is named after what it is made of: the go command knows a header and a library outside of a package by
# their paths alone, and would go on with old ones.
set -eu
cd "$(dirname "$0")"
CC=${CC:-gcc}
hash=$({ cat build.sh src/*; "$CC" -dumpmachine; "$CC" -dumpversion; } | cksum | tr ' ' -)
out=$(cd ../../.. && pwd)/bin/cudaabi/$hash
if [ ! -f "$out/libcuda.a" ]; then
	mkdir -p "$out"
	tmp=$(mktemp -d "$out/tmp.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	"$CC" -E -P src/cuda.h | tr '\n' ' ' | grep -oE 'CUresult cu[A-Za-z0-9_]+\(' |
		sed -E 's/CUresult (.*)\(/SYMBOL(\1, missing)/; s/(cuInit, )missing/\1success/' >"$tmp/symbols.h"
	"$CC" -O2 -fPIC -Wall -Wextra -Werror -I"$tmp" -c src/load.c -o "$tmp/load.o"
	ar rcsD "$tmp/libcuda.a" "$tmp/load.o"
	cp src/*.h "$out/"
	mv "$tmp/libcuda.a" "$out/" # last, whole: its being there says that the folder is complete
fi
echo "export CGO_CFLAGS='-g -O2 \"-I$out\"' CGO_LDFLAGS='-g -O2 \"-L$out\"'"
