package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/scheduler"
	"tensile/wire"
)

// calmWorld has a network that neither loses nor doubles.
func calmWorld(t *testing.T, seed uint64, budget graph.Bytes) *world {
	w := newWorld(t, seed, budget)
	w.config.OneExecutor = false
	w.machine = NewMachine(w.config)
	w.calm, w.late = true, false
	return w
}

// run delivers all messages and lets every executor work some rounds.
func (w *world) run(rounds int) {
	for range rounds {
		for len(w.mail) > 0 {
			w.deliver()
		}
		for _, name := range slices.Sorted(maps.Keys(w.executors)) {
			w.work(w.executors[name])
		}
	}
	for len(w.mail) > 0 {
		w.deliver()
	}
}

func (w *world) recordOf(name string) wire.Record {
	j := w.machine.findJob(name)
	if j == nil {
		w.t.Fatalf("there is no job %s", name)
	}
	return j.record
}

// newest is the arena of a job's newest plan, whether it is in force or not.
func (w *world) newest(name string) graph.Bytes {
	return w.machine.findJob(name).newestLayout().Wire.Arena
}

// endless is more iterations than a test lets jobs do.
const endless = 1 << 20

// A job comes that the others have to make room for: they shrink, and only when they have said so it begins. It leaves,
// and what it had can be used again.
func TestArrivalAndDeparture(t *testing.T) {
	shrunk, grown := 0, 0
	for seed := range uint64(60) {
		w := calmWorld(t, seed, 0)
		w.submit("a", endless)
		w.submit("b", endless)
		w.run(5)
		before := map[string]graph.Bytes{"a": w.newest("a"), "b": w.newest("b")}
		w.machine.ownDomain.config.Budget, w.config.Budget = before["a"]+before["b"]+200, before["a"]+before["b"]+200
		w.submit("c", endless)
		a, b, c := w.newest("a"), w.newest("b"), w.recordOf("c")
		if c.State != wire.JobStarting || a >= before["a"] && b >= before["b"] {
			continue
		}
		shrunk++
		if c.Granted != 0 || !strings.Contains(c.Reason, "giving back") {
			t.Errorf("seed %d: c was granted %d before the others gave anything back: %q", seed, c.Granted, c.Reason)
		}
		w.run(5)
		if c = w.recordOf("c"); c.State != wire.JobRunning || c.Applied != c.Granted || c.Granted != c.Epoch {
			t.Errorf("seed %d: c is %s with epochs %d, %d, %d: %s", seed, c.State, c.Epoch, c.Granted, c.Applied,
				c.Reason)
		}
		if a, b := w.recordOf("a"), w.recordOf("b"); a.Epoch == 1 && b.Epoch == 1 {
			t.Errorf("seed %d: neither a nor b was planned again", seed)
		}
		w.step(Input{Request: &wire.Request{Verb: wire.Stop, Job: "c"}})
		w.run(5)
		if c := w.machine.findJob("c"); c.record.State != wire.JobStopped || c.claim().Arena != 0 {
			t.Errorf("seed %d: c is %s, with %s", seed, c.record.State, c.claim().Arena)
		}
		if w.newest("a") > a || w.newest("b") > b {
			grown++
		}
	}
	if t.Logf("%d seeds in which jobs shrank, %d in which one grew again", shrunk, grown); shrunk < 10 || grown < 5 {
		t.Errorf("jobs shrank in %d seeds only, and grew in %d", shrunk, grown)
	}
}

// What does not fit waits, says for how many bytes, and starts by itself: by priority, and then in turn.
func TestQueue(t *testing.T) {
	queued := 0
	for seed := range long.Rounds(20, 80) {
		w := calmWorld(t, seed, 0)
		w.submit("a", endless)
		w.run(3)
		need := w.recordOf("a").Arena
		w.machine.ownDomain.config.Budget, w.config.Budget = need, need
		for i, name := range []string{"b", "c"} {
			w.submitAs(name, endless, 1+i) // c comes later, and goes first
		}
		b, c := w.machine.findJob("b"), w.machine.findJob("c")
		if b == nil || c == nil || b.record.State != wire.JobQueued || c.record.State != wire.JobQueued {
			continue
		}
		queued++
		if r := c.record; r.Wait.DeviceBytes() <= 0 || !strings.Contains(r.Reason, "waits for "+r.Wait.Bytes.String()) {
			t.Errorf("seed %d: c waits for %+v: %q", seed, r.Wait, r.Reason)
		}
		w.step(Input{Request: &wire.Request{Verb: wire.Stop, Job: "a"}})
		w.run(4)
		if w.recordOf("a").State != wire.JobStopped || w.recordOf("c").State != wire.JobRunning {
			t.Errorf("seed %d: a is %s, c %s", seed, w.recordOf("a").State, w.recordOf("c").State)
		}
		w.step(Input{Request: &wire.Request{Verb: wire.Stop, Job: "c"}})
		w.run(4)
		if w.recordOf("b").State != wire.JobRunning {
			t.Errorf("seed %d: b is %s: %s", seed, w.recordOf("b").State, w.recordOf("b").Reason)
		}
	}
	if t.Logf("%d seeds with a queue", queued); queued < 5 {
		t.Errorf("a queue in %d seeds only", queued)
	}
}

// A job whose ops become faster, so that copies are late, has all jobs planned again, once it has settled; noise never
// has.
func TestDrift(t *testing.T) {
	var drifted, plans int
	for seed := range long.Rounds(16, 60) {
		w := calmWorld(t, seed, 0)
		g := w.submit("a", endless)
		w.run(3)
		tight := w.recordOf("a").Arena * 7 / 10
		w = calmWorld(t, seed, tight)
		w.config.Horizon = 10_000
		w.machine = NewMachine(w.config)
		w.graphs[g.Digest()] = g
		w.step(Input{Submit: []Submission{{Spec: wire.Spec{Name: "a", Graph: g.Digest(), Iterations: endless},
			Graph: g}}})
		if w.machine.findJob("a") == nil {
			continue // it does not fit
		}
		w.run(60)
		if n := w.recordOf("a").PlansMade; n != 1 {
			t.Errorf("seed %d: %d plans under noise alone", seed, n)
		}
		if phase := w.recordOf("a").Latencies; phase != scheduler.ColdStart {
			t.Errorf("seed %d: the first plan is for latencies of phase %q", seed, phase)
		}
		plans++
		w.slow = 0.1
		w.run(60)
		after := w.recordOf("a").PlansMade
		if after > 1 {
			if phase := w.recordOf("a").Latencies; phase != scheduler.Updated {
				t.Errorf("seed %d: the plan after the drift is for latencies of phase %q", seed, phase)
			}
			drifted++
		}
		w.run(60)
		if n := w.recordOf("a").PlansMade; n != after || after > 6 {
			t.Errorf("seed %d: %d plans while ops became faster, %d more under noise", seed, after, n-after)
		}
	}
	if t.Logf("%d of %d jobs changed their plan", drifted, plans); drifted < 5 {
		t.Errorf("only %d of %d jobs changed their plan", drifted, plans)
	}
}

// Executors of another device are sent away; one that joins is used, and one whose process is another now has lost its
// jobs.
func TestExecutorsJoin(t *testing.T) {
	w := calmWorld(t, 1, 0)
	w.step(Input{Status: &wire.Status{Executor: "far", Life: "1", Number: 1, Device: "other", Orders: 7}})
	if o := w.orders["far"]; o.Refused == nil || o.Refused.Life != "1" ||
		o.Refused.Reason != "its device is other, jobs here are planned for model" || o.Number != 8 {
		t.Errorf("orders %+v to an executor of another device", o)
	}
	w.executors["here"] = &fakeExecutor{name: "here", life: "1"}
	w.tell(w.executors["here"])
	w.run(1)
	w.submit("a", endless)
	w.run(4)
	if r := w.recordOf("a"); r.Executor != "here" || r.State != wire.JobRunning {
		t.Errorf("job a is %s at executor %q", r.State, r.Executor)
	}
	w.end(w.executors["here"], "its executor has not been heard of for 16s")
	w.run(1)
	w.executors["here"] = &fakeExecutor{name: "here", life: "2"}
	w.tell(w.executors["here"])
	w.run(2)
	if r := w.recordOf("a"); r.State != wire.JobFailed || !strings.Contains(r.Reason, "not been heard of") {
		t.Errorf("job a is %s: %q", r.State, r.Reason)
	}
	w.submit("b", 2)
	w.run(6)
	if r := w.recordOf("b"); r.Executor != "here" || r.State != wire.JobFinished {
		t.Errorf("job b is %s at executor %q", r.State, r.Executor)
	}
	if o := w.orders["here"]; o.Leave || len(o.Jobs) > 0 {
		t.Errorf("orders %+v to an executor that is idle again", o)
	}
}

// The end of a process fails its jobs alone, and gives their bytes back.
func TestCrash(t *testing.T) {
	w := calmWorld(t, 4, 0)
	for _, name := range []string{"a", "b"} {
		w.submit(name, endless)
	}
	w.run(4)
	w.end(w.executors[w.recordOf("a").Executor], "signal: killed; its last lines: ...")
	w.run(3)
	if r := w.recordOf("a"); r.State != wire.JobFailed || !strings.HasPrefix(r.Reason, "signal: killed") ||
		w.machine.findJob("a").claim().Arena != 0 {
		t.Errorf("a is %s (%s) with %s", r.State, r.Reason, w.machine.findJob("a").claim().Arena)
	}
	if r := w.recordOf("b"); r.State != wire.JobRunning {
		t.Errorf("b is %s: %s", r.State, r.Reason)
	}
}

// Wishes that can not be fulfilled get one line that says why.
func TestRefusals(t *testing.T) {
	w := calmWorld(t, 5, 300)
	w.submit("huge", 3)
	w.machine.ownDomain.config.Budget, w.config.Budget = 0, 0
	w.submit("a", endless)
	w.submit("a", endless)
	w.step(Input{Request: &wire.Request{Verb: wire.Stop, Job: "nobody"}})
	var got []string
	for _, a := range w.answers {
		got = append(got, a.Error)
	}
	for i, want := range []string{"job huge cannot run here, even alone: it needs ", "", "there is a job a: ",
		"there is no job nobody "} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) || (want == "") != (got[i] == "") ||
			strings.Contains(got[i], "\n") {
			t.Errorf("answer %d of %q, want %q", i, got, want)
		}
	}
	if n := fmt.Sprint(len(w.machine.Records())); n != "1" {
		t.Errorf("%s jobs", n)
	}
}
