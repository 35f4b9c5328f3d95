package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	_ "tensile/internal/long"
)

// The files of packages vector and gemm are what the command writes.
func TestFilesAreCurrent(t *testing.T) {
	dir := t.TempDir()
	command := filepath.Join(dir, "vectors")
	if out, err := exec.Command("go", "build", "-o", command, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"vector", "gemm"} {
		files := []string{name + "_amd64.s", "stubs_amd64.go", "stubs_other.go"}
		write := exec.Command(command, "-pkg", name, "-out", files[0], "-stubs", files[1])
		write.Dir = dir
		if out, err := write.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, file := range files {
			written, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			kept, err := os.ReadFile(filepath.Join("../../device/cpu", name, file))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(written, kept) {
				t.Errorf("%s of package %s is not what the command writes: run it as its comment says", file, name)
			}
		}
	}
}
