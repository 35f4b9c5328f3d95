package simtest

import (
	"fmt"

	"tensile/graph"
	"tensile/program"
)

// given takes down what a program that a job is given takes of the host.
func (p *process) given(job string, proven program.Proven) {
	c := proven.Program()
	p.loads[fmt.Sprint(job, " ", c.Plan.Epoch)] = c.Host
}

// checkHost holds that jobs have no more on the host than they claim, nor claim more than there is.
func (w *world) checkHost() {
	w.t.Helper()
	var claims, hosts graph.Bytes
	for _, r := range w.controller.Records() {
		claims += r.Host
		for _, h := range r.Held {
			claims += h.Host
		}
	}
	for _, p := range w.processes {
		for job, host := range p.hosts {
			if !w.records[job].State.Over() { // its host slots go as soon as its executor hears of its end
				hosts += host
			}
		}
	}
	if budget := w.config.HostMemory; budget > 0 && (hosts > max(budget, claims) || claims > max(budget, w.onHost)) {
		w.tell()
		w.t.Fatalf("%s on the host, claims of %s and %s a moment ago, the budget is %s", hosts, claims, w.onHost,
			budget)
	}
	w.onHost = claims
}
