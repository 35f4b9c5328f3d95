package simtest

import (
	"fmt"

	"tensile/controller"
	"tensile/graph"
	"tensile/models/graphtest"
	"tensile/wire"
)

// submit submits a job with a random graph, or some together, which are taken all or none.
func (w *world) submit(iterations int) {
	n := 1
	if w.rng.IntN(4) == 0 {
		n += 1 + w.rng.IntN(2)
	}
	w.submitGraphs(w.graphsOf(n), iterations)
}

// graphsOf makes random graphs.
func (w *world) graphsOf(n int) []*graph.Graph {
	graphs := make([]*graph.Graph, n)
	for i := range graphs {
		graphs[i] = graphtest.New(w.rng, graphtest.Options{})
		if w.lines != nil && w.rng.IntN(2) == 0 {
			graphs[i] = w.replicated()
		}
	}
	return graphs
}

func (w *world) submitGraphs(graphs []*graph.Graph, iterations int) {
	var in controller.Input
	var names []string
	for _, g := range graphs {
		w.names++
		w.graphs[g.Digest()] = g
		spec := wire.Spec{Name: fmt.Sprint("job", w.names), Model: "random", Graph: g.Digest(), Seed: uint64(w.names),
			Iterations: iterations, Priority: w.rng.IntN(3), Restarts: w.rng.IntN(8), Keep: 1 + w.rng.IntN(3)}
		if w.rng.IntN(4) > 0 {
			spec.Checkpoint.Iterations = 1 + w.rng.IntN(5)
		}
		if len(w.sites) > 1 {
			w.choose(&spec, len(graphs) > 1)
		}
		for _, spec := range w.replicate(spec, g) {
			in.Submit = append(in.Submit, controller.Submission{Spec: spec, Graph: g})
			names = append(names, spec.Name)
		}
	}
	w.tenants.signs(&in)
	w.request(in, func(a wire.Answer) {
		for _, name := range names {
			if a.Error == "" {
				w.accepted[name] = true
			} else {
				w.turned[name] = true
			}
		}
	})
}

// request asks for something, and hears the answer, if there is one.
func (w *world) request(in controller.Input, hears func(wire.Answer)) {
	w.asks++
	in.From = w.asks
	w.asked[in.From] = hears
	w.step(in)
}

// ask asks for something.
func (w *world) ask() {
	q := &wire.Request{Job: fmt.Sprintf("job%d", 1+w.rng.IntN(w.names))}
	switch w.rng.IntN(6) {
	case 0:
		q.Verb, q.Place = wire.Park, wire.InMemory
	case 1:
		q.Verb, q.Place = wire.Park, wire.OnDisk
	case 2, 3:
		q.Verb = wire.Resume
	case 4:
		q.Verb, q.Priority = wire.SetWeight, 1+w.rng.IntN(5)
	case 5:
		q.Verb, q.Budget = wire.SetBudget, graph.Bytes(3_000+w.rng.IntN(40_000))
		if w.leaders == nil {
			w.config.Budget = q.Budget
		}
	}
	w.step(controller.Input{Request: q})
}

func (w *world) stop() {
	w.step(controller.Input{Request: &wire.Request{Verb: wire.Stop, Job: fmt.Sprintf("job%d", 1+w.rng.IntN(w.names))}})
}
