package report

import (
	"strings"
	"testing"

	"tensile/workload"
)

// A catalog is a head, a line per network, and a line about the families.
func TestWriteCatalog(t *testing.T) {
	var out strings.Builder
	if err := WriteCatalog(&out, []workload.Network{{Name: "a"}, {Name: "b"}}); err != nil ||
		strings.Count(out.String(), "\n") != 4 {
		t.Errorf("%v: two networks are printed as\n%s", err, out.String())
	}
}
