package plans

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/peak"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

const kinds = 7 // of graphs

// nearby is a planner and jobs of a few graphs, which keep the layouts that they are given.
type nearby struct {
	t       *testing.T
	planner *Worker
	graphs  []*graph.Graph
	jobs    []Candidate
	budget  graph.Bytes
	host    graph.Bytes
	number  int
	asked   int // jobs of the last request for plans
}

// newNearby has so many jobs within a part of what they need without plans.
func newNearby(t *testing.T, rng *rand.Rand, jobs int, sharing wire.Sharing) *nearby {
	n := &nearby{t: t, planner: newTestWorker(Settings{Policy: "tensile", MemorySharing: sharing, Page: 64})}
	n.planner.Known = func(r scheduler.Request) *planner.Planned {
		n.asked = len(r.Jobs)
		return nil
	}
	for range kinds {
		n.graphs = append(n.graphs, graphtest.New(rng, graphtest.Options{Ops: 16}))
	}
	for i := range jobs {
		n.arrive(i % kinds)
		_, live := peak.Vanilla(n.graphs[i%kinds])
		n.budget += live * 7 / 10
	}
	return n
}

func (n *nearby) arrive(kind int) {
	g := n.graphs[kind]
	p, err := testProfile(g)
	if err != nil {
		n.t.Fatal(err)
	}
	n.jobs = append(n.jobs, Candidate{Spec: wire.Spec{Name: "job" + strconv.Itoa(n.number), Graph: g.Digest()},
		Graph: g, Remaining: 100, Epoch: 1, Profile: &p, Latency: p.Latency})
	n.number++
}

func (n *nearby) plan(near bool) *Result {
	return n.planner.Plan(n.t.Context(), &Request{Jobs: n.jobs, Admitted: len(n.jobs), Budget: n.budget,
		HostMemory: n.host, WantSlowdowns: true, Incremental: near})
}

// layouts are what the jobs have by plans.
func (n *nearby) layouts(p *Result) []*ProvenLayout {
	all := make([]*ProvenLayout, len(p.Jobs))
	for i, j := range p.Jobs {
		if all[i] = j.Layout; j.Layout == nil {
			all[i] = n.jobs[i].Current
		}
	}
	return all
}

func (n *nearby) equal(a, b *Result) bool {
	return slices.EqualFunc(n.layouts(a), n.layouts(b), func(x, y *ProvenLayout) bool {
		return sameLayout(x.Wire,
			y.Wire)
	})
}

func slowdowns(p *Result) (sum float64) {
	for _, j := range p.Jobs {
		sum += j.Slowdown
	}
	return sum
}

// Jobs come and go. Near plans are there whenever plans made anew are; they fit both memories, are the same each time,
// leave most jobs the plans that they have, and are hardly slower.
func TestNearPlans(t *testing.T) {
	long.Only(t)
	var changes, fewer int
	var sum, anew float64
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 43))
		n := newNearby(t, rng, 14, wire.NoSharing)
		if seed%2 == 1 {
			for _, l := range n.layouts(n.plan(false)) {
				n.host += l.Host + l.Host/16
			}
		}
		for change := range 8 {
			if change > 0 && (rng.IntN(2) == 0 || len(n.jobs) < 13) {
				n.arrive(rng.IntN(kinds))
			} else if change > 0 {
				i := rng.IntN(len(n.jobs))
				n.jobs = slices.Delete(slices.Clone(n.jobs), i, i+1)
			}
			all, got := n.plan(false), n.plan(true)
			near := n.asked < len(n.jobs)
			if all.NoPlan != nil && got.NoPlan != nil {
				n.jobs = n.jobs[:len(n.jobs)-1] // there is no room for the last
				continue
			}
			if got.NoPlan != nil || len(got.Jobs) != len(n.jobs) || !n.equal(got, n.plan(true)) {
				t.Fatalf("seed %d, change %d: %d of %d jobs have plans, or others the second time: %v", seed, change,
					len(got.Jobs), len(n.jobs), got.NoPlan)
			}
			var arenas, host graph.Bytes
			kept := 0
			for i, l := range n.layouts(got) {
				arenas, host = arenas+l.Wire.Arena, host+l.Host
				if n.jobs[i].Current != nil && l == n.jobs[i].Current {
					kept++
				}
				n.jobs[i].Current, n.jobs[i].Epoch = l, l.Wire.Plan.Epoch+1
			}
			if arenas > n.budget || n.host > 0 && host > n.host {
				t.Fatalf("seed %d, change %d: %s of %s on the device, %s of %s on the host", seed, change, arenas,
					n.budget, host, n.host)
			}
			if near && 2*kept < len(n.jobs) {
				t.Fatalf("seed %d, change %d: %d of %d plans are kept", seed, change, kept, len(n.jobs))
			}
			if near && all.NoPlan == nil {
				fewer, sum, anew = fewer+1, sum+slowdowns(got), anew+slowdowns(all)
			}
			changes++
		}
	}
	t.Logf("%d changes, %d by few jobs: slowdowns %.3f, %.3f anew", changes, fewer, sum, anew)
	if fewer < changes/3 || sum > anew*1.02 {
		t.Errorf("%d changes, %d by few jobs: slowdowns %.3f, %.3f anew", changes, fewer, sum, anew)
	}
}

// Few jobs, plans for other latencies, within another budget or by another policy, and those beside a script are made
// anew.
func TestNotNear(t *testing.T) {
	for name, change := range map[string]func(*nearby){
		"few":    func(n *nearby) { n.jobs = n.jobs[:fewJobs] },
		"policy": func(n *nearby) { n.planner.Policy = "vdnn-tensile" },
		"budget": func(n *nearby) { n.budget = n.budget * 9 / 10 },
		"script": func(n *nearby) { n.jobs[3].Spec.Script = true },
		"latencies": func(n *nearby) {
			for i := range n.jobs {
				n.jobs[i].Latency = slices.Clone(n.jobs[i].Latency)
				for op := range n.jobs[i].Latency {
					n.jobs[i].Latency[op] = n.jobs[i].Latency[op] * 7 / 6
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNearby(t, rand.New(rand.NewPCG(1, 41)), 15, wire.NoSharing)
			for i, l := range n.layouts(n.plan(false)) {
				n.jobs[i].Current, n.jobs[i].Epoch = l, 2
			}
			if n.plan(true); n.asked >= len(n.jobs) {
				t.Fatalf("%d of %d jobs are planned for without any change", n.asked, len(n.jobs))
			}
			change(n)
			if n.plan(true); n.asked != len(n.jobs) {
				t.Errorf("%d of %d jobs are planned for", n.asked, len(n.jobs))
			}
		})
	}
}

// An arrival takes room from those that lose least for it, with all that are like it; a departure gives room to those
// that lose most, as long as they need it.
func TestChanging(t *testing.T) {
	groups := func(fresh bool) []*jobClass {
		return []*jobClass{
			{jobs: []int{0, 5}, needs: 200, arenas: 100, lost: 300},
			{jobs: []int{1, 6}, needs: 200, arenas: 160, lost: 100},
			{jobs: []int{2}, needs: 100, arenas: 0, unplanned: fresh},
			{jobs: []int{3, 4}, needs: 200, arenas: 150, lost: 200},
		}
	}
	for _, test := range []struct {
		fresh  bool
		budget graph.Bytes
		want   []int
	}{
		{true, 410, []int{1, 2, 6}}, // 160 of 300, as all have 410 of 700
		{true, 560, []int{2}},       // 150 are free
		{false, 460, []int{3, 4}},   // 50 are free, which they need
		{false, 500, []int{0, 5}},   // 90 are free, which are worth more to them
		{false, 520, []int{0, 3, 4, 5}},
	} {
		got := chooseReplanned(groups(test.fresh), test.budget)
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("an arrival %v, budget %d: %v are planned for anew, want %v", test.fresh, test.budget, got,
				test.want)
		}
	}
}
