package controller

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"tensile/controller/fleet"
	"tensile/graph/text"
	"tensile/wire"
)

// handleRequest does what a user asks for, and answers.
func (m *Machine) handleRequest(from int64, by string, q *wire.Request, to *Submission) {
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
		m.reply(from, m.forgetExecutor(q.Executor))
		return
	case wire.Drain:
		moved, err := m.drain(q)
		m.reply(from, err, moved...)
		return
	}
	j := m.findJobOrGang(q.Job)
	if j == nil {
		m.reply(from, fmt.Errorf("there is no job %s that runs or waits: tensile jobs lists them", q.Job))
		return
	}
	if q.Verb == wire.Explain { // everybody may who can list the jobs
		m.explain(from, j, q)
		return
	}
	if err := m.checkOwner(by, j.record.Spec.Name); err != nil {
		m.reply(from, err)
		return
	}
	if j.record.State.Over() {
		m.reply(from, fmt.Errorf("job %s is %s already", q.Job, j.record.State))
		return
	}
	if j.batch != nil {
		m.takeBatch(j.batch)
	}
	all := m.gangOrSelf(j) // some of these may be over at once
	err := m.changeJob(j, q, to)
	if m.changed = true; err != nil {
		m.reply(from, err)
		return
	}
	m.reply(from, nil, all...)
}

// changeJob does what a user asks for about a job and its peers.
func (m *Machine) changeJob(j *job, q *wire.Request, to *Submission) (err error) {
	switch q.Verb {
	case wire.Stop:
		m.stopJob(j)
	case wire.Park:
		err = m.parkJob(j, q.Place)
	case wire.Resume:
		for _, o := range m.gangOrSelf(j) {
			err = cmp.Or(err, m.resumeJob(o))
		}
	case wire.TraceJob:
		for _, o := range m.gangOrSelf(j) {
			o.trace = wire.Trace{Number: max(o.trace.Number+1, int64(m.now/time.Microsecond)), Iterations: q.Iterations}
		}
	case wire.SetGraph:
		err = m.setGraph(j, q, to)
	case wire.SetWeight:
		for _, o := range m.gangOrSelf(j) {
			o.record.Spec.Priority = q.Priority
			if m.retryAdmission(o.domain); o.domain != nil {
				o.domain.pending.replan = newReason(Reweighed, "the priority of job %s is %d", q.Job, q.Priority)
			}
		}
	}
	return err
}

// stopJob ends a job. One that no executor has ends at once, another after the iterations in flight. The replicas of a
// gang end together.
func (m *Machine) stopJob(j *job) {
	g := m.gangOrSelf(j)
	begun := func(o *job) bool {
		return o.hasExecutor() && (!o.isReplica() || !o.claim().IsZero() || o.hostClaim() > 0)
	}
	if !slices.ContainsFunc(g, begun) {
		m.endJob(j, wire.JobStopped, "", nil) // which ends its peers too
		return
	}
	if s := j.record.State; j.isReplica() && s != wire.JobStopping && s != wire.JobParking && !j.claim().IsZero() {
		m.chooseRestPoint(g, false)
	}
	for _, o := range g {
		o.enter(wire.JobStopping, "")
		o.record.Target = ""
	}
}

// setBudget has all jobs planned for again, within another budget.
func (m *Machine) setBudget(q *wire.Request) error {
	d := m.ownDomain
	switch brought := m.domainByName(q.Device); {
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
	m.emit(Output{Settings: m.settings})
	d.replanForBudget()
	m.retryAdmission(d)
	return nil
}

// forgetExecutor takes the processes of an executor for dead, because an administrator says that they have ended. An
// executor that can be reached is not.
func (m *Machine) forgetExecutor(name string) error {
	x := m.executors[name]
	lives := x != nil && !x.IsGone() && !x.IsSilent()
	const why = "an administrator says that it has ended"
	any := m.releaseReservations(name, func(life string) bool { return !lives || life != x.Life }, why)
	if x != nil && !x.IsGone() && !lives {
		m.removeExecutor(x, fleet.Gone, why) // if it is heard of again, it is told to end its jobs
		any = true
	}
	switch {
	case any:
		return nil
	case lives:
		return fmt.Errorf("executor %s was heard of %v ago: it has not ended", name,
			text.Duration(m.now-x.LastHeard))
	default:
		return fmt.Errorf("there is no executor %s, and none of that name has memory", name)
	}
}
