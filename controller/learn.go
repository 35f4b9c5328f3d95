package controller

import (
	"slices"
	"time"

	"tensile/graph/cost"
	"tensile/predictor/correct"
	"tensile/wire"
)

// lessons is how many iterations of a job, after the first, teach by what profiles are wrong on the device.
const lessons = 8

// alone are steps that a job has reported, as if it had run alone: without what the other jobs that train have slowed
// it down. Latencies are kept so, and a request has what they become beside the jobs that it is for.
func (d *domain) alone(j *job, steps []time.Duration) []time.Duration {
	training := slices.DeleteFunc(d.active(), func(j *job) bool { return j.record.State != wire.Training })
	if !slices.Equal(training, d.training) {
		d.training = training
		uses := make([]cost.Use, len(training))
		for i, j := range training {
			uses[i] = d.config.Sharing.Use(j.latency)
		}
		for i, stretch := range d.config.Sharing.Slowdowns(uses) {
			training[i].stretch = stretch
		}
	}
	if j.record.State != wire.Training || j.stretch == 1 {
		return steps
	}
	alone := make([]time.Duration, len(steps))
	for i, took := range steps {
		alone[i] = d.config.Sharing.Uncontended(took, j.stretch)
	}
	return alone
}

// first returns what the steps of a plan would have taken in the first variants of their ops, of which all latencies
// are.
func (j *job) first(l *layout, steps []time.Duration) []time.Duration {
	all := make([]time.Duration, len(steps))
	for i, s := range l.Wire.Plan.Steps {
		all[i] = j.profile.First(s, steps[i])
	}
	return all
}

// learn compares the steps of an iteration, as if the job had run alone, with its profile, and moves the line by which
// profiles of coming jobs are corrected.
func (d *domain) learn(j *job, l *layout, iteration int, steps []time.Duration) {
	if iteration < 1 || iteration > lessons {
		return
	}
	reports := make([]correct.Report, len(steps))
	for i, s := range l.Wire.Plan.Steps {
		p := &reports[i]
		p.Class, p.Predicted, p.Measured = string(j.graph.Ops[s.Op].Kind), j.profile.Latency[s.Op], steps[i]
		if j.profile.Slack != nil {
			p.P95 = p.Predicted + j.profile.Slack[s.Op]
		}
	}
	line := d.corrects()
	d.line = line.MoveToward(correct.Fit(reports), d.config.Alpha)
}

// corrects is the line by which profiles of coming jobs are corrected: as long as no job has taught one on the device,
// that of the first other of equal identity on which one has. Without, a device on which nothing was measured yet would
// seem faster or slower than an equal one, and jobs would move there in vain.
func (d *domain) corrects() correct.Line {
	if d.line.Factor == 0 {
		for _, o := range d.m.domains {
			if o.line.Factor > 0 && o.config.Device == d.config.Device {
				return o.line
			}
		}
	}
	return d.line
}

// expect gives a job that comes or comes back the latencies that were learnt of its ops, and of the others those of its
// profile, corrected by what other jobs have taught.
func (d *domain) expect(j *job) {
	if j.record.Spec.Script { // which has measured them itself
		j.latency, j.spare, j.learnt = slices.Clone(j.profile.Latency), nil, true
		return
	}
	j.latency, j.spare, j.learnt = expected(j.graph, j.profile, d.corrects(), d.learnt.find)
}
