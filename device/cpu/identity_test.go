package cpu

import (
	"regexp"
	"strings"
	"testing"

	"tensile/internal/needs"
)

// An identity names the library with its version and kernels, the threads, and the processor.
func TestIdentity(t *testing.T) {
	open := func(o Options) string {
		d, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		return d.Identity()
	}
	plain := open(Options{NoOpenBLAS: true})
	if !regexp.MustCompile(
		`^cpu/gonum-(v[0-9.]+|unknown)-(assembly|go)/threads=1/[a-z0-9-]+/kernels=[0-9a-f]{8}$`).MatchString(plain) {
		t.Errorf("identity %q", plain)
	}
	if again := open(Options{NoOpenBLAS: true}); again != plain {
		t.Errorf("identity %q, and again %q", plain, again)
	}
	if two := open(Options{NoOpenBLAS: true, Threads: 2}); two != strings.Replace(plain, "threads=1", "threads=2", 1) {
		t.Errorf("with two threads the identity is %q, with one %q", two, plain)
	}
	fast := open(Options{})
	needs.OpenBLAS(t, fast)
	if !regexp.MustCompile(`^cpu/openblas-[0-9.]+-[A-Za-z0-9]+/threads=1/`).MatchString(fast) ||
		strings.Contains(fast, "unknown") {
		t.Errorf("identity %q", fast)
	}
}
