package controller

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"tensile/graph/text"
	"tensile/wire"
)

// request does what a user asks for, and answers.
func (m *Machine) request(from int64, by string, q *wire.Request, to *Submission) {
	if what := administrative[q.Verb]; what != "" && by != "" {
		m.reply(from, fmt.Errorf("%s is no administrator, who alone may %s", by, what))
		return
	}
	switch q.Verb {
	case wire.SetBudget:
		m.reply(from, m.setBudget(q))
		return
	case wire.SetShare:
		m.reply(from, m.setShare(q))
		return
	case wire.Forget:
		m.reply(from, m.forget(q.Executor))
		return
	case wire.Drain:
		moved, err := m.drain(q)
		m.reply(from, err, moved...)
		return
	}
	j := m.lookUp(q.Job)
	if j == nil {
		m.reply(from, fmt.Errorf("there is no job %s that runs or waits: tensile jobs lists them", q.Job))
		return
	}
	if q.Verb == wire.Explain { // which everybody may who can list the jobs
		m.explain(from, j, q)
		return
	}
	if err := m.denied(by, j.record.Spec.Name); err != nil {
		m.reply(from, err)
		return
	}
	if j.record.State.Over() {
		m.reply(from, fmt.Errorf("job %s is %s already", q.Job, j.record.State))
		return
	}
	if j.batch != nil {
		m.take(j.batch)
	}
	var err error
	all := m.all(j) // of which some may be over at once
	switch q.Verb {
	case wire.Stop:
		m.stop(j)
	case wire.Park:
		err = m.park(j, q.Place)
	case wire.Resume:
		for _, o := range m.all(j) {
			err = cmp.Or(err, m.resume(o))
		}
	case wire.TraceJob:
		for _, o := range m.all(j) {
			o.trace = wire.Trace{Number: max(o.trace.Number+1, int64(m.now/time.Microsecond)), Iterations: q.Iterations}
		}
	case wire.SetGraph:
		err = m.setGraph(j, q, to)
	case wire.SetWeight:
		for _, o := range m.all(j) {
			o.record.Spec.Priority = q.Priority
			if m.admit(o.domain); o.domain != nil {
				o.domain.want.better = because(Reweighed, "the priority of job %s is %d", q.Job, q.Priority)
			}
		}
	}
	if m.changed = true; err != nil {
		m.reply(from, err)
		return
	}
	m.reply(from, nil, all...)
}

// stop ends a job: one that no executor has at once, another after the iterations in flight. Siblings end together.
func (m *Machine) stop(j *job) {
	g := m.all(j)
	begun := func(o *job) bool { return o.placed() && (!o.replica() || !o.claim().none() || o.hostClaim() > 0) }
	if !slices.ContainsFunc(g, begun) {
		j.record.Reason, j.record.Need = "", 0
		m.over(j, wire.JobStopped, "", nil) // and with it its siblings
		return
	}
	if s := j.record.State; j.replica() && s != wire.JobStopping && s != wire.JobParking && !j.claim().none() {
		m.chooseAt(g, false)
	}
	for _, o := range g {
		o.record.State, o.record.Reason, o.record.Need, o.record.Target = wire.JobStopping, "", 0, ""
	}
}

// setBudget has all jobs planned for again, within another budget.
func (m *Machine) setBudget(q *wire.Request) error {
	d := m.own
	switch brought := m.device(q.Device); {
	case brought != nil && brought != d:
		return fmt.Errorf("the budget of device %s is that with which its executor was started: end that, and start "+
			"it with another --budget", q.Device)
	case d == nil:
		return errors.New("this controller has no device of its own: an executor is started with the --budget of its " +
			"device")
	case q.Device != "" && brought == nil && q.Device != d.config.Device:
		return fmt.Errorf("this controller plans for %s, not for %s", d.config.Device, q.Device)
	}
	d.config.Budget, m.changed = q.Budget, true
	m.settings = &wire.Settings{Device: d.config.Device, Budget: q.Budget}
	m.say(Output{Set: m.settings})
	d.rebudget()
	m.admit(d)
	return nil
}

// forget takes the processes of an executor for dead, which an administrator knows to have ended. One that is heard of
// is not.
func (m *Machine) forget(name string) error {
	x := m.executors[name]
	lives := x != nil && !x.gone && !x.silent
	const why = "an administrator says that it has ended"
	any := m.release(name, func(life string) bool { return !lives || life != x.life }, why)
	if x != nil && !x.gone && !lives {
		m.bury(x, why)
		x.dead, any = false, true // if it is heard of again, it is told to end its jobs
	}
	switch {
	case any:
		return nil
	case lives:
		return fmt.Errorf("executor %s was heard of %v ago: it has not ended", name,
			text.Duration(m.now-x.heard))
	default:
		return fmt.Errorf("there is no executor %s, and none of that name has memory", name)
	}
}
