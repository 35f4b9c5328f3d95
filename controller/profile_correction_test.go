package controller

import (
	"math"
	"testing"

	"tensile/graph"
	"tensile/scheduler/planner"
)

// What one job's reports show of the device, the next job's first plan is made with; a job that is alone from the start
// plans with its profile.
func TestJobsTeachTheNext(t *testing.T) {
	w := calmWorld(t, 1, 0)
	w.profile = func(g *graph.Graph) (planner.Profile, error) {
		p, err := profile(g)
		for op := range p.Latency {
			p.Slack = append(p.Slack, p.Latency[op]/2)
		}
		return p, err
	}
	w.machine = NewMachine(w.config)
	w.slow = 3
	w.submit("first", endless)
	first := w.machine.findJob("first")
	for op, latency := range first.latency {
		if predicted := first.profile.Latency[op]; latency != predicted || first.slack()[op] != predicted/2 {
			t.Fatalf("op %d of the first job takes %v, %v more at most; its profile says %v and half of that", op,
				latency, first.slack()[op], predicted)
		}
	}
	w.run(40)
	w.submit("second", endless)
	second := w.machine.findJob("second")
	for op, latency := range second.latency {
		predicted := second.profile.Latency[op]
		if off := float64(latency) / float64(predicted) / w.slow; math.Abs(off-1) > 0.25 {
			t.Errorf("op %d of the second job is taken to take %v, %v were predicted and ops take %v times as long", op,
				latency, predicted, w.slow)
		}
	}
}
