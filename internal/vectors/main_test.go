package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	_ "tensile/internal/long"
)

// The files of package vector are what the command writes.
func TestFilesAreCurrent(t *testing.T) {
	dir := t.TempDir()
	command := filepath.Join(dir, "vectors")
	if out, err := exec.Command("go", "build", "-o", command, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	write := exec.Command(command, "-pkg", "vector", "-out", "vector_amd64.s", "-stubs", "stubs_amd64.go")
	write.Dir = dir
	if out, err := write.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"vector_amd64.s", "stubs_amd64.go", "stubs_other.go"} {
		written, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(filepath.Join("../../device/cpu/vector", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(written, kept) {
			t.Errorf("%s is not what the command writes: run it as its comment says", name)
		}
	}
}
