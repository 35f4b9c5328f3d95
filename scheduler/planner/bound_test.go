package planner

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/scheduler"
	"tensile/scheduler/jobtest"
)

// boundOf plans for random jobs as some device shares itself, and returns the sum of their weighted slowdowns, its
// lower bound, and what the sum would be if nobody slowed anybody down; ok: there are plans.
func boundOf(t *testing.T, seed uint64) (sum, bound, alone float64, ok bool) {
	rng := rand.New(rand.NewPCG(seed, 23))
	r := jobtest.New(rng, 1+rng.IntN(4))
	for i := range r.Jobs {
		for op := range r.Jobs[i].Latency {
			r.Jobs[i].Latency[op] += time.Duration(rng.IntN(20)) * time.Microsecond
		}
	}
	d := Device{Align: r.Align, Out: r.Out, In: r.In}
	d.Sharing = cost.Facts{Launch: time.Duration(rng.IntN(12)) * time.Microsecond, Parallel: 1 + rng.IntN(3)}.Sharing()
	switch rng.IntN(4) {
	case 0:
		d.Turns = true
	case 1, 2:
		d.Gates, d.Page = true, jobtest.Align<<rng.IntN(4)
	}
	request := d.Request(r.Jobs...)
	request.Policy = r.Policy
	free, err := d.Plan(t.Context(), request)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	request.Budget = max(1, graph.Bytes(float64(free.Least)*(0.5+rng.Float64())))
	p, err := d.Plan(t.Context(), request)
	if errors.Is(err, scheduler.ErrNoPlan) {
		return 0, 0, 0, false
	} else if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	var demands []Demand
	for i := range r.Jobs {
		j := &r.Jobs[i]
		of := (&Profile{Variants: j.Variants}).Demand(j.Latency, d.Sharing)
		of.Weight = float64(j.Worth()) * (1 + rng.Float64())
		demands = append(demands, of)
		var took time.Duration
		for _, l := range j.Latency {
			took += l
		}
		sum += of.Weight * d.Slowdown(p, i, took)
		alone += of.Weight * of.Least
	}
	return sum, LeastSlowdowns(demands), alone, true
}

// The bound is one: no plans for random jobs have a smaller sum of weighted slowdowns, whichever way they share the
// device. It is more than what holds of each job alone where the device is busy.
func TestLeastSlowdowns(t *testing.T) {
	planned, bites, seeds := 0, 0, long.Rounds(15, 150)
	for seed := range seeds {
		sum, bound, alone, ok := boundOf(t, seed)
		if !ok {
			continue
		}
		if planned++; bound > 1.05*alone {
			bites++
		}
		if bound > sum {
			t.Errorf("seed %d: slowdowns of %v, and they are bounded by %v", seed, sum, bound)
		}
	}
	if planned < int(seeds)/2 || bites < planned/10 {
		t.Errorf("of %d requests %d have plans, and for %d of them the bound counts the others", seeds, planned, bites)
	}
	t.Logf("%d requests have plans, for %d the bound counts the others", planned, bites)
}

func FuzzLeastSlowdowns(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		if sum, bound, _, ok := boundOf(t, seed); ok && bound > sum {
			t.Errorf("slowdowns of %v, and they are bounded by %v", sum, bound)
		}
	})
}

// It is the least sum that the two conditions allow: a search over a grid of slowdowns finds none below it, and some
// near it.
func TestLeastSlowdownsIsLeast(t *testing.T) {
	const room = float64(measured+1) / measured
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 24))
		var jobs []Demand
		for range 3 {
			jobs = append(jobs, Demand{Weight: 1 + 3*rng.Float64(), Busy: rng.Float64(), Least: 0.5 + rng.Float64()})
		}
		bound := LeastSlowdowns(jobs)
		least := math.Inf(1)
		const steps = 200
		for a := range steps { // of the first two; the third has what is left
			for b := range steps {
				s := [3]float64{jobs[0].Least + 0.03*float64(a), jobs[1].Least + 0.03*float64(b)}
				left := room - jobs[0].Busy/s[0] - jobs[1].Busy/s[1]
				if left <= 0 {
					continue
				}
				s[2] = max(jobs[2].Least, jobs[2].Busy/left)
				least = min(least, jobs[0].Weight*s[0]+jobs[1].Weight*s[1]+jobs[2].Weight*s[2])
			}
		}
		if bound > least || bound < 0.98*least {
			t.Errorf("seed %d: bound %v, and the least on a grid is %v", seed, bound, least)
		}
	}
	if LeastSlowdowns(nil) != 0 {
		t.Error("nobody is slowed down")
	}
}
