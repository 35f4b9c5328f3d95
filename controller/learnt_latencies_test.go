package controller

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/controller/plans"
	"tensile/graph"
	"tensile/models"
	"tensile/plan"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// learning is a calm world whose profiles have signatures and slack, and where ops take three times as long as their
// profiles say.
func learning(t *testing.T) *world {
	w := calmWorld(t, 1, 0)
	w.profile = func(g *graph.Graph) (planner.Profile, error) {
		p, err := signedProfile(g)
		for op := range p.Latency {
			p.Slack = append(p.Slack, p.Latency[op]/2)
		}
		return p, err
	}
	w.machine = NewMachine(w.config)
	w.slow = 3
	return w
}

// took is what each op of a graph takes in a world, ops of one signature taken together.
func (w *world) took(g *graph.Graph) []time.Duration {
	p, err := w.profile(g)
	if err != nil {
		w.t.Fatal(err)
	}
	sum, n := make(map[graph.Signature]time.Duration), make(map[graph.Signature]time.Duration)
	for op, s := range p.Signatures {
		sum[s] += time.Duration(w.slow * float64(p.Latency[op]))
		n[s]++
	}
	list := make([]time.Duration, len(p.Latency))
	for op, s := range p.Signatures {
		list[op] = sum[s] / n[s]
	}
	return list
}

// asMeasured fails the test unless a job is planned for with what its ops take, from its first plan on.
func (w *world) asMeasured(name string, plans int) {
	w.t.Helper()
	j := w.machine.findJob(name)
	for op, want := range w.took(j.graph) {
		if off := float64(j.latency[op])/float64(want) - 1; math.Abs(off) > 0.03 {
			w.t.Errorf("op %d of job %s is taken to take %v, and takes %v", op, name, j.latency[op], want)
		}
	}
	if r := w.recordOf(name); r.Latencies != "updated" || r.PlansMade != plans || j.slack() != nil {
		w.t.Errorf("plan %d of job %s is made for %s latencies, with a slack of %v", r.PlansMade, name, r.Latencies,
			j.slack())
	}
}

func network(t *testing.T, batch int) *graph.Graph {
	g, err := models.Build("mlp", models.Config{Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The second job of a network is planned for at once with what the first one's ops have taken. With another batch size
// that is so of the optimizer's ops alone.
func TestSecondJobIsMeasured(t *testing.T) {
	w := learning(t)
	w.submitGraph("first", endless, 1, network(t, 4))
	w.run(30)
	w.submitGraph("second", endless, 1, network(t, 4))
	w.asMeasured("second", 1)
	w.submitGraph("other", endless, 1, network(t, 8))
	j := w.machine.findJob("other")
	took := w.took(j.graph)
	for op, o := range j.graph.Ops {
		known := math.Abs(float64(j.latency[op])/float64(took[op])-1) < 0.03 && j.slack()[op] == 0
		if want := o.Phase == graph.Optimize; known != want {
			t.Errorf("%s of another batch size: known is %v, want %v; it is to take %v, %v more at most, and takes %v",
				o.Name, known, want, j.latency[op], j.slack()[op], took[op])
		}
	}
	if r := w.recordOf("other"); r.Latencies != "cold-start" {
		t.Errorf("a job of another batch size is planned for with %s latencies", r.Latencies)
	}
}

// A controller that is killed and started again plans with what was learnt: for jobs that train, and for new ones. One
// for another device does not.
func TestLearntOutlives(t *testing.T) {
	w := learning(t)
	w.submitGraph("first", 30, 1, network(t, 4))
	w.run(20)
	w.submitGraph("training", endless, 1, network(t, 4))
	w.run(60) // the first one ends, which has what was learnt stored
	if w.learnt == nil {
		t.Fatal("nothing was stored")
	}
	w.restart()
	w.asMeasured("training", w.recordOf("training").PlansMade)
	w.submitGraph("second", endless, 1, network(t, 4))
	w.asMeasured("second", 1)

	w.config.Device = "other"
	for name := range w.records {
		delete(w.records, name)
	}
	w.restart()
	w.submitGraph("third", endless, 1, network(t, 4))
	if r := w.recordOf("third"); r.Latencies != "cold-start" {
		t.Errorf("a job on another device is planned for with %s latencies", r.Latencies)
	}
}

// What was learnt is stored when a job ends, and else at most every minute, if there is news.
func TestLearntIsStoredRarely(t *testing.T) {
	w := learning(t)
	stored := func() bool { was := w.learnt; w.learnt = nil; return was != nil }
	w.submitGraph("a", endless, 1, network(t, 4))
	w.run(20)
	for _, step := range []struct {
		after time.Duration
		train bool
		want  bool
	}{{0, true, true}, {59 * time.Second, true, false}, {2 * time.Second, true, true}, {time.Hour, false, false}} {
		if step.train {
			w.run(5)
		}
		w.clock += step.after
		w.step(Input{Tick: &Tick{}})
		if got := stored(); got != step.want {
			t.Errorf("after %v, with new reports: %v: stored: %v, want %v", step.after, step.train, got, step.want)
		}
	}
	w.run(5)
	w.step(Input{Request: &wire.Request{Verb: wire.Stop, Job: "a"}})
	w.run(5)
	if !stored() {
		t.Error("nothing was stored when the job ended")
	}
}

// The first report of an incarnation teaches nothing, and what no variant of the profile has taken neither.
func TestWarmUpTeachesNothing(t *testing.T) {
	k := restoreLearnt("x", nil)
	profile := &planner.Profile{Signatures: []graph.Signature{"a", "b", "a"}}
	j := &job{profile: profile, record: wire.Record{Incarnation: 1}}
	l := &layout{ProvenLayout: plans.ProvenLayout{Wire: &wire.Layout{Plan: &plan.Plan{
		Steps: []plan.Step{{Op: 0}, {Op: 1, Variant: "another"}, {Op: 2}}}}}}
	hear := func(took time.Duration) { k.learnFrom(j, l, []time.Duration{took, took, 3 * took}) }
	hear(time.Second)
	if len(k.lessons) != 0 {
		t.Errorf("the first report has taught %v", k.lessons)
	}
	hear(10)
	if took, ok := k.latencyOf("a"); !ok || took != 20 {
		t.Errorf("a takes %v (%v), want the average of 10 ns and 30 ns", took, ok)
	}
	if _, ok := k.latencyOf("b"); ok {
		t.Error("a step in another variant has taught what the first one takes")
	}
	j.record.Incarnation = 2
	hear(time.Second)
	if took, _ := k.latencyOf("a"); took != 20 {
		t.Errorf("the first report of the second incarnation has taught %v", took)
	}
	hear(40)
	if took, _ := k.latencyOf("a"); took != 50 {
		t.Errorf("after 20 ns and 80 ns it is %v on average", took)
	}
	hear(math.MaxInt64)
	if took, _ := k.latencyOf("a"); took > 50+50*8 {
		t.Errorf("an outlier makes it %v", took)
	}
}

// Whatever reports say: no more signatures are kept than may be, those that were heard of last stay, each latency lies
// between the least and the most that was reported, and what is stored is found again.
func TestLearntBounds(t *testing.T) {
	const universe = 3 * wire.MaxLearnt
	signature := func(i int) graph.Signature {
		const digits = "0123456789abcdef"
		s := []byte("00000000000000000000000000000000")
		for at := 31; i > 0; at, i = at-1, i/16 {
			s[at] = digits[i%16]
		}
		return graph.Signature(s)
	}
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 5))
		m := NewMachine(Config{Device: "x"})
		k := &m.ownDomain.learnt
		least, most := map[graph.Signature]time.Duration{}, map[graph.Signature]time.Duration{}
		heard := map[graph.Signature]int{} // the newest round in which it was
		rounds := 40
		for round := range rounds {
			j := &job{profile: &planner.Profile{}, warmIncarnation: 1, record: wire.Record{Incarnation: 1}}
			l := &layout{ProvenLayout: plans.ProvenLayout{Wire: &wire.Layout{Plan: new(plan.Plan)}}}
			r := new(wire.Report)
			from := rng.IntN(universe)
			for op := range 1 + rng.IntN(wire.MaxLearnt/2) {
				s := signature((from + op*(1+int(seed%3))) % universe)
				took := time.Duration(rng.Int64N(1 << (1 + rng.IntN(45))))
				if rng.IntN(100) == 0 {
					took = math.MaxInt64
				}
				j.profile.Signatures = append(j.profile.Signatures, s)
				l.Wire.Plan.Steps = append(l.Wire.Plan.Steps, plan.Step{Op: graph.OpID(op)})
				r.Steps = append(r.Steps, took)
				if _, kept := k.lessons[s]; !kept {
					delete(least, s)
					delete(most, s)
				}
				took = min(took, wire.MaxLatency)
				if old, ok := least[s]; !ok || took < old {
					least[s] = took
				}
				most[s], heard[s] = max(most[s], took), round
			}
			for range 1 + rng.IntN(3) {
				k.learnFrom(j, l, r.Steps)
			}
			if len(k.lessons) > wire.MaxLearnt {
				t.Fatalf("seed %d: %d signatures are kept", seed, len(k.lessons))
			}
			for s, x := range k.lessons {
				if x.latency < least[s] || x.latency > most[s] {
					t.Fatalf("seed %d: %s takes %v, of %v to %v that were reported", seed, s, x.latency, least[s],
						most[s])
				}
			}
		}
		oldest := rounds
		for s := range k.lessons {
			oldest = min(oldest, heard[s])
		}
		for s, round := range heard {
			if k.lessons[s] == nil && round > oldest {
				t.Fatalf("seed %d: a signature of round %d was forgotten, one of round %d is kept", seed, round, oldest)
			}
		}
		m.ownDomain.storeLearnt()
		stored, err := wire.DecodeAs[wire.Learnt](wire.Encode(m.outputs[len(m.outputs)-1].Learnt.Wire))
		if err != nil {
			t.Fatal(err)
		}
		again := restoreLearnt("x", &stored)
		if !slices.Equal(again.oldestFirst(), k.oldestFirst()) {
			t.Errorf("seed %d: after a restart they would be forgotten in another order", seed)
		}
		if got, want := again.latencies(), k.latencies(); !maps.Equal(got, want) {
			t.Errorf("seed %d: %d latencies are stored, %d come back", seed, len(want), len(got))
		}
		if !slices.IsSortedFunc(stored.Ops, func(a, b wire.LearntOp) int {
			return cmp.Compare(k.lessons[a.Signature].lastReport, k.lessons[b.Signature].lastReport)
		}) {
			t.Errorf("seed %d: they are not stored by when they were heard of", seed)
		}
	}
}
