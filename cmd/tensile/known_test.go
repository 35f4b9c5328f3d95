package main

import (
	"testing"

	"tensile/controller/local"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// The controller of a run asks for the very plans that were made for the head line, so that they are made once. (Where
// a later job has a higher priority it asks for them in another order, and plans.)
func TestPlansAreKnown(t *testing.T) {
	f := runFlags{iterations: 3}
	f.device, f.link, f.policy, f.budget, f.priority = "sim:v100", "none", "tensile", "80%", "4,1"
	f.batch, f.image, f.optimizer, f.noReplan = 2, 12, "sgd", true
	s, err := open(t.Context(), []string{"lenet:2", "mlp"}, &f.workloadFlags, &f.planFlags)
	if err != nil {
		t.Fatal(err)
	}
	defer s.device.Close()
	run := &training{session: s, flags: &f, policy: f.policy, budget: s.Request.Budget, planned: s.Planned,
		request: s.Request}
	asked, known := 0, 0
	p := run.planner()
	of := p.Known
	p.Known = func(r scheduler.Request) *planner.Planned {
		asked++
		found := of(r)
		if found != nil {
			known++
		}
		return found
	}
	_, err = local.Train(t.Context(), s.device, run.device(), s.Tasks, local.Options{Config: run.config(),
		Iterations: f.iterations, Priorities: s.priorities, Plan: p.Plan})
	if err != nil {
		t.Fatal(err)
	}
	if asked != 1 || known != 1 {
		t.Errorf("plans were asked for %d times, and known %d times", asked, known)
	}
}
