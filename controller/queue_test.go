package controller

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"tensile/wire"
)

// Jobs of higher priority come without end, each as soon as the last one has begun, and only one fits the budget. A job
// of the lowest priority begins all the same: when it has waited for as many minutes as the others' priority is above
// its own, and those that came before that have had their minute or their end.
func TestNobodyStarves(t *testing.T) {
	const above = 6
	for _, preempt := range []bool{false, true} {
		t.Run(fmt.Sprintf("preempt=%v", preempt), func(t *testing.T) {
			w := calmWorld(t, 5, 0)
			g := w.submitAs("measure", endless, 1)
			budget := w.newest("measure") * 5 / 4
			w = calmWorld(t, 5, budget)
			w.config.Policy, w.config.Preempt = "none-live", preempt
			w.machine = NewMachine(w.config)
			w.graphs[g.Digest()] = g
			length := 12 // iterations, of ten seconds
			if preempt {
				length = endless
			}
			submit := func(name string, priority, iterations int) {
				w.step(Input{Submit: []Submission{{Graph: g, Spec: wire.Spec{Name: name, Model: "same",
					Graph:    g.Digest(),
					Priority: priority, Iterations: iterations}}}})
			}
			submit("high0", 1+above, length)
			w.run(2)
			submit("low", 1, endless)
			const longest = (above + 5) * time.Minute
			begun, came := w.clock, 0
			for w.recordOf("low").State != wire.JobRunning {
				if waited := w.clock - begun; waited > longest {
					t.Fatalf("the job has waited for %v behind %d others: %s", waited, came, w.recordOf("low").Reason)
				}
				queued := func(j *job) bool { return j.record.State == wire.JobQueued && j.record.Spec.Name != "low" }
				if !slices.ContainsFunc(w.machine.jobs, queued) {
					came++
					submit(fmt.Sprintf("high%d", came), 1+above, length)
				}
				w.clock += 2 * time.Second
				w.step(Input{Tick: &Tick{}})
				for _, name := range slices.Sorted(maps.Keys(w.executors)) {
					if x := w.executors[name]; x != nil {
						w.work(x)
					}
				}
				for len(w.mail) > 0 {
					w.deliver()
				}
			}
			if waited := w.clock - begun; waited < above*time.Minute/2 || came < 1 {
				t.Errorf("the job has waited for %v only, behind %d others", waited, came)
			}
		})
	}
}
