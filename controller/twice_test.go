package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tensile/controller/recovery"
	"tensile/wire"
)

// A second process with the credentials of an executor that lives is refused, with where the first one runs, and the
// job of the first goes on. The machine waits for a word of the first: if that has ended, the second takes its place.
func TestSameCredentials(t *testing.T) {
	for _, lives := range []bool{true, false} {
		w := calmWorld(t, 1, 0)
		since := time.Date(2026, 3, 1, 12, 1, 0, 0, time.Local)
		first := &fakeExecutor{name: "lab", life: "1", host: "here, process 7", since: since.UnixNano()}
		w.executors["lab"] = first
		w.tell(first)
		w.run(1)
		w.submit("a", endless)
		w.run(4)
		if r := w.recordOf("a"); r.Executor != "lab" || r.State != wire.JobRunning {
			t.Fatalf("job a is %s at executor %q", r.State, r.Executor)
		}
		if o := w.orders["lab"]; o.Life != "1" {
			t.Errorf("orders with a job are for life %q, want the first process alone", o.Life)
		}
		second := func(number int64) {
			w.step(Input{Status: &wire.Status{Executor: "lab", Life: "2", Number: number, Device: "model",
				Host: "there, process 8", Since: since.Add(time.Hour).UnixNano()}})
		}
		second(1)
		second(2)
		if r := w.recordOf("a"); r.State != wire.JobRunning || w.orders["lab"].Refused != nil {
			t.Fatalf("job a is %s: %s; orders %+v", r.State, r.Reason, w.orders["lab"])
		}
		if w.speaks("lab", "2") || !w.speaks("lab", "1") {
			t.Error("the second process speaks for the executor while the first may live")
		}
		if !lives {
			w.end(first, "its executor has not been heard of for 16s")
			w.run(1)
			second(3)
			w.run(1)
			if r := w.recordOf("a"); r.State != wire.JobFailed || !w.speaks("lab", "2") ||
				w.orders["lab"].Refused != nil {
				t.Errorf("after the first has gone job a is %s, orders %+v", r.State, w.orders["lab"])
			}
			continue
		}
		w.tell(first)
		w.run(1)
		want := wire.Refusal{Life: "2", Reason: "lab runs already on here, process 7 since 12:01"}
		if o := w.orders["lab"]; o.Refused == nil || *o.Refused != want || o.Life != "1" || len(o.Jobs) != 1 {
			t.Errorf("orders %+v, want the first to go on and %+v", o, want)
		}
		number := w.orders["lab"].Number
		w.orders = map[string]wire.Orders{} // they were lost
		second(3)
		if o := w.orders["lab"]; o.Refused == nil || o.Number != number {
			t.Errorf("orders %+v to a second process that has not heard them", o)
		}
		before := w.recordOf("a").Iteration
		w.run(3)
		if r := w.recordOf("a"); r.State != wire.JobRunning || r.Iteration <= before {
			t.Errorf("job a is %s after %d iterations", r.State, r.Iteration)
		}
		w.machine.ownDomain.config.Alpha = 0.3
		w.restart()
		second(4)
		if !w.speaks("lab", "1") {
			t.Error("after a restart of the controller the first process is forgotten")
		}
	}
}

// A job that cannot begin goes to another executor, a bounded number of times, and then fails with the reason.
func TestCannotBegin(t *testing.T) {
	w := calmWorld(t, 2, 0)
	for _, name := range []string{"lab1", "lab2", "lab3", "lab4"} {
		w.executors[name] = &fakeExecutor{name: name, life: name, broken: "data folder /d does not exist"}
		w.tell(w.executors[name])
	}
	w.run(1)
	w.submit("a", endless)
	w.run(9)
	r := w.recordOf("a")
	if r.State != wire.JobFailed || r.Reason != "data folder /d does not exist" ||
		r.Incarnation != 1+recovery.MaxMoves ||
		r.Iteration != 0 {
		t.Errorf("job a is %s after %d executors: %s", r.State, r.Incarnation, r.Reason)
	}
	tried := 0
	for _, line := range w.lines {
		if strings.HasPrefix(line, "job a had not begun: data folder /d does not exist; ") {
			tried++
		}
	}
	if tried != 1+recovery.MaxMoves-1 {
		t.Errorf("lines %q", w.lines)
	}

	// One that has what the others lack is found.
	w.executors["lab3"].broken = ""
	w.submit("b", endless)
	w.run(9)
	if r := w.recordOf("b"); r.State != wire.JobRunning || r.Executor != "lab3" {
		t.Errorf("job b is %s at %s: %s", r.State, r.Executor, r.Reason)
	}

	// Processes that end before the job begins.
	w = calmWorld(t, 2, 0)
	w.submit("c", endless)
	for i := 1; i <= 1+recovery.MaxMoves; i++ {
		name := fmt.Sprintf("x%d", 1)
		if i > 1 {
			name += fmt.Sprint(".", i)
		}
		if r := w.recordOf("c"); r.Executor != name || r.State != wire.JobStarting {
			t.Fatalf("job c is %s at %s, want %s", r.State, r.Executor, name)
		}
		w.end(w.executors[name], "signal: killed")
		w.mail = w.mail[len(w.mail)-1:] // it said nothing
		w.deliver()
	}
	if r := w.recordOf("c"); r.State != wire.JobFailed || r.Reason != "signal: killed" {
		t.Errorf("job c is %s: %s", r.State, r.Reason)
	}
}

// speaks reports whether a process is the one that an executor is known to be.
func (w *world) speaks(executor, life string) bool {
	x := w.machine.executors[executor]
	return x != nil && !x.IsGone() && x.Life == life
}
