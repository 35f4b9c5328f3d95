package cpu

import (
	"regexp"
	"testing"
)

// An identity names the processor and the bits of kernels, whatever the number of threads.
func TestIdentity(t *testing.T) {
	open := func(o Options) string {
		d, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		return d.Identity()
	}
	one := open(Options{})
	if !regexp.MustCompile(`^cpu/[a-z0-9-]+/kernels=[0-9a-f]{8}$`).MatchString(one) {
		t.Errorf("identity %q", one)
	}
	if two := open(Options{Threads: 2}); two != one {
		t.Errorf("with two threads the identity is %q, with one %q", two, one)
	}
}
