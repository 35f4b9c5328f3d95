package devicetest

import (
	"math"
	"testing"

	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/proof"
)

// host returns the host slots of the persistent storages of a job that rests.
func (s *seat) host() map[string][]float32 {
	content := map[string][]float32{}
	for _, storage := range s.g.Storages {
		if storage.Role.Persistent() {
			content[storage.Name] = append([]float32(nil), s.Host(storage.ID)...)
		}
	}
	return content
}

// needData skips the check on a device without data.
func needData(c *crew) {
	c.t.Helper()
	s := c.open(Tiny())
	defer s.leave()
	if s.Host(0) == nil {
		c.t.Skip("no data on this device")
	}
}

// finished is all that training leaves behind.
type finished struct {
	weights map[string][]float32
	outputs map[delivery][][]float32
}

// run trains a job by programs that each take some iterations, from Home to Home.
func (c *crew) run(g *graph.Graph, iterations int, programs ...proof.Proven) finished {
	c.t.Helper()
	s := c.open(g)
	defer s.leave()
	for i, p := range programs {
		s.train(s.load(p), i*iterations, (i+1)*iterations)
		c.wait()
	}
	return finished{s.host(), s.feed.outputs}
}

// compareBits reports every difference in bits.
func compareBits(t testing.TB, what string, got, want finished) {
	t.Helper()
	for name, w := range want.weights {
		sameBits(t, what+": "+name, got.weights[name], w)
	}
	if len(got.outputs) != len(want.outputs) {
		t.Errorf("%s: %d outputs, want %d", what, len(got.outputs), len(want.outputs))
	}
	for at, w := range want.outputs {
		if len(got.outputs[at]) != len(w) {
			t.Errorf("%s: output %v was delivered %d times, want %d", what, at, len(got.outputs[at]), len(w))
			continue
		}
		for i := range w {
			sameBits(t, what+": output", got.outputs[at][i], w[i])
		}
	}
}

func sameBits(t testing.TB, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d elements, want %d", what, len(got), len(want))
		return
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("%s[%d] is %v, want %v to the bit", what, i, got[i], want[i])
			return
		}
	}
}

// deliveries counts what is fed and taken.
func deliveries(c *crew) {
	needData(c)
	const iterations = 3
	for _, g := range []*graph.Graph{Tiny(), Zoo()} {
		s := c.open(g)
		p := s.load(shuffled(c, g, 4, compile.Options{}))
		s.train(p, 0, iterations)
		c.wait()
		for i := range iterations {
			for _, storage := range g.Storages {
				at := delivery{i, storage.ID}
				if n := s.feed.inputs[at]; storage.Role == graph.Input && n != 1 {
					c.t.Errorf("%s: input %s of iteration %d was asked for %d times", g.Name, storage.Name, i, n)
				}
				if n := len(s.feed.outputs[at]); storage.Role == graph.Output && n != 1 {
					c.t.Errorf("%s: output %s of iteration %d was delivered %d times", g.Name, storage.Name, i, n)
				}
			}
		}
		each := map[string]int{"tiny": 3, "zoo": 8}[g.Name]
		if n := len(s.feed.inputs) + len(s.feed.outputs); n != each*iterations {
			c.t.Errorf("%s: %d deliveries in %d iterations, want %d in each", g.Name, n, iterations, each)
		}
	}
}

// bits trains under many plans and compares with the plan that moves nothing.
func bits(c *crew) {
	needData(c)
	const iterations = 3
	tiny := Tiny()
	want := c.run(tiny, iterations, Build(c.t, c.d, tiny, KeepAll(tiny), compile.Options{}))
	compareBits(c.t, "swapped", c.run(tiny, iterations, Build(c.t, c.d, tiny, Swapped(tiny),
		compile.Options{Poison: true})),
		want)
	for _, g := range []*graph.Graph{tiny, Zoo()} {
		want := c.run(g, iterations, Build(c.t, c.d, g, KeepAll(g), compile.Options{}))
		for seed := range uint64(8) {
			p := shuffled(c, g, seed, compile.Options{Poison: seed%2 == 0})
			compareBits(c.t, p.Program().Plan.Text(g), c.run(g, iterations, p), want)
		}
	}
}

// switchPlans changes the plan in Home in the middle of training.
func switchPlans(c *crew) {
	needData(c)
	g := Tiny()
	keep, swapped := Build(c.t, c.d, g, KeepAll(g), compile.Options{}), Build(c.t, c.d, g, Swapped(g),
		compile.Options{})
	want := c.run(g, 4, keep)
	compareBits(c.t, "keep, then swap", c.run(g, 2, keep, swapped), want)
	compareBits(c.t, "swap, then keep", c.run(g, 2, swapped, keep), want)
}
