#!/bin/sh
# Lists the Go lines of over 120 columns below the folders that are given, or below this one, and fails if there are any.
# A tab counts 4 columns, a character of several bytes one.
find "${@:-.}" -name '*.go' -type f -exec env LC_ALL=C awk '
	{
		line = $0
		gsub(/\t/, "    ", line)
		gsub(/[\200-\277]/, "", line)
		if (length(line) > 120) {
			printf "%s:%d: %d columns, over 120\n", FILENAME, FNR, length(line)
			bad = 1
		}
	}
	END { exit bad }' {} +
