package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"tensile/internal/long"
	"tensile/internal/needs"
)

// TestKit packs the check of a machine with a GPU, unpacks it elsewhere and goes through its stages on the fake driver.
func TestKit(t *testing.T) {
	long.Only(t)
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the fake driver is a library on linux/amd64")
	}
	needs.Program(t, "gcc", "gcc")
	needs.Program(t, "strip", "binutils")
	needs.Program(t, "xz", "xz-utils")
	needs.Program(t, "python3", "python3")
	packed, there := filepath.Join(t.TempDir(), "gpu-check"), t.TempDir()
	carryOut(t, "../..", nil, "sh", "-c",
		`settings=$(device/cuda/cudaabi/build.sh) && eval "$settings" && GO=go scripts/gpu/pack.sh `+packed)
	carryOut(t, there, nil, "tar", "xf", packed+".tar.xz")
	kit := filepath.Join(there, "gpu-check")
	carryOut(t, "../..", []string{"GO=go"}, "scripts/gpu/fake.sh", filepath.Join(kit, "libfakecuda.so"))
	for _, stage := range []string{"1", "2", "3"} {
		t.Run("stage "+stage, func(t *testing.T) {
			python := "python3"
			if stage == "3" {
				python = needs.Torch(t)
			}
			// Limits of an hour: other work may take all of the machine.
			results := filepath.Join(there, stage)
			t.Logf("%s", carryOut(t, kit, nil, python, "check.py", stage, results, "--fake", "--scale", "60"))
			for _, name := range []string{"table.txt", "table.json", "results.tgz"} {
				if _, err := os.Stat(filepath.Join(results, name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// carryOut runs a command in a folder and returns what it printed.
func carryOut(t *testing.T, folder string, more []string, command ...string) []byte {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	c.Dir, c.Env = folder, append(os.Environ(), more...)
	said, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", command, err, said)
	}
	return said
}
