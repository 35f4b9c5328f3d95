package draft

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/graph"
	"tensile/peak"
	"tensile/scheduler"
)

// What random drafts need together is, slot by slot: each job in each of its slots with the others between iterations,
// and all of them there. What stays there is Plan.Entry.
func TestLeastTogether(t *testing.T) {
	away := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 173))
		s, style := randomJobs(rng, 1+rng.IntN(3))
		s.Request.Together = true
		jobs := s.Drafts(EarlyUpdates, style)
		for _, d := range jobs {
			d.Beside(graph.Bytes(rng.IntN(4)) * d.base / 2)
		}
		least := LeastTogether(jobs)
		target := least * graph.Bytes(40+rng.IntN(60)) / 100
		for _, d := range jobs {
			_, high := d.High()
			if SwapFreely([]*Draft{d}, high*graph.Bytes(50+rng.IntN(50))/100); rng.IntN(3) == 0 {
				d.Stretch(high * graph.Bytes(50+rng.IntN(50)) / 100)
			}
		}
		if rng.IntN(2) == 0 {
			relaxTogether(jobs, target)
		}
		if got := s.Needed(jobs); got != slowLeast(t, seed, jobs) {
			t.Fatalf("seed %d: drafts need %d together, by their plans %d", seed, got, slowLeast(t, seed, jobs))
		}
		for _, d := range jobs {
			away += slices.IndexFunc(d.gaps, d.between) + 1
		}
	}
	if away == 0 {
		t.Error("nothing was swapped over the boundary")
	}
}

// However low a draft is swapped and stretched for a target, its base is no less than LeastBase; and some bases come
// down to that.
func TestLeastBase(t *testing.T) {
	reached := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 174))
		s, style := randomJobs(rng, 1)
		s.Request.Together = true
		d := s.Drafts(EarlyUpdates, style)[0]
		d.Beside(graph.Bytes(rng.IntN(4)) * d.base)
		_, high := d.High()
		target := high * graph.Bytes(rng.IntN(100)) / 100
		least := d.LeastBase(target)
		SwapFreely([]*Draft{d}, target)
		d.Stretch(target)
		if d.base < least {
			t.Fatalf("seed %d: a base of %d, at least %d", seed, d.base, least)
		}
		if d.base == least && len(d.Plan("p").Entry) > 0 && d.beside > 0 {
			reached++
		}
	}
	if reached == 0 {
		t.Error("no base came down to the least")
	}
}

// slowLeast is LeastTogether by the plans.
func slowLeast(t *testing.T, seed uint64, jobs []*Draft) (most graph.Bytes) {
	t.Helper()
	bases := make([]graph.Bytes, len(jobs))
	var sum graph.Bytes
	for i, d := range jobs {
		for _, s := range d.Plan("p").Entry {
			bases[i] += d.bytes[s]
		}
		if bases[i] != d.base {
			t.Fatalf("seed %d: draft %d has a base of %d, its plan %d", seed, i, d.base, bases[i])
		}
		sum += bases[i]
	}
	most = sum
	for i, d := range jobs {
		for slot := range d.steps {
			most = max(most, sum-bases[i]+d.curve.At(slot))
		}
	}
	return most
}

// A draft that has others beside it swaps over the boundary until its base and what they need are at the target, and
// relaxing leaves the base as it is. Without others it swaps for its peak alone.
func TestSwapsForOthers(t *testing.T) {
	lower, same := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 174))
		s, style := randomJobs(rng, 1)
		alone := s.Drafts(EarlyUpdates, style)[0]
		d := alone.Clone()
		_, high := d.Peak()
		d.Beside(high - d.base/2)
		_, need := d.High()
		if need <= high || d.base == 0 {
			continue
		}
		before := d.base
		if SwapFreely([]*Draft{d}, high); d.base < before {
			lower++
		}
		if at, now := d.High(); at == boundary && now != d.base+d.beside || at != boundary && now != peakOf(d) {
			t.Fatalf("seed %d: it needs %d at %d", seed, now, at)
		}
		after := d.base
		if d.relax(high); d.base != after {
			t.Fatalf("seed %d: relaxing brings the base from %d to %d", seed, after, d.base)
		}
		if SwapFreely([]*Draft{alone}, high); alone.base == before {
			same++
		}
	}
	if lower < 50 || same < lower {
		t.Errorf("%d bases became lower for others, %d jobs alone kept theirs", lower, same)
	}
}

// peakOf is the peak of a draft's plan, its storages rounded up.
func peakOf(d *Draft) graph.Bytes {
	_, high := peak.NewCurve(d.footprint(func(s graph.StorageID) graph.Bytes { return d.bytes[s] },
		func(s Step) graph.Bytes { return scheduler.RoundUp(d.scratchOf(s), d.align) })).Peak()
	return high
}
