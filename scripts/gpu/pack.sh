#!/bin/sh
# pack.sh FOLDER: makes FOLDER and FOLDER.tar.xz, what the check of a machine with an NVIDIA GPU needs. `make gpu-check` calls it.
set -eu
out=$1
most=$((45 * 1024 * 1024))
rm -rf "$out" "$out.tar.xz"
mkdir -p "$out/launches" "$out/python"
"$GO" build -tags gpu -ldflags "-s -w" -o "$out/tensile" ./cmd/tensile
"$GO" test -c -tags gpu -ldflags "-s -w" -o "$out/conformance.test" ./device/cuda/driver
strip -s "$out/tensile" "$out/conformance.test"
cp scripts/gpu/*.py scripts/torch_resnet.py device/cuda/kernels/testdata/digests.txt "$out/"
cp device/cuda/kernels/testdata/ops.txt "$out/"
sed -n '/^## The first time on a GPU/,/^## tensile devices/p' docs/cuda.md | sed '$d' >"$out/README.md"
cp -r device/cuda/kernels/ptx "$out/"
mkdir "$out/python/tensile" && cp python/tensile/*.py "$out/python/tensile/"
launches() { "$GO" run ./internal/launches "$@" >"$out/launches/${1%%:*}.jsonl"; }
launches lenet 2 12
launches bert:1,16,2 4 0 8
launches gnmt:3,16 4 0 4
launches alexnet 1 67
launches nasnet-mobile 1 35
launches resnet50 16 224
launches gpt2 8 0 1024
tar -C "$(dirname "$out")" --owner=0 --group=0 -cf - "$(basename "$out")" | xz -T2 -6 >"$out.tar.xz"
size=$(wc -c <"$out.tar.xz")
echo "$out.tar.xz: $size bytes of at most $most"
if [ "$size" -gt "$most" ]; then
	echo "pack.sh: $out.tar.xz is larger than what can be carried: leave something out" >&2
	exit 1
fi
