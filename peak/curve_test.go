package peak_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/device/devicetest"
	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
	"tensile/peak"
	"tensile/plan"
)

// checkCurve changes a curve at random and compares it with plain slots after each change.
func checkCurve(t testing.TB, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 21))
	plain := make([]graph.Bytes, 1+rng.IntN(70))
	for i := range plain {
		plain[i] = graph.Bytes(rng.IntN(8))
	}
	c := peak.NewCurve(plain)
	for range 40 {
		from := rng.IntN(len(plain))
		to := from + rng.IntN(len(plain)-from+1)
		bytes := graph.Bytes(rng.IntN(9) - 4)
		c.Add(from, to, bytes)
		for i := from; i < to; i++ {
			plain[i] += bytes
		}
		highest := slices.Max(plain)
		if at, got := c.Peak(); got != highest || at != slices.Index(plain, highest) {
			t.Fatalf("seed %d: peak %d at %d, want %d at %d", seed, got, at, highest, slices.Index(plain, highest))
		}
		if from < to && c.Max(from, to) != slices.Max(plain[from:to]) {
			t.Fatalf("seed %d: most of [%d,%d) is %d, want %d", seed, from, to, c.Max(from, to),
				slices.Max(plain[from:to]))
		}
		if c.At(from) != plain[from] || c.Len() != len(plain) {
			t.Fatalf("seed %d: slot %d of %d has %d, want %d of %d", seed, from, c.Len(), c.At(from), plain[from],
				len(plain))
		}
		if diff := cmp.Diff(plain, c.Slots()); diff != "" {
			t.Fatalf("seed %d (-plain +curve):\n%s", seed, diff)
		}
		if rng.IntN(8) == 0 {
			other := c.Clone()
			other.Add(0, len(plain), 1)
		}
	}
}

func TestCurve(t *testing.T) {
	for seed := range uint64(2000) {
		checkCurve(t, seed)
	}
	if at, bytes := peak.NewCurve(nil).Peak(); at != 0 || bytes != 0 {
		t.Errorf("no slots have a peak of %d at %d", bytes, at)
	}
}

func FuzzCurve(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed uint64) { checkCurve(t, seed) })
}

// TestCurveAsOf adds the residencies of random plans to a curve one by one: the sum is what Of says.
func TestCurveAsOf(t *testing.T) {
	for _, g := range []*graph.Graph{devicetest.Tiny(), devicetest.Zoo()} {
		for seed := range uint64(200) {
			p := devicetest.RandomPlan(rand.New(rand.NewPCG(seed, 5)), g)
			want := peak.Of(g, p)
			scratch := make([]graph.Bytes, len(p.Steps))
			for i, s := range p.Steps {
				scratch[i] = s.Scratch
			}
			c := peak.NewCurve(scratch)
			for _, r := range plan.StaysOf(g, p).Residencies {
				for _, span := range r.Spans {
					c.Add(span.From, span.To, g.Storages[r.Storage].Bytes)
				}
			}
			if diff := cmp.Diff(want.Slots, c.Slots()); diff != "" {
				t.Fatalf("seed %d (-Of +curve):\n%s", seed, diff)
			}
			if at, bytes := c.Peak(); at != want.At || bytes != want.Peak {
				t.Fatalf("seed %d: peak %d at %d, want %d at %d", seed, bytes, at, want.Peak, want.At)
			}
		}
	}
}
