package autoswap

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
)

// random returns an iteration with loads that hold what its pauses have away.
func random(rng *rand.Rand) *Iteration {
	n := 3 + rng.IntN(20)
	it := &Iteration{Load: make([]graph.Bytes, n)}
	for slot := range n {
		it.Took = append(it.Took, time.Duration(rng.IntN(1000)))
		it.Load[slot] = graph.Bytes(rng.IntN(1000))
		if rng.IntN(8) == 0 {
			it.Arrivals = append(it.Arrivals, Arrival{slot, time.Duration(rng.IntN(200))})
		}
	}
	for range 1 + rng.IntN(12) {
		from := rng.IntN(n)
		p := Pause{Bytes: graph.Bytes(1 + rng.IntN(500)), From: from, To: from + 2 + rng.IntN(n-1),
			Send: time.Duration(rng.IntN(500)), Fetch: time.Duration(rng.IntN(500))}
		if rng.IntN(4) == 0 {
			p.Send = 0
		}
		for slot := p.From; slot <= p.To; slot++ {
			if slot < p.From+n { // at both accesses as well
				it.Load[slot%n] += p.Bytes
			}
		}
		it.Pauses = append(it.Pauses, p)
	}
	return it.prepare()
}

// slots lists where the variable can be away, folded into one iteration.
func (p *Pause) slots(n int) []int {
	var all []int
	for slot := p.From + 1; slot < p.To; slot++ {
		all = append(all, slot%n)
	}
	return all
}

// slowArea adds up bytes times time slot by slot.
func slowArea(it *Iteration, p *Pause, load []graph.Bytes) *big.Int {
	sum := new(big.Int)
	for _, slot := range p.slots(len(it.Took)) {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(int64(load[slot])), big.NewInt(int64(it.Took[slot]))))
	}
	return sum
}

// slowSubmodular is figure 6 word by word: the areas of all that are left under the present load, the largest is
// selected, its variable leaves the load.
func slowSubmodular(it *Iteration, pauses []int) []*big.Int {
	load := slices.Clone(it.Load)
	scores := make([]*big.Int, len(pauses))
	for range pauses {
		best := -1
		var most *big.Int
		for k, i := range pauses {
			if scores[k] != nil {
				continue
			}
			if a := slowArea(it, &it.Pauses[i], load); best < 0 || a.Cmp(most) > 0 {
				best, most = k, a
			}
		}
		scores[best] = most
		for _, slot := range it.Pauses[pauses[best]].slots(len(it.Took)) {
			load[slot] -= it.Pauses[pauses[best]].Bytes
		}
	}
	return scores
}

// TestScores compares the scores with slow ones, exactly, and the candidates with those of the definition.
func TestScores(t *testing.T) {
	negative, reselected := 0, 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 181))
		it := random(rng)
		n := len(it.Took)
		peak, most := it.Peak()
		if most != slices.Max(it.Load) || it.Load[peak] != most {
			t.Fatalf("seed %d: a peak of %d in slot %d of %d", seed, most, peak, it.Load)
		}
		smallest := graph.Bytes(1 + rng.IntN(200))
		var pauses []int
		for i := range it.Pauses {
			if p := &it.Pauses[i]; p.Bytes > smallest && slices.Contains(p.slots(n), peak) {
				pauses = append(pauses, i)
			}
		}
		if got := it.candidates(peak, smallest, make([]bool, len(it.Pauses))); !slices.Equal(got, pauses) {
			t.Fatalf("seed %d: candidates %v, want %v", seed, got, pauses)
		}
		s := it.score(pauses, it.Load)
		submodular := slowSubmodular(it, pauses)
		for k, i := range pauses {
			p := &it.Pauses[i]
			var begin, end time.Duration // of the accesses
			now := it.starts
			begin, end = now[p.To%n]+time.Duration(p.To/n)*it.Length(), now[p.From]+it.Took[p.From]
			doa := float64(begin - end - p.Send - p.Fetch)
			aoa := doa * float64(p.Bytes)
			if doa < 0 {
				aoa = doa / float64(p.Bytes)
				negative++
			}
			wdoa, _ := new(big.Float).SetInt(slowArea(it, p, it.Load)).Float64()
			swdoa, _ := new(big.Float).SetInt(submodular[k]).Float64()
			for which, want := range []float64{aoa, doa, wdoa, swdoa} {
				if got := s.scores[which][k]; got != want {
					t.Fatalf("seed %d: %s of pause %d is %v, want %v", seed, basic[which], i, got, want)
				}
			}
		}
		if !slices.Equal(s.order(it, weightsOf(WDOA)), s.order(it, weightsOf(SWDOA))) {
			reselected++
		}
		load := slices.Clone(it.Load)
		for i := range it.Pauses {
			for _, slot := range it.Pauses[i].slots(n) {
				if it.Pauses[i].Bytes > smallest {
					load[slot] -= it.Pauses[i].Bytes
				}
			}
		}
		if _, least := it.Least(Options{Smallest: smallest}); least != max(0, slices.Max(load)) {
			t.Fatalf("seed %d: least load %d, want %d", seed, least, slices.Max(load))
		}
	}
	t.Logf("%d negative absences, %d orders by reselection", negative, reselected)
	if negative < 100 || reselected < 100 {
		t.Errorf("%d negative absences, %d orders by reselection", negative, reselected)
	}
}

// Areas are exact beyond 64 bits.
func TestArea(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 182))
	toBig := func(a area) *big.Int {
		high := new(big.Int).Lsh(new(big.Int).SetUint64(a.high), 64)
		return high.Add(high, new(big.Int).SetUint64(a.low))
	}
	for range 1000 {
		x, y := graph.Bytes(rng.Int64()>>rng.IntN(60)), graph.Bytes(rng.Int64()>>rng.IntN(60))
		d, e := time.Duration(rng.Int64()>>rng.IntN(60)), time.Duration(rng.Int64()>>rng.IntN(60))
		a, b := areaOf(x, d), areaOf(y, e)
		wantA, wantB := new(big.Int).Mul(big.NewInt(int64(x)), big.NewInt(int64(d))),
			new(big.Int).Mul(big.NewInt(int64(y)), big.NewInt(int64(e)))
		if a.compare(b) != wantA.Cmp(wantB) {
			t.Fatalf("%v and %v compare as %d", wantA, wantB, a.compare(b))
		}
		sum := new(big.Int).Add(wantA, wantB)
		if got := a.plus(b); toBig(got).Cmp(sum) != 0 || toBig(got.minus(b)).Cmp(wantA) != 0 {
			t.Fatalf("%v + %v = %v", wantA, wantB, toBig(got))
		}
		want, _ := new(big.Float).SetInt(wantA).Float64()
		if got := a.float(); math.Abs(got-want) > math.Abs(want)*1e-15 {
			t.Fatalf("%v is %v", wantA, got)
		}
	}
}

// TestStandardise brings scores to mean 0 and deviation 1, and equal ones to 0.
func TestStandardise(t *testing.T) {
	got := standardise([]float64{1, 3, 5, 7})
	root5 := math.Sqrt(5)
	for i, want := range []float64{-3 / root5, -1 / root5, 1 / root5, 3 / root5} {
		if math.Abs(got[i]-want) > 1e-15 {
			t.Errorf("%v, want %v", got[i], want)
		}
	}
	if got := standardise([]float64{4, 4}); got[0] != 0 || got[1] != 0 {
		t.Errorf("equal scores are %v", got)
	}
}
