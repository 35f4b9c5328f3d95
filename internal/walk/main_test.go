package main

import (
	"strings"
	"testing"

	_ "tensile/internal/long"
)

// A status of a job goes through few files of the controller, and hardly ever back.
func TestWalkOfStatus(t *testing.T) {
	stays, files := walk("../..", "controller", "Machine.applyJobStatus", "s")
	if files == 0 || files > 8 || len(stays)-files > 6 {
		t.Errorf("it enters %d files and returns %d times:\n%s", files, len(stays)-files, strings.Join(stays, "\n"))
	}
}
