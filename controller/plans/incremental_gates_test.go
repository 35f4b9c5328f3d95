package plans

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/controller/memory"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// newNearbyByGates has so many jobs, with plans, within a part of what their claims without a budget are together.
func newNearbyByGates(t *testing.T, rng *rand.Rand, jobs int, part float64) *nearby {
	n := newNearby(t, rng, jobs, wire.Gates)
	n.budget = 0
	claims, _ := n.claims(n.layouts(n.plan(false)))
	n.budget = graph.Bytes(part*float64(claims)) / n.planner.Page * n.planner.Page
	n.take(n.plan(false))
	return n
}

// take gives the jobs what plans have for them.
func (n *nearby) take(p *Result) {
	for i, l := range n.layouts(p) {
		n.jobs[i].Current, n.jobs[i].Epoch = l, l.Wire.Plan.Epoch+1
	}
}

// claims are what layouts take together of both memories.
func (n *nearby) claims(layouts []*ProvenLayout) (device, host graph.Bytes) {
	var claims memory.Sum
	for _, l := range layouts {
		claims, host = claims.Add(*l.Claim), host+l.Host
	}
	return claims.Bytes(), host
}

// lose has each plan take so many percent longer than was said of no plan when it was made.
func (n *nearby) lose(percent float64) {
	for i := range n.jobs {
		if has := n.jobs[i].Current; has != nil {
			l, of, reasons := *has, *has.Wire, *has.Wire.Reasons
			took := program.Time(l.program, program.Durations{Steps: of.Plan.Made, Out: n.planner.Device.Out,
				In: n.planner.Device.In})
			reasons.Unplanned = time.Duration(float64(took.Iteration) / (1 + percent/100))
			of.Reasons, l.Wire = &reasons, &of
			n.jobs[i].Current = &l
		}
	}
}

// Jobs that share memory by gates come and go. Claims fit both memories, plans are the same each time. Where plans are
// near, all that there were are kept, one that comes has the plan of its equals, and all are hardly slower than by
// plans made anew.
func TestNearPlansByGates(t *testing.T) {
	var changes, near, copied int
	var sum, anew float64
	for seed := range long.Or[uint64](1, 4) {
		rng := rand.New(rand.NewPCG(seed, 44))
		n := newNearbyByGates(t, rng, 14, []float64{0.8, 1.02, 1.1, 1.3}[seed])
		if seed%2 == 1 {
			_, host := n.claims(n.layouts(n.plan(false)))
			n.host = host + host/8 + 1
		}
		for change := range 6 {
			if rng.IntN(2) == 0 || len(n.jobs) < 12 {
				n.arrive(rng.IntN(kinds))
			} else {
				i := rng.IntN(len(n.jobs))
				n.jobs = slices.Delete(slices.Clone(n.jobs), i, i+1)
			}
			all := n.plan(false)
			n.asked = 0
			got := n.plan(true)
			few := n.asked < len(n.jobs)
			if all.NoPlan != nil && got.NoPlan != nil {
				n.jobs = n.jobs[:len(n.jobs)-1] // there is no room for the last
				continue
			}
			if got.NoPlan != nil || len(got.Jobs) != len(n.jobs) || !n.equal(got, n.plan(true)) {
				t.Fatalf("seed %d, change %d: %d of %d jobs have plans, or others the second time: %v", seed, change,
					len(got.Jobs), len(n.jobs), got.NoPlan)
			}
			layouts := n.layouts(got)
			if device, host := n.claims(layouts); device > n.budget || n.host > 0 && host > n.host {
				t.Fatalf("seed %d, change %d: %s of %s on the device, %s of %s on the host", seed, change, device,
					n.budget, host, n.host)
			}
			for i := range n.jobs {
				c, l := &n.jobs[i], layouts[i]
				if few && c.Current != nil && l != c.Current {
					t.Fatalf("seed %d, change %d: %s has another plan", seed, change, c.Spec.Name)
				}
				if of := l.Wire.Plan; of.Job != c.Spec.Name || l.program.Plan.Job != of.Job ||
					l.program.Plan.Epoch != of.Epoch || c.Current == nil && of.Epoch != c.Epoch {
					t.Fatalf("seed %d, change %d: %s has the plan of %s in epoch %d", seed, change, c.Spec.Name, of.Job,
						of.Epoch)
				}
				equal := func(o Candidate) bool { return o.Current != nil && o.Graph == c.Graph }
				if at := slices.IndexFunc(n.jobs, equal); few && c.Current == nil && at >= 0 {
					copied++
					if !sameProgram(l.Wire, n.jobs[at].Current.Wire) || *l.Claim != *n.jobs[at].Current.Claim ||
						n.asked > 0 {
						t.Fatalf("seed %d, change %d: %s has another plan than its equals", seed, change, c.Spec.Name)
					}
				}
			}
			n.take(got)
			if changes++; few && all.NoPlan == nil {
				near, sum, anew = near+1, sum+slowdowns(got), anew+slowdowns(all)
			}
		}
	}
	t.Logf("%d changes, %d near, %d copies: slowdowns %.3f, %.3f anew", changes, near, copied, sum, anew)
	if near < changes/3 || copied < 2 || sum > anew*1.05 {
		t.Errorf("%d changes, %d near, %d copies: slowdowns %.3f, %.3f anew", changes, near, copied, sum, anew)
	}
}

// All are planned for anew where a copy does not fit, plans lose time after a departure, most jobs have none, or memory
// is shared in another way.
func TestNotNearByGates(t *testing.T) {
	long.Only(t)
	for _, test := range []struct {
		name   string
		part   float64 // of the memory that jobs claim without a budget
		change func(*nearby)
		asked  int // jobs that are planned for
	}{
		{"departure", 40, func(n *nearby) { n.jobs = n.jobs[1:] }, 0},
		{"arrival", 2, func(n *nearby) { n.arrive(0) }, 0},
		{"arrival of an own kind", 2, func(n *nearby) { n.jobs[0].Current = nil }, 1},
		{"arrival without room", 2, func(n *nearby) {
			n.budget, _ = n.claims(n.layouts(n.plan(true)))
			n.arrive(0)
		}, 15},
		{"arrival without host memory", 2, func(n *nearby) { n.arrive(0); n.host = 1 }, 15},
		{"departure after which others may lose less", 40, func(n *nearby) { n.jobs = n.jobs[1:]; n.lose(5) }, 13},
		{"departure, and others lose nearly nothing", 40, func(n *nearby) { n.jobs = n.jobs[1:]; n.lose(0.5) }, 0},
		{"arrival where others lose", 40, func(n *nearby) { n.arrive(0); n.lose(5) }, 0},
		{"most are new", 2, func(n *nearby) {
			for i := range 8 {
				n.jobs[i].Current = nil
			}
		}, 14},
		{"another way", 1, func(n *nearby) { n.planner.MemorySharing = wire.Zico }, 14},
		{"other latencies", 2, func(n *nearby) {
			n.arrive(0)
			last := &n.jobs[14]
			last.Latency = slices.Clone(last.Latency)
			for op := range last.Latency {
				last.Latency[op] = last.Latency[op] * 7 / 6
			}
		}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := newNearbyByGates(t, rand.New(rand.NewPCG(1, 45)), 14, test.part)
			if test.name == "arrival of an own kind" {
				n.jobs = n.jobs[:13] // of the first kind one is left, of which there were two
				n.jobs = slices.Delete(n.jobs, 7, 8)
			}
			test.change(n)
			n.asked = 0
			if n.plan(true); n.asked != test.asked {
				t.Errorf("%d of %d jobs are planned for, want %d", n.asked, len(n.jobs), test.asked)
			}
		})
	}
}

// Layouts fit where the sum of their bases and their largest rest do, and what jobs have on the host.
func TestFit(t *testing.T) {
	w := planJob{message: &Request{Jobs: []Candidate{{HostExtra: 2}, {}}}}
	layouts := []*ProvenLayout{{Claim: &memory.Claim{Base: 10, Arena: 30}, Host: 3},
		{Claim: &memory.Claim{Base: 20, Arena: 25}, Host: 4}}
	for _, test := range []struct {
		budget, host graph.Bytes
		want         bool
	}{{50, 0, true}, {49, 0, false}, {50, 9, true}, {50, 8, false}} {
		if got := w.fitTogether(&scheduler.Request{Budget: test.budget, HostBudget: test.host},
			layouts); got != test.want {
			t.Errorf("they fit %d bytes and %d on the host: %v", test.budget, test.host, got)
		}
	}
}

// A job of which there is no equal is planned for within what the bases of the others, and their hosts, leave.
func TestOneBesideOthers(t *testing.T) {
	n := newNearbyByGates(t, rand.New(rand.NewPCG(1, 45)), 14, 2)
	n.jobs = slices.Delete(n.jobs[:13], 7, 8) // of the first kind one is left, of which there were two
	n.jobs[0].Current, n.host = nil, graph.MiB
	device, host := n.budget, n.host
	for _, c := range n.jobs[1:] {
		device, host = device-c.Current.Claim.Base, host-c.Current.Host
	}
	var asked []scheduler.Request
	n.planner.Known = func(r scheduler.Request) *planner.Planned {
		asked = append(asked, r)
		return nil
	}
	n.plan(true)
	if len(asked) != 1 || len(asked[0].Jobs) != 1 || asked[0].Budget != device || asked[0].HostBudget != host {
		t.Errorf("plans were asked for %+v, want one job within %s and %s of the host", asked, device, host)
	}
}
