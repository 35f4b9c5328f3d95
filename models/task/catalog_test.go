package task

import (
	"math"
	"testing"

	"tensile/graph/cost"
	_ "tensile/internal/long" // the flag -long
	"tensile/models"
)

// The catalog has every network once, and its arithmetic is that of a graph of one example.
func TestCatalog(t *testing.T) {
	all, err := Catalog(nil)
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
		if n.Alone != nil {
			t.Errorf("%s takes %+v on no device", name, n.Alone)
		}
	}
}

// On a device an iteration has a launch per op, and the rest of it is busy.
func TestCatalogOnDevice(t *testing.T) {
	f, err := cost.Device("v100")
	if err != nil {
		t.Fatal(err)
	}
	all, err := Catalog(&f)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		launches := f.Launch.Seconds() * 1e3 * float64(n.Ops)
		if want := 1 - launches/n.Alone.Milliseconds; math.Abs(n.Alone.Busy-want) > 1e-9 || want <= 0 || want >= 1 {
			t.Errorf("%s: %v of %v ms are busy, and %d ops launched in %v", n.Name, n.Alone.Busy, n.Alone.Milliseconds,
				n.Ops, launches)
		}
	}
}
