#!/bin/sh
# fake.sh FILE: the fake driver as a library FILE, which GPU_CHECK_CUDA names to the programs of this folder.
set -eu
cd "$(dirname "$0")/../.."
settings=$(device/cuda/cudaabi/build.sh)
eval "$settings"
include=${settings#*-I}
include=${include%%\"*}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
${GO:-go} build -tags gpu -buildmode=c-archive -o "$tmp/fake.a" ./device/cuda/fakecuda/library
gcc -shared -o "$1" -Wl,-Bsymbolic -Wl,--whole-archive "$tmp/fake.a" "$include/libcuda.a" -Wl,--no-whole-archive -lpthread -ldl -lm
