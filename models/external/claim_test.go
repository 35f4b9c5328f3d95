package external

import (
	"testing"

	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
)

// A claim is a graph that a script can have recorded, of just its bytes, and claims of one size are equal.
func TestClaim(t *testing.T) {
	for _, size := range []graph.Bytes{1, 3, 4 * graph.GiB, graph.MaxBytes} {
		g := Claim(size)
		if err := checkGraph(g); err != nil {
			t.Fatalf("%s: %v", size, err)
		}
		if got := g.Storages[0].Bytes; got != size || len(g.Ops) != 1 || Claim(size).Digest() != g.Digest() ||
			Claim(size+1).Digest() == g.Digest() {
			t.Errorf("%s: a graph of %s in %d ops", size, got, len(g.Ops))
		}
	}
}
