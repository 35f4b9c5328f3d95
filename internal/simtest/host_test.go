package simtest

import (
	"fmt"

	"tensile/graph"
	"tensile/plan/proof"
)

// given records the host memory of a program that a job gets.
func (p *process) given(job string, proven proof.Proven) {
	c := proven.Program()
	p.loads[fmt.Sprint(job, " ", c.Plan.Epoch)] = c.Host
}

// checkHost holds that jobs have no more on the host than they claim, nor claim more than there is.
func (s *site) checkHost() {
	w := s.w
	w.t.Helper()
	var claims, hosts graph.Bytes
	for _, r := range w.controller.Records() {
		if r.On == s.on() {
			claims += r.Host
		}
		for _, h := range r.Held {
			if h.On == s.on() {
				claims += h.Host
			}
		}
	}
	for _, p := range w.processes {
		for job, host := range p.hosts {
			if p.site == s && !w.records[job].State.Over() { // they go as soon as its executor learns of its end
				hosts += host
			}
		}
	}
	if budget := s.hostMemory(); budget > 0 && (hosts > max(budget, claims) || claims > max(budget, s.onHost)) {
		w.tell()
		w.t.Fatalf("%s on the host, claims of %s and %s a moment ago, the budget is %s", hosts, claims, s.onHost,
			budget)
	}
	s.onHost = claims
}
