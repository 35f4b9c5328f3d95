package policies

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/graphtest"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/policies/none"
	"tensile/scheduler/policies/tensile"
)

// Shares of any demands and weights add up to at most the link, nobody is below the floor, and who demands more for the
// same weight, or the same for more weight, has no less.
func TestDivide(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rng.IntN(40)
		demands, weights := make([]demand, n), make([]int64, n)
		for i := range demands {
			weights[i] = 1 + rng.Int64N(scheduler.MaxWeight)
			for _, d := range []*int64{&demands[i].out, &demands[i].in} {
				if rng.IntN(3) > 0 {
					*d = rng.Int64N(1 << (1 + rng.IntN(50)))
				}
			}
		}
		shares := divide(weights, demands)
		var sum scheduler.Share
		for i, s := range shares {
			sum.Out, sum.In = sum.Out+s.Out, sum.In+s.In
			if floor := int64(scheduler.Whole / (8 * n)); s.Out < floor || s.In < floor {
				t.Fatalf("seed %d: job %d of %d has %+v", seed, i, n, s)
			}
			for j := range shares {
				if weights[i]*demands[i].out > weights[j]*demands[j].out && s.Out < shares[j].Out {
					t.Fatalf("seed %d: %+v times %d has %+v, %+v times %d has %+v", seed, demands[i], weights[i], s,
						demands[j],
						weights[j], shares[j])
				}
			}
		}
		if minimum := int64(scheduler.Whole - n); sum.Out > scheduler.Whole || sum.In > scheduler.Whole ||
			sum.Out < minimum ||
			sum.In < minimum {
			t.Fatalf("seed %d: the shares of %d jobs add up to %+v", seed, n, sum)
		}
	}
}

func TestDivideExamples(t *testing.T) {
	const floor = scheduler.Whole / 16 // of two jobs
	for _, test := range []struct {
		name    string
		weights []int64
		demands []demand
		want    []int64 // out
	}{
		{"one", nil, []demand{{}}, []int64{scheduler.Whole}},
		{"nobody copies", []int64{1, 9}, []demand{{}, {}}, []int64{scheduler.Whole / 2, scheduler.Whole / 2}},
		{"equal", nil, []demand{{7e9, 0}, {7e9, 0}, {7e9, 0}}, []int64{scheduler.Whole / 3, scheduler.Whole / 3,
			scheduler.Whole / 3}},
		{"an idle job gives its share away", nil, []demand{{}, {5, 0}}, []int64{floor, scheduler.Whole - floor}},
		{"four times the demand, twice the share", nil, []demand{{4e6, 0}, {1e6, 0}},
			[]int64{floor + (scheduler.Whole-2*floor)*2/3, floor + (scheduler.Whole-2*floor)/3}},
		{"four times the weight, twice the share", []int64{1, 4}, []demand{{1e6, 0}, {1e6, 0}},
			[]int64{floor + (scheduler.Whole-2*floor)/3, floor + (scheduler.Whole-2*floor)*2/3}},
	} {
		var got []int64
		for _, s := range divide(test.weights, test.demands) {
			got = append(got, s.Out)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	for n := range int64(16) { // up to 16 jobs divide the link evenly to the last part
		for _, s := range divide(nil, make([]demand, n+1)) {
			if s != (scheduler.Share{Out: scheduler.Whole / (n + 1), In: scheduler.Whole / (n + 1)}) {
				t.Errorf("one of %d has %+v", n+1, s)
			}
		}
	}
}

// Equal jobs have equal shares and equal plans; one that is worth more, whose ops need scratch, or another network is
// not equal.
func TestEqualJobs(t *testing.T) {
	moved := 0
	for seed := range uint64(25) {
		rng := rand.New(rand.NewPCG(seed, 14))
		r := scheduler.Request{Policy: "tensile", Out: cost.Link{Rate: 2e7}, In: cost.Link{Rate: 2e7}, Align: 64}
		graphs := []*graph.Graph{graphtest.New(rng, graphtest.Options{}), graphtest.New(rng, graphtest.Options{})}
		latencies := make(map[*graph.Graph][]time.Duration)
		for _, g := range graphs {
			for range g.Ops {
				latencies[g] = append(latencies[g], time.Duration(1+rng.IntN(20000)))
			}
		}
		for i, g := range []*graph.Graph{graphs[0], graphs[1], graphs[0], graphs[0], graphs[0], graphs[0]} {
			r.Jobs = append(r.Jobs, scheduler.Job{Name: fmt.Sprint(i), Graph: g, Latency: slices.Clone(latencies[g])})
		}
		r.Jobs[3].Weight = 2
		r.Jobs[5].Variants = scheduler.OneVariant(slices.Repeat([]graph.Bytes{64}, len(graphs[0].Ops)))
		plain, err := draft.Open(r, scheduler.Watch{}, func(s *draft.Session) (scheduler.Result, error) {
			if want := [][]int{{0, 2, 4}, {1}, {3}, {5}}; fmt.Sprint(s.Groups()) != fmt.Sprint(want) {
				t.Fatalf("equal are jobs %v, want %v", s.Groups(), want)
			}
			return none.Live(s)
		})
		if err != nil {
			t.Fatal(err)
		}
		r.Budget = plain.Arena * graph.Bytes(60+rng.IntN(35)) / 100
		got, err := Schedule(r, nil)
		if err != nil {
			continue
		}
		if a, b, c := got.Jobs[0], got.Jobs[2], got.Jobs[4]; a.Share != b.Share || b.Share != c.Share ||
			a.Out != c.Out {
			t.Errorf("seed %d: equal jobs have shares of %v, %v and %v", seed, a.Share, b.Share, c.Share)
		}
		a := got.Jobs[0].Plan
		for _, i := range []int{2, 4} {
			if b := got.Jobs[i].Plan; !slices.Equal(a.Moves, b.Moves) || !slices.Equal(a.Steps, b.Steps) {
				t.Errorf("seed %d: equal jobs have plans\n%s%s", seed, a.Text(graphs[0]), b.Text(graphs[0]))
			}
		}
		if a.Swapped(graphs[0]) > 0 {
			moved++
		}
	}
	if moved < 10 {
		t.Errorf("only %d plans swap something", moved)
	}
}

// TestNoWorseThanEvenShares compares the predicted slowdown with that of plans made and run with even shares.
func TestNoWorseThanEvenShares(t *testing.T) {
	better, equal, planned := 0, 0, 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 12))
		r := scheduler.Request{Policy: "tensile", Out: cost.Link{Rate: 2e7}, In: cost.Link{Rate: 2e7}, Align: 64}
		for i := range 2 + rng.IntN(2) {
			j := scheduler.Job{Name: fmt.Sprint(i), Graph: graphtest.New(rng, graphtest.Options{}),
				Weight: 1 + rng.IntN(2)*rng.IntN(9)}
			for range j.Graph.Ops {
				j.Latency = append(j.Latency, time.Duration(1+rng.IntN(10000))*time.Duration(1+9*i))
			}
			r.Jobs = append(r.Jobs, j)
		}
		plain, err := draft.Open(r, scheduler.Watch{}, none.Live)
		if err != nil {
			t.Fatal(err)
		}
		r.Budget = plain.Arena * graph.Bytes(60+rng.IntN(35)) / 100
		var s *draft.Session
		even, err := draft.Open(r, scheduler.Watch{}, func(it *draft.Session) (scheduler.Result, error) {
			s = it
			return tensile.Plan(s)
		})
		if err != nil {
			continue // as it is without shares by demand
		}
		planned++
		assign(s, &even, s.Shares())
		got, err := Schedule(r, nil)
		if err != nil {
			t.Fatalf("seed %d: even shares give a plan, but %v", seed, err)
		}
		before, after := slowdown(s, &even, programsOf(s, &even)), slowdown(s, &got, programsOf(s, &got))
		switch {
		case after > before:
			t.Errorf("seed %d: slowdown %d, with even shares %d", seed, after, before)
		case after == before:
			equal++
		default:
			better++
		}
	}
	t.Logf("%d planned: %d better than with even shares, %d equal", planned, better, equal)
	if better < planned/2 {
		t.Errorf("only %d of %d are better", better, planned)
	}
}
