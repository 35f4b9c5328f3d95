package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/randgraph"
	"tensile/program"
)

// The bound of plans without a stall stays below the slow one where storages are taken for dust, which is away at no cost.
func TestZeroStallOfDust(t *testing.T) {
	lower := 0
	for seed := range uint64(300) {
		r := randomJobs(rand.New(rand.NewPCG(seed, 65)), 1)
		r.Align = 4
		r.prepare()
		d := r.drafts(earlyUpdates)[0]
		d.small = 0
		exact := d.zeroStall()
		for _, below := range []graph.Bytes{40, 100, 400} {
			d.small = dust * below
			switch got := d.zeroStall(); {
			case got > exact:
				t.Fatalf("seed %d: with dust below %d bytes the bound is %d, and %d without", seed, below, got, exact)
			case got < exact:
				lower++
			}
		}
	}
	if t.Logf("%d bounds are lower by dust", lower); lower < 50 {
		t.Errorf("%d bounds are lower by dust", lower)
	}
}

// A plan for no budget is affordable if no job loses more than a hundredth of its time.
func TestAffordable(t *testing.T) {
	var free, within, above int
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 66))
		r := randomJobs(rng, 1+rng.IntN(2))
		h := r.hybrid(earlyUpdates)
		h.prepare()
		jobs := h.plan(h.within(4+rng.IntN(300), 8), sumOfPeaks(r.drafts(earlyUpdates))*7/10)
		result, err := r.finish(jobs, 0)
		if err != nil {
			continue
		}
		want := true
		for i, s := range result.Jobs {
			c := program.Compile(r.Jobs[i].Graph, s.Plan, s.Layout, program.Options{})
			took := program.Time(c, program.Durations{Steps: s.Plan.Made, Out: jobs[i].out, In: jobs[i].in}).Iteration
			alone := r.unplannedTime(i)
			switch {
			case took == alone:
				free++
			case took <= alone+alone/100:
				within++
			case took < alone+alone/4:
				above++
			}
			want = want && took <= alone+alone/100
		}
		if got := r.affordable(&result, jobs); got != want {
			t.Errorf("seed %d: affordable %v, want %v", seed, got, want)
		}
	}
	if t.Logf("%d jobs lose nothing, %d less than a hundredth, %d more", free, within, above); free < 20 || above < 20 {
		t.Errorf("%d jobs lose nothing, %d less than a hundredth, %d more", free, within, above)
	}
}

// Outputs are never made again: what the job is handed is made once.
func TestOutputsAreMadeOnce(t *testing.T) {
	possible, recomputed := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 67))
		g := withOutputs(randgraph.New(rng, randgraph.Options{}))
		r := randomJobs(rng, 1)
		r.Jobs[0] = Job{Name: "a", Graph: g, Latency: slices.Repeat([]time.Duration{time.Microsecond}, len(g.Ops)), Scratch: make([]graph.Bytes, len(g.Ops))}
		r.prepare()
		d := r.drafts(graphOrder)[0]
		for _, x := range d.gaps {
			_, ok := d.recomputeAt(x)
			switch role := d.g.Storages[x.storage].Role; {
			case ok && role == graph.Output:
				t.Fatalf("seed %d: output %s is to be recomputed", seed, d.g.Storages[x.storage].Name)
			case ok:
				recomputed++
			case role == graph.Output && x.kind == keep:
				possible++
			}
		}
	}
	if t.Logf("%d gaps of outputs, %d of others that can be recomputed", possible, recomputed); possible < 100 || recomputed < 100 {
		t.Errorf("%d gaps of outputs, %d of others that can be recomputed", possible, recomputed)
	}
}

// withOutputs returns a graph in which every second activation is an output as well.
func withOutputs(g *graph.Graph) *graph.Graph {
	c := *g
	c.Storages = slices.Clone(g.Storages)
	for i := range c.Storages {
		if c.Storages[i].Role == graph.Activation && i%2 == 0 {
			c.Storages[i].Role = graph.Output
		}
	}
	if err := c.Validate(); err != nil {
		panic(fmt.Sprintf("scheduler: with outputs: %v", err))
	}
	return &c
}
