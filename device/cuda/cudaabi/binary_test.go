//go:build gpu

package cudaabi

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	_ "tensile/internal/long" // the flag -long
)

// told matches a line of a GPU, or why there is none.
var told = regexp.MustCompile(`(?m)^(cuda:0 |missing: no NVIDIA driver \(libcuda\.so\.1: |missing: cuInit: )`)

// The binary with the CUDA device needs libc alone. Where there is no driver it starts, and says so.
func TestBinary(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "tensile")
	build := exec.Command("go", "build", "-tags", "gpu", "-o", binary, "tensile/cmd/tensile")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	if diff := cmp.Diff([]string{"libc.so.6"}, libraries); err != nil || diff != "" {
		t.Errorf("%v; libraries (-want +got)\n%s", err, diff)
	}
	symbols, err := file.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, "cu") {
			t.Errorf("%s is to come from another library", s.Name)
		}
	}
	out, err := exec.Command(binary, "devices").Output()
	if err != nil {
		t.Fatalf("tensile devices: %v", err)
	}
	if !told.Match(out) {
		t.Errorf("tensile devices says neither that there is a GPU nor that there is no driver:\n%s", out)
	}
}
