package compile_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/plan/compile"
	"tensile/plan/plantest"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// A program has a snapshot section unless the way through Home is predicted to cost less, and what its copies delay is
// no more than if they stood before all others. By some durations one of both happens, by others the other.
func TestSnapshotCostsLess(t *testing.T) {
	seeds := long.Rounds(80, 400)
	sections, home, better := 0, 0, 0
	try := func(s subject, d program.Durations) {
		t.Helper()
		compiled := func(o compile.Options) *program.Program {
			p := compile.Compile(s.g, s.p, s.l, o)
			if err := proof.Check(p); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			return p
		}
		first := compiled(compile.Options{Snapshot: true}) // in no time all that there is goes first
		got := compiled(compile.Options{Snapshot: true, Durations: d})
		early, there := program.TimeSnapshot(first, d), program.TimeHome(first, d)
		if len(got.Snapshot.Commands) == 0 {
			if home++; early < there {
				t.Errorf("%s: no snapshot section, which costs %v, and the way through Home %v", s.name, early, there)
			}
			return
		}
		sections++
		took := program.TimeSnapshot(got, d)
		if took > early || took > there {
			t.Errorf("%s: a snapshot costs %v, with its copies before all others %v, in Home %v", s.name, took, early,
				there)
		}
		if took < early {
			better++
		}
	}
	for seed := range seeds {
		s := random(t, seed, graphtest.Options{})
		d := plantest.Durations(len(s.p.Steps), rand.New(rand.NewPCG(seed, 11)))
		switch seed % 3 {
		case 0:
			d.Out.Rate /= 50
		case 1: // many small copies on the host cost more than one of them all
			d.Host = cost.Link{Latency: 50 * d.Host.Latency}
			fallthrough
		case 2:
			for i := range d.Steps {
				d.Steps[i] /= 50
			}
		}
		try(s, d)
	}
	// Few random plans copy so much that what comes first matters. These do, over links that are busy all the time.
	for _, percent := range []int{50, 60, 80} {
		s := network(t, "mlp", percent)
		var copied graph.Bytes
		for _, c := range s.c.Body.Commands {
			if c.Kind == program.Out || c.Kind == program.In {
				copied += c.Bytes
			}
		}
		var d program.Durations
		for range s.p.Steps {
			d.Steps = append(d.Steps, time.Millisecond)
		}
		for _, busy := range []int{1, 3, 10} { // as long as so many iterations
			link := cost.Link{Rate: cost.BytesPerSecond(float64(copied) / (float64(busy*len(s.p.Steps)) / 1000))}
			d.Out, d.In, d.Host = link, link, link
			try(s, d)
		}
	}
	if sections < int(seeds)/4 || home == 0 || better == 0 {
		t.Errorf("%d programs with a section, %d without, %d with copies in between", sections, home, better)
	}
	t.Logf("%d programs with a section, %d without, %d with copies in between", sections, home, better)
}
