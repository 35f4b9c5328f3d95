package controller

import (
	"slices"
	"time"

	"tensile/controller/plans"
	"tensile/graph/cost"
	"tensile/predictor/correct"
	"tensile/wire"
)

// teachingIterations is how many iterations of a job, after the first, teach by how much profiles are wrong on the
// device.
const teachingIterations = 8

// withoutSlowdown returns the times of steps that a job has reported as if it had run alone. Latencies are kept in this
// form; a plan request has what they become beside the jobs of the request.
func (d *domain) withoutSlowdown(j *job, steps []time.Duration) []time.Duration {
	training := slices.DeleteFunc(d.activeJobs(), func(j *job) bool { return j.record.State != wire.JobRunning })
	if !slices.Equal(training, d.sharers) {
		d.sharers = training
		uses := make([]cost.Use, len(training))
		for i, j := range training {
			uses[i] = d.config.Sharing.Use(j.latency)
		}
		for i, stretch := range d.config.Sharing.Slowdowns(uses) {
			training[i].slowdown = stretch
		}
	}
	if j.record.State != wire.JobRunning || j.slowdown == 1 {
		return steps
	}
	alone := make([]time.Duration, len(steps))
	for i, took := range steps {
		alone[i] = d.config.Sharing.Uncontended(took, j.slowdown)
	}
	return alone
}

// firstVariantTimes returns what the steps of a plan would have taken in the first variants of their ops, to which all
// latencies refer.
func (j *job) firstVariantTimes(l *layout, steps []time.Duration) []time.Duration {
	all := make([]time.Duration, len(steps))
	for i, s := range l.Wire.Plan.Steps {
		all[i] = j.profile.FirstVariantTime(s, steps[i])
	}
	return all
}

// correctLine compares the steps of an iteration, as if the job had run alone, with the job's profile, and moves the
// line that corrects the profiles of later jobs.
func (d *domain) correctLine(j *job, l *layout, iteration int, steps []time.Duration) {
	if iteration < 1 || iteration > teachingIterations {
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
	line := d.lineOrEqual()
	d.correction = line.MoveToward(correct.Fit(reports), d.config.Alpha)
}

// lineOrEqual is the line that corrects the profiles of later jobs. As long as no job has taught one on the device, it
// is that of the first other device of equal identity which has one. Otherwise a device on which nothing was measured
// yet would seem faster or slower than an equal one, and jobs would migrate there in vain.
func (d *domain) lineOrEqual() correct.Line {
	if d.correction.Factor == 0 {
		for _, o := range d.m.domains {
			if o.correction.Factor > 0 && o.config.Device == d.config.Device {
				return o.correction
			}
		}
	}
	return d.correction
}

// initLatencies gives a job that comes or comes back the latencies that were learnt of its ops, and the other ops those
// of its profile, corrected by what other jobs have taught.
func (d *domain) initLatencies(j *job) {
	if j.record.Spec.Script { // a script has measured its latencies itself
		j.latency, j.latencySlack, j.measured = slices.Clone(j.profile.Latency), nil, true
		return
	}
	j.latency, j.latencySlack, j.measured = plans.ExpectedLatencies(j.graph, j.profile, d.lineOrEqual(),
		d.learnt.LatencyOf)
}
