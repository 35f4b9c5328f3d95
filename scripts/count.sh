#!/bin/sh
# Counts the lines of Go that a maintainer must know, in the working tree or in the commit that is given: of all tracked
# Go files but tests (_test.go), the folder bench, folders named rivals, and packages for tests alone, whose names end in
# test. At 113f0747 these are 114,770.
set -e
cd "$(git rev-parse --show-toplevel)"
git grep -c '' $1 -- '*.go' ':!*_test.go' ':!bench/' ':(exclude,glob)**/rivals/**' ':(exclude,glob)**/*test/**' |
	awk -F: '{ sum += $NF } END { print sum " lines of Go outside tests, bench and rivals" }'
