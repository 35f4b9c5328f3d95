package controller

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/scheduler/explain"
	"tensile/wire"
)

// explained asks a world's machine about a job, which must change nothing.
func (w *world) explained(q wire.Request) wire.Answer {
	w.t.Helper()
	before := w.machine.Records()
	q.Verb = wire.Explain
	outputs := w.machine.Step(w.clock, Input{From: 1, By: "anybody", Request: &q})
	if len(outputs) != 1 || outputs[0].Explain == nil {
		w.t.Fatalf("a question has the machine want %+v", outputs)
	}
	if after := w.machine.Records(); !reflect.DeepEqual(after, before) {
		w.t.Errorf("a question has changed %+v to %+v", before, after)
	}
	a := plannerOf(w.config, w.profile).Explain(w.t.Context(), outputs[0].Explain)
	if _, err := wire.DecodeAs[wire.Answer](wire.Encode(a)); err != nil {
		w.t.Errorf("the answer cannot be read: %v", err)
	}
	return a
}

// inPlans are the newest plans of jobs that have one: arenas by name, and epochs.
func (w *world) inPlans() (arenas map[string]graph.Bytes, epochs map[string]int64) {
	arenas, epochs = make(map[string]graph.Bytes), make(map[string]int64)
	for _, j := range w.machine.ownDomain.activeJobs() {
		if l := j.newestLayout(); l != nil {
			arenas[j.record.Spec.Name], epochs[j.record.Spec.Name] = l.Wire.Arena, l.Epoch()
		}
	}
	return arenas, epochs
}

// training is a world in which some of three jobs train and the others wait.
func training(t *testing.T, seed uint64) *world {
	w := newWorld(t, seed, graph.Bytes(1000+150*(seed%16)))
	w.calm, w.late = true, false
	w.config.Preempt = false
	w.machine = NewMachine(w.config)
	for _, name := range []string{"a", "b", "c"} {
		w.submit(name, endless)
	}
	for range 60 {
		w.deliver()
		for _, j := range w.machine.jobs {
			if x := w.executors[j.record.Executor]; x != nil {
				w.work(x)
			}
		}
	}
	return w
}

// An explanation has a measured iteration whose parts add up, stalls of the plan's storages, and plans that keep to
// their budgets. What it says of another budget or priority is what the planner does when that is set.
func TestExplain(t *testing.T) {
	var measured, waiting, admitted, done, stalls int
	for seed := range long.Rounds(4, 16) {
		w := training(t, seed)
		for _, j := range slices.Clone(w.machine.jobs) {
			name := j.record.Spec.Name
			if j.record.State.Over() {
				continue
			}
			e := w.explained(wire.Request{Job: name, Priority: 7}).Explained
			if e == nil || e.Job != name || len(e.Plans) != 4 {
				t.Fatalf("seed %d: job %s is explained by %+v", seed, name, e)
			}
			if x := e.Time; x != nil {
				measured++
				if sum := x.Alone + x.Variants + x.Again + x.Beside + x.Stall + x.Gate + x.Rest; sum != x.Iteration {
					t.Errorf("seed %d: parts of %+v add up to %v", seed, x, sum)
				}
			}
			stalls += len(e.Stalls)
			for _, a := range e.Plans {
				var sum graph.Bytes
				own := slices.Contains(a.Waiting, name)
				for _, o := range a.Jobs {
					sum += o.Arena
					own = own || o.Job == name
				}
				if sum > a.Budget || !own || slices.Contains(a.Waiting, name) != (a.Error != "") {
					t.Errorf("seed %d: %+v of job %s", seed, a, name)
				}
			}
			if j.record.State == wire.JobQueued && slices.Contains(e.Plans[0].Waiting, name) {
				waiting++
				if !slices.Contains(e.Plans[1].Waiting, name) {
					admitted++
				}
			}
			done += w.holds(seed, name, e)
		}
	}
	if measured == 0 || waiting == 0 || admitted == 0 || done == 0 || stalls == 0 {
		t.Errorf("%d iterations were measured, %d jobs waited, %d would not with more, %d plans were made, %d stalls",
			measured, waiting, admitted, done, stalls)
	}
}

// holds sets the smaller budget and the priority that an explanation has plans for, and compares. It returns how many
// of them the machine has adopted.
func (w *world) holds(seed uint64, name string, e *explain.Job) (adopted int) {
	w.t.Helper()
	for _, a := range e.Plans[2:] {
		copied := *w.machine.findJob(name)
		set := &wire.Request{Verb: wire.SetBudget, Budget: a.Budget}
		undo := &wire.Request{Verb: wire.SetBudget, Budget: e.Budget}
		if a.Priority != e.Plans[0].Priority {
			set = &wire.Request{Verb: wire.SetWeight, Job: name, Priority: a.Priority}
			undo = &wire.Request{Verb: wire.SetWeight, Job: name, Priority: copied.priority()}
		}
		_, before := w.inPlans()
		w.step(Input{From: 1, Request: set})
		arenas, after := w.inPlans()
		for _, o := range a.Jobs {
			if before[o.Job] == 0 || after[o.Job] != before[o.Job]+1 {
				continue // the same plan, or one that gains too little
			}
			if adopted++; arenas[o.Job] != o.Arena {
				w.t.Errorf("seed %d: with %+v job %s has %s, and was to have %s", seed, set, o.Job, arenas[o.Job],
					o.Arena)
			}
		}
		w.step(Input{From: 1, Request: undo})
		if adopted > 0 {
			return adopted // other plans are in force now
		}
	}
	return adopted
}

// Every storage of a job has a life, with what the planner says of it; a name that it has not is answered with those
// that are like it.
func TestExplainStorage(t *testing.T) {
	decided, measured := 0, 0
	for seed := range uint64(4) {
		w := training(t, seed)
		for _, j := range w.machine.jobs {
			for i := range j.graph.Storages {
				s := &j.graph.Storages[i]
				a := w.explained(wire.Request{Job: j.record.Spec.Name, Storage: s.Name})
				if a.Storage == nil {
					if w.machine.findJob(j.record.Spec.Name).newestLayout() != nil {
						t.Errorf("seed %d: storage %s of job %s: %s", seed, s.Name, j.record.Spec.Name, a.Error)
					}
					continue
				}
				if a.Storage.Bytes != s.Bytes || a.Storage.Epoch != j.record.Applied && j.record.Applied > 0 {
					t.Errorf("seed %d: storage %s: %+v", seed, s.Name, a.Storage)
				}
				decided += len(a.Storage.Decisions)
				for _, e := range a.Storage.Events {
					if e.Measured != nil {
						measured++
					}
				}
			}
			if i := slices.Index([]wire.JobState{wire.JobRunning, wire.JobStarting}, j.record.State); i >= 0 {
				q := wire.Request{Job: j.record.Spec.Name, Storage: j.graph.Storages[0].Name + "x"}
				if a := w.explained(q); !strings.HasPrefix(a.Error, "job "+q.Job+" has no storage "+q.Storage+": ") {
					t.Errorf("a storage that is not there: %q", a.Error)
				}
			}
		}
	}
	if decided == 0 || measured == 0 {
		t.Errorf("%d decisions, %d uses that were measured", decided, measured)
	}
}

// The reasons, and what was predicted, are those with which the plan was made that a job trains by, whatever would be
// planned now, and after a restart of the controller as before.
func TestExplainReasons(t *testing.T) {
	others, decided := 0, 0
	for seed := range uint64(6) {
		w := training(t, seed)
		w.machine.ownDomain.config.Budget = 0 // other plans would be made now
		for _, when := range []string{"before a restart", "after it"} {
			for _, j := range w.machine.jobs {
				name := j.record.Spec.Name
				if j.record.Applied == 0 {
					continue
				}
				has := w.layout(name, j.record.Applied)
				e := w.explained(wire.Request{Job: name}).Explained
				if e.Has == nil || e.Has.Epoch != j.record.Applied || e.Has.Arena != has.Arena ||
					e.Has.Stands != explain.InForce {
					t.Errorf("seed %d, %s: job %s trains by plan %d in %s, and is explained by %+v", seed, when, name,
						j.record.Applied, has.Arena, e.Has)
				}
				if len(e.Plans) > 0 && !e.Plans[0].Same {
					others++
				}
				for id := 0; id < len(j.graph.Storages); id += 3 {
					var want []explain.Decision
					for _, d := range has.Reasons.About(graph.StorageID(id)) {
						want = append(want, explain.DecisionOf(j.graph, has.Plan, d))
					}
					decided += len(want)
					life := w.explained(wire.Request{Job: name, Storage: j.graph.Storages[id].Name}).Storage
					if life.Epoch != j.record.Applied || life.Stands != explain.InForce ||
						!slices.Equal(life.Decisions, want) {
						t.Errorf("seed %d, %s: storage %s of job %s, which trains by plan %d, is explained by\n%+v\n"+
							"want the decisions\n%+v", seed, when, life.Storage, name, j.record.Applied, life, want)
					}
				}
			}
			w.restart()
		}
	}
	if others == 0 || decided == 0 {
		t.Errorf("%d times another plan would be made now, %d decisions", others, decided)
	}
}

// One that has no time left says so, instead of plans.
func TestExplainInTime(t *testing.T) {
	w := training(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	outputs := w.machine.Step(w.clock, Input{From: 1, Request: &wire.Request{Verb: wire.Explain, Job: "a"}})
	e := plannerOf(w.config, w.profile).Explain(ctx, outputs[0].Explain).Explained
	if len(e.Plans) == 0 || e.Plans[0].Error != "the plan was not ready in time" {
		t.Errorf("without time: %+v", e.Plans)
	}
}

// A runner answers while plans are made, and refuses what nobody can answer.
func TestExplainOnTheBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOffice(t)
		answer := f.submit("a", 1)
		storage := graphtest.New(rand.New(rand.NewPCG(1, 1)), graphtest.Options{}).Storages[0].Name
		<-f.plans
		a := f.ask(wire.Request{Verb: wire.Explain, Job: "a"})
		if e := a.Explained; e == nil || e.State != "queued" || len(e.Plans) == 0 || len(e.Plans[0].Jobs) != 1 {
			t.Errorf("while its plan is made job a is explained by %+v, %s", e, a.Error)
		}
		if a := f.ask(wire.Request{Verb: wire.Explain, Job: "a", Storage: storage}); a.Storage == nil ||
			a.Storage.Stands != explain.Now {
			t.Errorf("while its plan is made a storage of job a is explained by %+v, %s", a.Storage, a.Error)
		}
		if a := f.ask(wire.Request{Verb: wire.Explain, Job: "b"}); a.Error == "" {
			t.Error("there is no job b")
		}
		f.let <- struct{}{}
		<-answer
		f.jobs()
		f.close()
		if n, err := Replay(strings.NewReader(f.recording.String())); err != nil || n < 4 {
			t.Errorf("replayed %d steps: %v", n, err)
		}
	})
}
