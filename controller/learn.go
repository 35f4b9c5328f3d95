package controller

import (
	"tensile/predictor/correct"
	"tensile/wire"
)

// lessons is how many iterations of a job, after the first, teach by what profiles are wrong on the device.
const lessons = 8

// learn compares a report with the profile of its job, and moves the line by which profiles of coming jobs are
// corrected.
func (m *Machine) learn(j *job, l *layout, r *wire.Report) {
	if r.Iteration < 1 || r.Iteration > lessons {
		return
	}
	reports := make([]correct.Report, len(r.Steps))
	for i, s := range l.Wire.Plan.Steps {
		p := &reports[i]
		p.Class, p.Predicted, p.Measured = string(j.graph.Ops[s.Op].Kind), j.profile.Latency[s.Op], r.Steps[i]
		if j.profile.Slack != nil {
			p.P95 = p.Predicted + j.profile.Slack[s.Op]
		}
	}
	m.line = m.line.Toward(correct.Fit(reports), m.config.Alpha)
}

// expect gives a job that comes or comes back the latencies that were learnt of its ops, and of the others those of its
// profile, corrected by what other jobs have taught.
func (m *Machine) expect(j *job) {
	j.latency, j.spare, j.learnt = expected(j.graph, j.profile, m.line, m.learnt.find)
}
