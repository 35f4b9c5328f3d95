package workload

import (
	"math"
	"testing"

	"tensile/models"
)

// The catalog has every network once, and its arithmetic is that of a graph of one example.
func TestCatalog(t *testing.T) {
	all, err := Catalog()
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range models.Names() {
		n := all[i]
		g, err := models.Build(name, models.Config{Batch: 1})
		if err != nil {
			t.Fatal(err)
		}
		if n.Name != name || n.Params != g.Parameters() || n.Ops != len(g.Ops) || n.Tensors != len(g.Tensors) {
			t.Errorf("%s is %+v, a graph of one example has %d parameters, %d ops, %d tensors", name, n, g.Parameters(),
				len(g.Ops), len(g.Tensors))
		}
		if want := float64(models.MACs(g)) / 1e9; math.Abs(n.GMACs-want) > 1e-9*want {
			t.Errorf("%s: %v GMACs, a graph of one example has %v", name, n.GMACs, want)
		}
	}
}
