package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// again starts a controller with another budget on what is stored, and returns its lines.
func (w *world) again(budget graph.Bytes) []string {
	w.t.Helper()
	w.config.Budget = budget
	w.lines = nil
	w.restart()
	return w.lines
}

// After a restart with a smaller budget jobs shrink at once, without anybody's coming or going, and what comes then
// begins when they have. Claims only fall until then, which check holds.
func TestSmallerBudget(t *testing.T) {
	shrunk := 0
	for seed := range long.Rounds(16, 60) {
		w := calmWorld(t, seed, 0)
		w.submit("a", endless)
		w.submit("b", endless)
		w.run(5)
		held := w.machine.ownDomain.totalClaims().Bytes()
		lines := w.again(held * 8 / 10)
		if !slices.Contains(lines, fmt.Sprintf("jobs hold %s of %s; they shrink", held, held*8/10)) {
			continue // they cannot
		}
		shrunk++
		if w.machine.ownDomain.totalClaims().Bytes() != held {
			t.Errorf("seed %d: claims of %s before an executor has said anything, want %s", seed,
				w.machine.ownDomain.totalClaims().Bytes(), held)
		}
		w.run(5)
		if claims := w.machine.ownDomain.totalClaims().Bytes(); claims > w.config.Budget {
			t.Errorf("seed %d: claims of %s after all have shrunk, the budget is %s", seed, claims, w.config.Budget)
		}
		for _, name := range []string{"a", "b"} {
			j := w.machine.findJob(name)
			r := j.record
			if r.State != wire.JobRunning || r.Applied != r.Epoch || r.Arena != j.newestLayout().Wire.Arena ||
				r.SlotPeak != j.newestLayout().Peak || r.Device != "model" {
				t.Errorf("seed %d: the record is not that of the plan in force: %+v", seed, r)
			}
		}
		if lines := w.again(w.config.Budget); len(lines) > 0 {
			t.Errorf("seed %d: a restart with the same budget says %q", seed, lines)
		}
	}
	if t.Logf("jobs shrank for %d seeds", shrunk); shrunk < long.Or(5, 20) {
		t.Errorf("jobs shrank for %d seeds only", shrunk)
	}
}

// Jobs that cannot shrink so far go on, and say so; one that waits and cannot even run alone any more goes on waiting,
// and holds nobody up.
func TestTooSmallBudget(t *testing.T) {
	w := calmWorld(t, 3, 0)
	w.config.Policy = "none-live"
	w.machine = NewMachine(w.config)
	w.submit("a", 4)
	w.run(2)
	held := w.machine.ownDomain.totalClaims().Bytes()
	w.machine.ownDomain.config.Budget, w.config.Budget = held, held
	g := w.graphs[w.recordOf("a").Spec.Graph]
	w.step(Input{Submit: []Submission{{Spec: wire.Spec{Name: "b", Graph: g.Digest(), Iterations: endless}, Graph: g}}})
	if r := w.recordOf("b"); r.State != wire.JobQueued {
		t.Fatalf("b is %s", r.State)
	}
	lines := strings.Join(w.again(64), "\n")
	if !strings.Contains(lines, fmt.Sprintf("jobs hold %s of 64B, and cannot shrink that far; nothing else begins "+
		"until some have ended", held)) {
		t.Errorf("the controller says:\n%s", lines)
	}
	if trouble := w.machine.Trouble(); !strings.HasPrefix(trouble, fmt.Sprintf("jobs hold %s of 64B", held)) {
		t.Errorf("the trouble is %q", trouble)
	}
	if r := w.recordOf("b"); r.State != wire.JobQueued || !strings.HasPrefix(r.Reason,
		"waits for a larger budget: job b cannot run here, even alone: it needs ") {
		t.Errorf("b is %s: %s", r.State, r.Reason)
	}
	w.run(12)
	if r := w.recordOf("a"); r.State != wire.JobFinished {
		t.Errorf("a is %s: %s", r.State, r.Reason)
	}
}

// A larger budget has jobs planned for again too.
func TestLargerBudget(t *testing.T) {
	grown := 0
	for seed := range uint64(40) {
		w := calmWorld(t, seed, 0)
		g := w.submit("a", endless)
		need := w.newest("a")
		w = calmWorld(t, seed, need*3/4)
		w.graphs[g.Digest()] = g
		w.step(Input{Submit: []Submission{{Spec: wire.Spec{Name: "a", Graph: g.Digest(), Iterations: endless},
			Graph: g}}})
		if w.machine.findJob("a") == nil {
			continue // it does not fit
		}
		w.run(3)
		before := w.recordOf("a").Arena
		if lines := w.again(need); !slices.Contains(lines, fmt.Sprintf("the budget is %s, and was %s: all jobs are "+
			"planned for again", need, need*3/4)) {
			t.Errorf("seed %d: the controller says %q", seed, lines)
		}
		w.run(3)
		if w.recordOf("a").Arena > before {
			grown++
		}
	}
	if t.Logf("%d jobs have grown", grown); grown < 5 {
		t.Errorf("only %d jobs have grown", grown)
	}
}

// A controller for another device does not take up jobs that run; one that was parked on a device of others may wait.
func TestOtherDevice(t *testing.T) {
	w := calmWorld(t, 1, 0)
	w.submit("a", endless)
	w.run(3)
	c := w.config
	c.Device = "other"
	with := func(r wire.Record) string {
		s := w.stored()
		s.Records = []wire.Record{r}
		return Restore(c, s).jobs[0].damage
	}
	restore := func() string { return with(w.records["a"]) }
	if why := restore(); !strings.Contains(why, "it runs on model, and this controller is for other: ") {
		t.Errorf("taking up a job of another device: %q", why)
	}
	parked := w.records["a"]
	parked.State, parked.Executor, parked.Claim, parked.Granted, parked.Applied = wire.JobParked, "", 0, 0, 0
	if why := with(parked); why != "" {
		t.Errorf("taking up a job that is parked: it %s", why)
	}
	w.step(Input{Request: &wire.Request{Verb: wire.Stop, Job: "a"}})
	w.run(3)
	if why := restore(); why != "" {
		t.Errorf("taking up a job that has ended: it %s", why)
	}
}

// Submissions that come together are planned for together, once, and all are taken or none.
func TestBatch(t *testing.T) {
	w := calmWorld(t, 2, 0)
	g := graphtest.New(w.rng, graphtest.Options{})
	w.graphs[g.Digest()] = g
	batch := func(names ...string) (list []Submission) {
		for _, name := range names {
			list = append(list, Submission{Spec: wire.Spec{Name: name, Model: "random", Graph: g.Digest(),
				Iterations: endless}, Graph: g})
		}
		return list
	}
	profiled := 0
	w.profile = func(g *graph.Graph) (planner.Profile, error) { profiled++; return profile(g) }
	w.step(Input{Submit: batch("a", "b", "c", "d")})
	last := w.answers[len(w.answers)-1]
	if last.Error != "" || len(last.Jobs) != 4 || profiled != 1 {
		t.Fatalf("answer %+v after %d profiles of one graph", last, profiled)
	}
	for _, r := range last.Jobs {
		if r.Epoch != 1 || r.PlansMade != 1 || r.Granted != 1 {
			t.Errorf("job %s has plan %d, the %dth, granted %d; want one of all together", r.Spec.Name, r.Epoch,
				r.PlansMade, r.Granted)
		}
	}
	each := w.newest("a")

	w.step(Input{Submit: batch("e", "b", "f")})
	want := "there is a job b: give the new one another name, or stop that one first; none of the 3 jobs was taken"
	if last := w.answers[len(w.answers)-1]; last.Error != want || len(w.machine.jobs) != 4 {
		t.Errorf("answer %+v with %d jobs, want none taken", last, len(w.machine.jobs))
	}

	// As many begin as fit, in turn; the others wait.
	for fit := 0; fit <= 6; fit++ {
		w := calmWorld(t, 2, graph.Bytes(max(1, fit))*each)
		w.config.Policy = "none-live" // every job takes as much as alone
		w.machine = NewMachine(w.config)
		w.graphs[g.Digest()] = g
		if fit == 0 {
			w.step(Input{Submit: batch("first")}) // which has it all
		}
		var names []string
		for i := range 6 {
			names = append(names, fmt.Sprint("j", i))
		}
		w.step(Input{Submit: batch(names...)})
		begun := 0
		for i, name := range names {
			if r := w.recordOf(name); (r.State == wire.JobStarting) != (i < fit) {
				t.Errorf("%d fit: job %d is %s: %s", fit, i, r.State, r.Reason)
			} else if r.State == wire.JobStarting {
				begun++
			} else if i == fit && !strings.HasPrefix(r.Reason, "waits for ") || i > fit &&
				r.Reason != fmt.Sprintf("job j%d is before it in the queue", fit) {
				t.Errorf("%d fit: job %d is queued: %s", fit, i, r.Reason)
			}
		}
		if begun != fit {
			t.Errorf("%d have begun, want %d", begun, fit)
		}
	}
}
