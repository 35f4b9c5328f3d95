#!/usr/bin/env bash
# onnx-peers.sh [FOLDER [NETWORK...]]: exports networks of torchvision, timm, transformers and by hand three ways, trains them with Tensile and
# with PyTorch, and prints which agree (scripts/onnx-peers.py). It takes an hour on two idle cores the first time; FOLDER, by default a new one, keeps the
# files. PYTHON names the interpreter; without the packages it is skipped with a line.
set -euo pipefail
folder=$(realpath -m "${1:-$(mktemp -d)}")
[ $# = 0 ] || shift
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
for package in torch onnx onnxscript onnxruntime torchvision timm transformers; do
	"$python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$package') is None)" 2>/dev/null || {
		echo "skipped: $python has no $package: install torch==2.15.0 onnxscript==0.7.2 onnxruntime==1.32.0 torchvision timm transformers"
		exit 0
	}
done
echo "files: $folder"
binary=$(mktemp -d)
trap 'rm -rf "$binary"' EXIT
go build -o "$binary/tensile" ./cmd/tensile
HF_HUB_OFFLINE=1 "$python" scripts/onnx-peers.py "$binary/tensile" "$folder" "$@"
