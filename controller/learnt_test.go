package controller

import (
	"math"
	"testing"
	"time"

	"tensile/graph"
	"tensile/models"
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
