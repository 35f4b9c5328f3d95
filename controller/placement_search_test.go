package controller

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/controller/plans"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// lab is a machine with devices that executors have brought, and jobs that begin and never end.
type lab struct {
	t       *testing.T
	rng     *rand.Rand
	config  Config
	machine *Machine
	now     time.Duration
	graphs  []*graph.Graph
	asked   int // plan requests for the job of a search
}

func newLab(t *testing.T, seed uint64, devices int) *lab {
	l := &lab{t: t, rng: rand.New(rand.NewPCG(seed, 91)), now: time.Hour}
	l.config = Config{NoDevice: true, Policy: "tensile", Silence: 1000 * time.Hour, GiveUp: 1000 * time.Hour}
	if l.config.MemorySharing = wire.NoSharing; seed%2 == 0 {
		l.config.MemorySharing = wire.Gates
	}
	l.machine = NewMachine(l.config)
	for range 3 {
		l.graphs = append(l.graphs, graphtest.New(l.rng, graphtest.Options{Ops: 8 + l.rng.IntN(12)}))
	}
	for i := range devices {
		name := fmt.Sprint("d", i)
		link := cost.Link{Rate: 100e6, Latency: time.Microsecond}
		device := &wire.Device{Name: name, Identity: []string{"slow", "slow", "fast"}[l.rng.IntN(3)], Align: 64,
			Host: fmt.Sprint("h", 1+i/2), Page: 64, Budget: graph.Bytes([]int{300, 600, 1500}[l.rng.IntN(3)]),
			Facts: cost.Facts{Compute: 1e9, Bandwidth: 1e9, ComputeShare: 1, BandwidthShare: 1, Out: link, In: link,
				Launch: 5 * time.Microsecond}}
		l.step(Input{Status: &wire.Status{Executor: name, Life: name, Device: device.Identity, Host: device.Host,
			Folder: "shared", Number: 1, Brings: device}})
	}
	if seed%3 == 2 {
		l.step(Input{Request: &wire.Request{Verb: wire.SetShare, Tenant: "ada", Share: 5}})
	}
	return l
}

// profiled is the profile of a graph: a fast device takes half as long.
func profiled(device string) func(*graph.Graph) (planner.Profile, error) {
	return func(g *graph.Graph) (planner.Profile, error) {
		p, err := profile(g)
		for op := range p.Latency {
			if device == "fast" {
				p.Latency[op] /= 2
			}
		}
		return p, err
	}
}

func (l *lab) plan(p *plans.Request) *plans.Result {
	planner := plannerOf(l.config.ForDevice(p.Device), profiled(p.Device.Identity))
	planner.Device.Sharing = p.Device.Facts.Sharing()
	return planner.Plan(l.t.Context(), p)
}

// step tells the machine something, and has all plans made that it wants.
func (l *lab) step(in Input) {
	l.now += time.Millisecond
	for _, o := range l.machine.Step(l.now, in) {
		if o.PlanRequest != nil {
			l.asked++
			defer l.step(Input{PlanResult: l.plan(o.PlanRequest)})
		}
	}
}

// arrive submits a job, and returns it and the device on which it is best by plans on all of them; nil: it fits none.
func (l *lab) arrive(name string) (*job, *domain) {
	l.now += time.Millisecond
	g := l.graphs[l.rng.IntN(len(l.graphs))]
	spec := wire.Spec{Name: name, Graph: g.Digest(), Iterations: 1000, Priority: 1 + l.rng.IntN(3)}
	outputs := l.machine.Step(l.now, Input{By: []string{"ada", "bob"}[l.rng.IntN(2)],
		Submit: []Submission{{Spec: spec, Graph: g}}})
	j := l.machine.findJob(name)
	best := l.best(j)
	for _, o := range outputs {
		if o.PlanRequest != nil {
			l.asked++
			l.step(Input{PlanResult: l.plan(o.PlanRequest)})
		}
	}
	return j, best
}

// best is the obvious way: all devices are asked.
func (l *lab) best(j *job) (best *domain) {
	type answer struct {
		on     *domain
		grows  float64 // but for the job itself
		alone  time.Duration
		itself float64 // its slowdown against alone on this device
	}
	var answers []answer
	fastest := time.Duration(math.MaxInt64)
	for _, d := range l.machine.candidateDevices(j) { // by name
		there := d.reachableJobs()
		at := len(there)
		p := l.plan(d.planRequestFor(append(slices.Clone(there), j), at))
		a := answer{on: d}
		if of, made := p.NewProfiles[at]; made {
			a.alone = plans.TotalTime(of.Latency)
		} else {
			a.alone = plans.TotalTime(d.candidateFor(j).Latency)
		}
		if fastest = min(fastest, a.alone); len(p.Jobs) <= at {
			continue
		}
		for i, o := range there {
			a.grows += l.weight(o, j) * (p.Jobs[i].Slowdown - o.record.Slowdown)
		}
		a.itself = p.Jobs[at].Slowdown
		answers = append(answers, a)
	}
	var least float64
	for _, a := range answers {
		grows := a.grows + l.weight(j, j)*a.itself*float64(a.alone)/float64(fastest)
		if best == nil || grows < least {
			best, least = a.on, grows
		}
	}
	return best
}

// weight is what a job is worth: its priority, or that part of its tenant's share, also of another that comes.
func (l *lab) weight(j, comes *job) float64 {
	if !l.machine.hasTenants() {
		return float64(j.priority())
	}
	all := 0
	for _, o := range l.machine.jobs {
		if o.tenant() == j.tenant() && (o.isActive() || o == comes) {
			all += o.priority()
		}
	}
	return float64(l.machine.shares.ShareOf(j.tenant())*j.priority()) / float64(all)
}

// A job goes to the device that would have been chosen if all had been asked for plans, in labs of different devices
// and budgets, with tenants and without, of jobs that share memory and of some that do not; and few are asked.
func TestFewAreAsked(t *testing.T) {
	asked, all, placed := 0, 0, 0
	for seed := range long.Rounds(1, 6) {
		l := newLab(t, seed, 6)
		for i := range 12 {
			j, best := l.arrive(fmt.Sprint("job", i))
			all += len(l.machine.domains)
			if best == nil {
				if j.record.State != wire.JobQueued && !j.record.State.Over() {
					t.Errorf("seed %d: job %d is %s, and no device has plans for it", seed, i, j.record.State)
				}
				l.step(Input{Request: &wire.Request{Verb: wire.Stop, Job: j.record.Spec.Name}})
				continue
			}
			if placed++; j.domain != best || j.record.State != wire.JobStarting {
				t.Errorf("seed %d: job %d is %s on %q, and %q is best", seed, i, j.record.State, j.domain.recordName(),
					best.recordName())
			}
		}
		asked += l.asked
	}
	t.Logf("%d jobs were placed by %d of %d answers", placed, asked, all)
	if placed < 5 || 3*asked > 2*all {
		t.Errorf("%d jobs were placed by %d of %d answers", placed, asked, all)
	}
}
