package simtest

import (
	"slices"

	"tensile/graph"
	"tensile/wire"
)

// checkContexts holds that, when everybody has been heard, the controller counts with all processes that have the
// device open, and that these and the arenas in them fit the budget.
func (w *world) checkContexts() {
	w.t.Helper()
	open, arenas := 1, graph.Bytes(0) // the controller
	for _, p := range w.processes {
		if p.site != w.own {
			continue
		}
		refusal := w.orders[p.name].Refused
		if refusal != nil && refusal.Life == p.life || (w.doubled[p.name] || w.leaders != nil) && !w.heard(p) {
			// It is refused, has to wait until the other of its name is given up, or was started by a leader before.
			continue
		}
		open++
		for _, a := range p.arenas {
			arenas += a
		}
	}
	if w.own.lease != nil { // arenas share what is claimed; scripts may take more than they were granted
		arenas, _ = w.own.together(slices.DeleteFunc(w.controller.Records(), func(r wire.Record) bool {
			return r.Spec.Script
		}))
	}
	known := w.controller.Contexts()
	if budget := w.own.budget(); known.Each > 0 && (open > known.Processes ||
		budget > 0 && w.own.taken <= budget && arenas+graph.Bytes(open)*known.Each > budget) {
		w.tell()
		w.t.Fatalf("%d processes have the device open, the controller knows of %s; arenas of %s, the budget is %s",
			open, known, arenas, budget)
	}
}

// heard reports whether the controller orders something of this very process.
func (w *world) heard(p *process) bool { return w.orders[p.name].Life == p.life }
