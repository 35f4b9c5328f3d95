#!/usr/bin/env bash
# Builds the newest earlier commit whose state folders have the form of this one (Format in wire/bus/format.go), starts
# jobs there, and has this one go on with its folder: bits are to be those of jobs that nothing disturbs. A folder of another
# form is to be refused untouched. Give a commit to start from that one. A quarter of an hour at most.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
form() { # of a commit, whose file may still be where it was; before there were numbers it was 1
	{ git show "$1:wire/bus/format.go" || git show "$1:internal/bus/format.go"; } 2>/dev/null |
		sed -nE 's/^const Format = ([0-9]+)$/\1/p' | grep . || echo 1
}
ours=$(sed -nE 's/^const Format = ([0-9]+)$/\1/p' wire/bus/format.go)
from=HEAD
git diff --quiet HEAD -- && from=HEAD^
commit=
for c in ${1:-$(git rev-list --max-count=1000 "$from")}; do
	if [ "$(form "$c")" = "$ours" ]; then
		commit=$c
		break
	fi
done
[ -n "$commit" ] || {
	echo "no commit among the 1000 before this one keeps state folders of form $ours: give one" >&2
	exit 1
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
git archive "$commit" | tar -x -C "$dir"
echo "from $(git log -1 --format='%h %s' "$commit"), form $ours"
(cd "$dir" && timeout 600 "$go" build -o "$dir/tensile" ./cmd/tensile)
timeout 300 "$go" test -count=1 -timeout 5m ./cmd/tensile -run '^(TestUpgrade|TestOtherFormat)$' -v -earlier "$dir/tensile"
