#!/bin/sh
# Copies the licence files of all that bin/tensile is made of, the Go standard library included, below a folder.
set -eu
to=$1
go=${GO:-go}
mkdir -p "$to"
cp "$("$go" env GOROOT)/LICENSE" "$to/go"
cp observe/page/static/uplot-LICENSE.txt "$to/uplot"
"$go" list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' ./cmd/tensile | sort -u | while read -r module dir; do
	found=
	for file in "$dir"/LICEN[CS]E* "$dir"/NOTICE* "$dir"/licenses/ftl.txt "$dir"/THIRD_PARTY_LICENSES/*; do
		if [ -f "$file" ]; then
			found=yes
			mkdir -p "$to/$module"
			cp "$file" "$to/$module/"
		fi
	done
	if [ -z "$found" ]; then
		echo "$module has no licence file" >&2
		exit 1
	fi
done
