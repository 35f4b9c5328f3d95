package golden

import (
	"path/filepath"
	"testing"

	_ "tensile/internal/long" // the flag -long
)

// A golden that does not exist is an error, one that differs is a difference, and a rewritten one is equal.
func TestCompare(t *testing.T) {
	file := filepath.Join(t.TempDir(), "golden")
	if _, err := compare(file, "a\n", false); err == nil {
		t.Error("a golden that does not exist is no error")
	}
	if _, err := compare(file, "a\n", true); err != nil {
		t.Fatal(err)
	}
	if diff, err := compare(file, "a\n", false); err != nil || diff != "" {
		t.Errorf("a rewritten golden differs: %v %s", err, diff)
	}
	if diff, err := compare(file, "b\n", false); err != nil || diff == "" {
		t.Errorf("other text is no difference: %v", err)
	}
}
