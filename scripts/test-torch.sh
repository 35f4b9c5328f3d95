#!/usr/bin/env bash
# Runs the tests of python/tensile on a Python with PyTorch and appends a row to docs/pytorch.md if they pass: versions, passed, skipped.
# A version that is listed already gets its row anew.
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
version=$("$python" -c 'import sys, torch; print(torch.__version__.split("+")[0], "| %d.%d" % sys.version_info[:2])') || {
	echo "$python has no PyTorch: give another one with PYTHON=..." >&2
	exit 1
}
code=0
TENSILE_LONG=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 "$python" -m unittest discover -v -s python/tests >"$log" 2>&1 || code=$?
tail -n 3 "$log"
ran=$(sed -nE 's/^Ran ([0-9]+) tests? in .*/\1/p' "$log" | tail -n 1)
[ -n "$ran" ] || {
	echo "the tests did not come to their end: status $code, and no row" >&2
	exit "$((code ? code : 1))"
}
count() { sed -nE "s/^(OK|FAILED) .*$1=([0-9]+).*/\2/p" "$log" | tail -n 1; }
skipped=$(count skipped)
[ "$code" = 0 ] || { grep -E '^(FAIL|ERROR):' "$log" >&2; exit "$code"; }
page=docs/pytorch.md
sed -i "\\#^| $version |#d" "$page"
echo "| $version | $((ran - ${skipped:-0})) | ${skipped:-0} |" >>"$page"
