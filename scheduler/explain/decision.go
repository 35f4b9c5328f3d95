package explain

import (
	"fmt"

	"tensile/graph"
	"tensile/plan"
	"tensile/scheduler"
)

// Decision is what a planner has decided about one gap between two uses of a storage, in the names of its graph.
type Decision struct {
	Storage   string      `json:"storage"`
	Bytes     graph.Bytes `json:"bytes"`
	Kind      string      `json:"kind"`
	From      string      `json:"from"` // the op before the gap
	To        string      `json:"to"`   // the op after it
	FreeSlots int         `json:"free_slots"`
	Away      float64     `json:"away_ms"`
	Freed     float64     `json:"freed_byte_ms"` // bytes times the time that they are away
	Cost      float64     `json:"cost_ms"`
	Reason    string      `json:"reason"`
}

// DecisionOf is a decision about a plan of a graph.
func DecisionOf(g *graph.Graph, p *plan.Plan, d scheduler.Decision) Decision {
	op := func(slot int) string {
		switch n := len(p.Steps); {
		case slot < 0:
			return "the loader"
		case slot >= n:
			return g.Ops[p.Steps[slot-n].Op].Name + " of the next iteration"
		default:
			return g.Ops[p.Steps[slot].Op].Name
		}
	}
	bytes, away := g.Storages[d.Storage].Bytes, float64(d.Away)/1e6
	return Decision{Storage: g.Storages[d.Storage].Name, Bytes: bytes, Kind: d.Kind.String(), From: op(d.From),
		To: op(d.To), FreeSlots: d.Freed, Away: away, Freed: float64(bytes) * away, Cost: float64(d.Cost) / 1e6,
		Reason: d.Reason}
}

// String is the decision in one line.
func (d Decision) String() string {
	if d.Kind == scheduler.Keep.String() {
		return fmt.Sprintf("keep %s (%s) at the peak: %s", d.Storage, d.Bytes, d.Reason)
	}
	return fmt.Sprintf("%s %s (%s) from %s to %s: away for %d steps, %.3f ms; costs %.3f ms; %s", d.Kind, d.Storage,
		d.Bytes, d.From, d.To, d.FreeSlots, d.Away, d.Cost, d.Reason)
}
