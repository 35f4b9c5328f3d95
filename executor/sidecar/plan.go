package sidecar

import (
	"cmp"
	"context"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/external"
	"tensile/peak"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// Make plans what an errand asks for, proves the plan, and writes it as the script takes it. It ends early once ctx is
// done.
func Make(ctx context.Context, e *Errand) Planned {
	made := Planned{Number: e.Number, Budget: e.Budget}
	out, in := link(e.Device.Out), link(e.Device.In)
	p, err := planner.Plan(ctx, scheduler.Request{Policy: "tensile", Budget: e.Budget, Out: out, In: in,
		Align: align(e.Device.Kind), Jobs: []scheduler.Job{{Name: e.Graph.Name, Epoch: 1, Graph: e.Graph,
			Latency: e.Latency, Held: e.Held, Least: e.Device.Least}}})
	if err != nil {
		made.Err = err
		return made
	}
	made.Lines = external.Compile(e.Graph, p.Jobs[0].Plan)
	made.Lines.Bytes = peak.Of(e.Graph, p.Jobs[0].Plan).Peak + e.Held
	for _, s := range p.Jobs[0].Plan.Steps {
		made.Steps = append(made.Steps, s.Op)
	}
	return made
}

// align is that of PyTorch's allocators.
func align(device string) graph.Bytes {
	if device == "cuda" {
		return 512
	}
	return 64
}

// link is a link of some bytes a second; 0: of a PCIe 3.0 slot.
func link[N ~int64](rate N) cost.Link {
	const pcie = 12_000_000_000
	return cost.Link{Rate: cost.BytesPerSecond(cmp.Or(rate, pcie))}
}
