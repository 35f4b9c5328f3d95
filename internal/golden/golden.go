// Package golden compares what code does with files that show it, and rewrites these with -rewrite, the flag of
// datadriven.
//
// Scripts for machines are played by datadriven itself. "make golden" finds the packages whose tests import one of the
// two.
package golden

import (
	"flag"
	"os"
	"testing"

	_ "github.com/cockroachdb/datadriven" // has the flag
	"github.com/google/go-cmp/cmp"
)

// Compare fails a test in which got is not what a file holds; with -rewrite the file becomes that.
func Compare(t *testing.T, file, got string) {
	t.Helper()
	diff, err := compare(file, got, flag.Lookup("rewrite").Value.String() == "true")
	if err != nil {
		t.Fatal(err)
	}
	if diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// compare returns how got differs from what a file holds; the file becomes that first if it is to be rewritten.
func compare(file, got string, rewrite bool) (string, error) {
	if rewrite {
		return "", os.WriteFile(file, []byte(got), 0o666)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return cmp.Diff(string(want), got), nil
}
