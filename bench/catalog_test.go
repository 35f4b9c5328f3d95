package bench

import (
	"math"
	"strings"
	"testing"

	"tensile/internal/smallnet"
	"tensile/models"
	"tensile/peak"
	"tensile/scheduler"
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
			t.Errorf("%s is %+v, a graph of one example has %d parameters, %d ops, %d tensors", name, n, g.Parameters(), len(g.Ops), len(g.Tensors))
		}
		if want := float64(models.MACs(g)) / 1e9; math.Abs(n.GMACs-want) > 1e-9*want {
			t.Errorf("%s: %v GMACs, a graph of one example has %v", name, n.GMACs, want)
		}
	}
	var out strings.Builder
	if err := WriteCatalog(&out, all); err != nil || strings.Count(out.String(), "\n") != len(all)+2 {
		t.Errorf("%v: %d networks are printed as\n%s", err, len(all), out.String())
	}
}

// What the catalog says of memory is what the planner says, on a device without scratch.
func TestVanillaOfEveryNetwork(t *testing.T) {
	d := simulated(t)
	for _, name := range models.Names() {
		g, err := smallnet.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		planner := NewPlanner(Workload{{Name: name, Model: name, Graph: g}}, d, scheduler.Options{})
		all, live, err := planner.Vanilla()
		if err != nil {
			t.Fatal(err)
		}
		if gotAll, gotLive := peak.Vanilla(g); gotAll != all[0] || gotLive != live[0] {
			t.Errorf("%s: peaks %d and %d, the planner says %d and %d", name, gotAll, gotLive, all[0], live[0])
		}
	}
}
