package peak

import (
	"tensile/graph"
	"tensile/plan"
)

// Footprint is the memory use of one job over the slots of its iteration.
type Footprint struct {
	Slots []graph.Bytes // per slot: bytes of all residencies, and the step's scratch
	Peak  graph.Bytes   // the largest of Slots (MP of TENSILE, Equation 2)
	At    int           // the first slot with that footprint
}

// Of returns the footprint of a plan that Validate accepts. It takes time linear in steps and residencies.
func Of(g *graph.Graph, p *plan.Plan) Footprint {
	return OfStays(g, p, plan.StaysOf(g, p))
}

// OfStays is Of for a caller that has the residencies at hand.
func OfStays(g *graph.Graph, p *plan.Plan, stays *plan.Stays) Footprint {
	change := make([]graph.Bytes, len(p.Steps)+1)
	for _, r := range stays.Residencies {
		for _, span := range r.Spans {
			change[span.From] += g.Storages[r.Storage].Bytes
			change[span.To] -= g.Storages[r.Storage].Bytes
		}
	}
	f := Footprint{Slots: make([]graph.Bytes, len(p.Steps))}
	var now graph.Bytes
	for slot, step := range p.Steps {
		now += change[slot]
		f.Slots[slot] = now + step.Scratch
		if f.Slots[slot] > f.Peak {
			f.Peak, f.At = f.Slots[slot], slot
		}
	}
	return f
}

// Holders returns the storages on the device in a slot, in the order of the residencies (MPTensor of Algorithm 1).
func Holders(stays *plan.Stays, slot int) []graph.StorageID {
	var holders []graph.StorageID
	for _, r := range stays.Residencies {
		for _, span := range r.Spans {
			if span.From <= slot && slot < span.To {
				holders = append(holders, r.Storage)
			}
		}
	}
	return holders
}
