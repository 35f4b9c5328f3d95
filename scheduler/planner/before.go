package planner

import (
	"context"
	"time"

	"tensile/graph"
	"tensile/plan"
	"tensile/scheduler"
)

// Before returns what a job has on the device during each op without the plan that it has, with the scratch of the
// plan's variants. Its error is that of a ctx that is done.
func Before(ctx context.Context, g *graph.Graph, p *plan.Plan) ([]graph.Bytes, error) {
	made := Profile{Latency: make([]time.Duration, len(g.Ops))}
	scratch := make([]graph.Bytes, len(g.Ops))
	for slot, step := range p.Steps {
		if scratch[step.Op] = step.Scratch; len(p.Made) > 0 {
			made.Latency[step.Op] = p.Made[slot]
		}
	}
	made.Variants = scheduler.OneVariant(scratch)
	return Unplanned(ctx, Device{Align: 1}.Request(made.Job(p.Job, 1, g)), 0)
}
