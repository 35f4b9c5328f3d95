package report

import (
	"strings"
	"testing"

	_ "tensile/internal/long" // the flag -long
	"tensile/models/task"
)

// A catalog is a head, a line per network, and a line about the families.
func TestWriteCatalog(t *testing.T) {
	var out strings.Builder
	if err := WriteCatalog(&out, []task.Network{{Name: "a"}, {Name: "b"}}); err != nil ||
		strings.Count(out.String(), "\n") != 4 || strings.Contains(out.String(), "BUSY") {
		t.Errorf("%v: two networks are printed as\n%s", err, out.String())
	}
	out.Reset()
	on := &task.Alone{Milliseconds: 12.34, Busy: 0.567}
	if err := WriteCatalog(&out, []task.Network{{Name: "a", Alone: on}}); err != nil ||
		!strings.Contains(out.String(), "BUSY\n") || !strings.Contains(out.String(), "12.3  0.57\n") {
		t.Errorf("%v: a network on a device is printed as\n%s", err, out.String())
	}
}
