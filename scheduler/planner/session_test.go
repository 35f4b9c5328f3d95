package planner

import (
	"errors"
	"testing"
	"time"

	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models"
	"tensile/models/task"
	"tensile/scheduler"
)

// sessionOf is a session for two copies of a network on a simulated device.
func sessionOf(t *testing.T, from *Sources) *Session {
	t.Helper()
	g, err := models.Build("lenet", models.Config{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	s, err := from.Describe(sim.New(facts, sim.Options{})).Session([]task.Task{{Name: "lenet.1", Graph: g},
		{Name: "lenet.2", Graph: g}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A budget in percent is of what the jobs need without a plan. Jobs that fit side by side have an arena each; in less
// memory the session takes whichever way is faster, and where one way finds no plan the other.
func TestSession(t *testing.T) {
	s := sessionOf(t, new(Sources))
	s.Choose = true
	s.Device.Page = 64 * graph.KiB
	live, err := s.Live(t.Context())
	if err != nil || live == 0 {
		t.Fatal(live, err)
	}
	for _, percent := range []float64{200, 70} {
		if s.Budget, err = s.Percent(t.Context(), percent); err != nil || s.Budget != live*graph.Bytes(percent)/100 {
			t.Fatalf("%v %% are %d of %d: %v", percent, s.Budget, live, err)
		}
		if err := s.Plan(t.Context()); err != nil {
			t.Fatal(err)
		}
		if percent == 200 && s.Device.Gates {
			t.Error("jobs that fit side by side share memory")
		}
		if s.Planned.Least > s.Budget {
			t.Errorf("plans need %d of %d", s.Planned.Least, s.Budget)
		}
	}
	s.Budget = s.Device.Page
	err = s.Plan(t.Context())
	if over, ok := errors.AsType[*scheduler.OverBudgetError](err); !ok || over.Need <= s.Budget {
		t.Errorf("in a page: %v", err)
	}
	overhead := 0.02
	s.Budget, s.Overhead = 0, &overhead
	if err := s.Plan(t.Context()); err != nil || s.Budget == 0 || s.Budget > live || s.Request.Budget != s.Budget {
		t.Errorf("the least memory is %d of %d: %v", s.Budget, live, err)
	}
}

// Latencies that were measured replace predicted ones, in plans and in what the device's profile says from then on.
func TestRemeasure(t *testing.T) {
	var from Sources
	s := sessionOf(t, &from)
	if err := s.Plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	ops := len(s.Tasks[0].Graph.Ops)
	err := s.Remeasure(t.Context(), &from, func(int, Profile) []time.Duration { return nil })
	if err == nil {
		t.Error("nothing was measured, and plans were made")
	}
	if err = s.Remeasure(t.Context(), &from, func(int, Profile) []time.Duration {
		took := make([]time.Duration, ops)
		for op := range took {
			took[op] = time.Millisecond
		}
		return took
	}); err != nil {
		t.Fatal(err)
	}
	profile, err := s.Device.Profile(s.Tasks[0].Graph)
	if err != nil || profile.Latency[0] <= 0 || profile.Latency[0] > time.Millisecond {
		t.Errorf("an op takes %v alone, measured beside another job as 1ms: %v", profile.Latency[0], err)
	}
	if got := s.Planned.Jobs[0].Unplanned; got < time.Duration(ops)*time.Millisecond*99/100 {
		t.Errorf("%d ops of 1ms take %v", ops, got)
	}
}
