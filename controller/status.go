package controller

import (
	"fmt"
	"slices"

	"tensile/predictor/correct"
	"tensile/wire"
)

// status compares what an executor does with what it is to do.
func (m *Machine) status(s *wire.Status) {
	x := m.executors[s.Executor]
	if x == nil || x.gone {
		if x = m.join(s); x == nil {
			return
		}
	}
	switch {
	case x.life == s.Life && s.Number <= x.seen:
		return // older than what is known
	case x.joined && x.life != s.Life:
		m.lose(x, "its executor was started anew, which lost what it had learnt")
	}
	x.life, x.seen, x.joined = s.Life, s.Number, true
	for _, js := range s.Jobs {
		if j := m.find(js.Name); j != nil && j.record.Spec.ID == js.ID && j.record.Executor == x.name && !j.record.Phase.Over() {
			m.jobStatus(j, js)
		}
	}
	if s.Orders < x.orders.Number {
		again := x.orders
		m.say(Output{Orders: &again}) // they may have been lost
	}
}

// join takes an executor in that was not started from here, or that was given up too early.
func (m *Machine) join(s *wire.Status) *executor {
	x := &executor{name: s.Executor, own: owned(s.Executor), orders: m.before(s.Executor)}
	if old := m.executors[s.Executor]; old != nil {
		x.orders = old.orders
	}
	x.orders.Number = max(x.orders.Number, s.Orders)
	if s.Device != m.config.Device {
		m.log("executor %s is sent away: its device is %s, jobs here are planned for %s", s.Executor, s.Device, m.config.Device)
		m.say(Output{Orders: &wire.Orders{Executor: s.Executor, Life: s.Life, Number: x.orders.Number + 1, Jobs: []wire.Order{}, Leave: true}})
		return nil
	}
	m.executors[s.Executor], m.changed = x, true
	m.log("executor %s has joined", s.Executor)
	return x
}

// jobStatus takes over what an executor says of a job.
func (m *Machine) jobStatus(j *job, s wire.JobStatus) {
	j.record.Iteration = max(j.record.Iteration, s.Iteration)
	if s.Epoch > j.record.Applied && s.Epoch <= j.record.Granted { // an epoch that was never granted is a mistake, and no reason to forget layouts
		j.applied(s.Epoch)
		m.changed = true
	}
	switch s.State {
	case wire.Running:
		if j.record.Phase == wire.Starting {
			j.record.Phase, j.record.Why, m.changed = wire.Training, "", true
		}
		if s.Error != "" && s.Error != j.record.Why {
			j.record.Why, m.changed = s.Error, true
			m.log("job %s: %s", j.record.Spec.Name, s.Error)
		}
	case wire.Finished:
		j.record.Result = s.Result
		m.over(j, wire.Done, "")
	case wire.Stopped:
		j.record.Result = s.Result
		m.over(j, wire.Halted, "")
	case wire.Failed:
		m.over(j, wire.Broken, s.Error)
	}
}

// gone takes an executor out. Its jobs have failed, and what they had is free.
func (m *Machine) gone(g *Gone) {
	x := m.executors[g.Executor]
	if x == nil || x.gone {
		return
	}
	x.gone, m.changed = true, true
	m.lose(x, g.Why)
	m.say(Output{Forget: x.name})
}

// lose fails the jobs of an executor that it can not have any more. One that has not begun gets another executor, once.
func (m *Machine) lose(x *executor, why string) {
	for _, j := range m.active() {
		switch {
		case j.record.Executor != x.name || j.record.Phase.Over():
		case x.gone && j.record.Phase == wire.Starting && j.record.Applied == 0 && j.record.Starts < 2:
			j.record.Executor = ""
			for _, l := range j.layouts {
				l.delivered = false
			}
			m.log("job %s had not begun: %s; another executor is started for it", j.record.Spec.Name, why)
		default:
			m.over(j, wire.Broken, why)
		}
	}
}

// report corrects a job's latencies by what was measured, and has all jobs planned again when they have changed by more
// than the threshold since they were planned last (TENSILE, section IV-E: |s'-s|/s).
func (m *Machine) report(r *wire.Report) {
	j := m.find(r.Job)
	if j == nil || j.record.Executor != r.Executor || j.record.Phase.Over() {
		return
	}
	at := slices.IndexFunc(j.layouts, func(l *layout) bool { return l.epoch() == r.Epoch })
	if at < 0 || len(r.Steps) != len(j.layouts[at].wire.Plan.Steps) {
		return // of a plan that is over
	}
	for i, s := range j.layouts[at].wire.Plan.Steps {
		j.latency[s.Op] = correct.Latency(j.latency[s.Op], r.Steps[i], m.config.Alpha, r.Iteration == 0)
	}
	j.learnt = true
	j.record.Iteration = max(j.record.Iteration, r.Iteration+1)
	if j.reports++; j.reports < m.config.Settle || r.Epoch != j.record.Epoch {
		return
	}
	if rate := correct.Drift(j.latencySum(), j.assumed); rate > m.config.Threshold {
		m.improve(fmt.Sprintf("the latency of job %s has changed by %.0f %%", r.Job, 100*rate))
	}
}
