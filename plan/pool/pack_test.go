package pool

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// packed packs and checks all that holds for every layout.
func packed(t *testing.T, name string, buffers []Buffer) Layout {
	t.Helper()
	return packedBy(t, name, buffers, Options{})
}

func packedBy(t *testing.T, name string, buffers []Buffer, o Options) Layout {
	t.Helper()
	l, err := Pack(buffers, o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := Validate(buffers, l); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if want := Load(buffers); l.LowerBound < want || l.Height < l.LowerBound {
		t.Fatalf("%s: height %d, lower bound %d; the load is %d", name, l.Height, l.LowerBound, want)
	}
	return l
}

func TestPack(t *testing.T) {
	for seed := range uint64(300) {
		name := fmt.Sprintf("seed %d", seed)
		buffers := randomBuffers(rand.New(rand.NewPCG(seed, 8)))
		l := packed(t, name, buffers)
		if seed%20 == 0 {
			if diff := cmp.Diff(l, packed(t, name, buffers)); diff != "" {
				t.Fatalf("%s: packed twice: %s", name, diff)
			}
		}
	}
}

func TestPackNothing(t *testing.T) {
	for _, buffers := range [][]Buffer{nil, {{Size: 0, Spans: []Span{{0, 4}}, Align: 64}}} {
		want := Layout{Offsets: make([]int64, len(buffers)), Optimal: true}
		if diff := cmp.Diff(want, packed(t, "nothing", buffers)); diff != "" {
			t.Error(diff)
		}
	}
}

// Buffers with the same lifetime stand on one another without loss.
func TestPackEqualLifetimes(t *testing.T) {
	var buffers []Buffer
	for i := range int64(100) {
		buffers = append(buffers, Buffer{Size: 1 + i%7, Spans: []Span{{2, 5}, {8, 9}}})
	}
	if l := packed(t, "equal lifetimes", buffers); l.Height != l.LowerBound {
		t.Errorf("height %d, lower bound %d", l.Height, l.LowerBound)
	}
}

// A search ends when a layout is as low as the bound: one try is enough here.
func TestPackStopsAtTheBound(t *testing.T) {
	var buffers []Buffer
	for range 100 {
		buffers = append(buffers, Buffer{Size: 1, Spans: []Span{{0, 1}}})
	}
	s := newSearch(newProblem(buffers), Options{})
	before := s.steps
	s.run(methods["search"])
	if used := before - s.steps; used > 100*placeSteps*3/2 {
		t.Errorf("used %d steps, more than a try takes", used)
	}
}

// Of what is always resident the most aligned stands lowest, so that there is no padding.
func TestPackAlwaysResidentByAlignment(t *testing.T) {
	one := []Span{{0, 1}}
	l := packed(t, "residents", []Buffer{{Size: 1, Spans: one}, {Size: 8, Spans: one, Align: 8},
		{Size: 64, Spans: one, Align: 64}})
	if diff := cmp.Diff([]int64{72, 64, 0}, l.Offsets); diff != "" {
		t.Error(diff)
	}
}

// What is always resident makes one block at the bottom.
func TestPackAlwaysResident(t *testing.T) {
	buffers := trainingStep(400, 3)
	l := packed(t, "training step", buffers)
	var total int64
	var always []int
	for i, b := range buffers {
		if b.Spans[0] == (Span{0, 406}) {
			always = append(always, i)
			total += b.Size
		}
	}
	if len(always) == 0 {
		t.Fatal("nothing is always resident")
	}
	for _, i := range always {
		if end := l.Offsets[i] + buffers[i].Size; end > total {
			t.Errorf("buffer %d ends at %d, above the %d bytes that are always resident", i, end, total)
		}
	}
}

// The work is bounded, whatever the buffers: beyond the budget there are the simple tries, which are always made, and
// what it costs to finish a layout, which is in proportion to the number of buffers.
func TestPackBoundsItsWork(t *testing.T) {
	for _, n := range []int{2000, 8000} {
		s := newSearch(newProblem(scattered(n, 1)), Options{})
		budget := s.steps
		s.run(methods["search"])
		if used := budget - s.steps; used < budget || used > 8*budget+1500*n {
			t.Errorf("n=%d: used %d steps of %d; the test wants a problem that uses all", n, used, budget)
		}
	}
}
