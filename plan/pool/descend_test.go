package pool

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// descendFully is one descent below a limit, without limits on its work.
func descendFully(s *search, limit int64, round int) (*descent, outcome) {
	d := newDescent(s, aboveBottom(s.problem))
	d.order(s.problem, round)
	d.limit, d.fails, d.nodes, d.work = limit, math.MaxInt, math.MaxInt, math.MaxInt
	return d, d.run(0, int32(len(d.columns)))
}

// A descent finds a layout at the optimum and a dead end just below it, in whichever order it goes.
func TestDescentAgainstTheOptimum(t *testing.T) {
	compared := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 31))
		buffers := fewBuffers(rng)
		if seed%3 == 0 {
			buffers = pinned(rng, buffers)
		}
		p := newProblem(buffers)
		if len(p.items) == len(p.bottom) || outlined(buffers) {
			continue // the strip at the bottom is no part of the descent, and may cost something
		}
		compared++
		optimum := slowOptimum(buffers)
		for round := range 7 {
			s := newSearch(p, Options{})
			d, out := descendFully(s, optimum, round)
			if out != found {
				t.Fatalf("seed %d, round %d: outcome %d at the optimum %d of %+v", seed, round, out, optimum, buffers)
			}
			d.keep(s)
			l := s.layout(buffers)
			if err := Validate(buffers, l); err != nil || l.Height != optimum {
				t.Fatalf("seed %d, round %d: height %d, the optimum is %d: %v", seed, round, l.Height, optimum, err)
			}
			if _, out := descendFully(s, optimum-1, round); out != deadEnd {
				t.Fatalf("seed %d, round %d: outcome %d below the optimum %d of %+v", seed, round, out, optimum,
					buffers)
			}
		}
	}
	if compared < 800 {
		t.Errorf("only %d compared", compared)
	}
}

// A state that was a dead end is not entered again. What comes out is the same as without that memory, with fewer
// nodes.
func TestDescentRemembers(t *testing.T) {
	const nodeLimit = 20_000
	var nodes [2]int
	for seed := range uint64(20) {
		buffers, perfect := jigsaw(100, seed)
		p := newProblem(buffers)
		var out [2]outcome
		for forget := range 2 {
			d := newDescent(newSearch(p, Options{}), aboveBottom(p))
			if forget == 1 {
				d.dead = make([]uint64, 1)
			}
			d.order(p, 0)
			d.limit, d.fails, d.nodes, d.work = perfect, math.MaxInt, nodeLimit, math.MaxInt
			out[forget] = d.run(0, int32(len(d.columns)))
			nodes[forget] += nodeLimit - max(d.nodes, 0)
		}
		if out[0] == deadEnd || out[0] != out[1] && out[1] != gaveUp {
			t.Errorf("seed %d: outcome %d, without memory %d", seed, out[0], out[1])
		}
	}
	if t.Logf("nodes: %d, without memory %d", nodes[0], nodes[1]); nodes[0] >= nodes[1] {
		t.Errorf("%d nodes, and without memory %d", nodes[0], nodes[1])
	}
}

// aboveBottom are the items that do not stand in the strip at the bottom.
func aboveBottom(p *problem) (items []int) {
	for i := range p.items {
		if !slices.Contains(p.bottom, i) {
			items = append(items, i)
		}
	}
	return items
}
