package controller

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"tensile/scheduler"
	"tensile/wire"
)

// submit takes a job in: it is planned for at once, waits until it fits beside the others, or is refused if it never will.
func (m *Machine) submit(s *Submission) {
	if other := m.find(s.Spec.Name); other != nil && !other.record.Phase.Over() {
		m.refuse(fmt.Errorf("there is a job %s: give the new one another name, or stop that one first", s.Spec.Name))
		return
	}
	j := &job{graph: s.Graph, profile: m.config.Profile(s.Graph)}
	m.expect(j)
	j.record = wire.Record{Spec: s.Spec, Order: m.last + 1, Phase: wire.Queued, Why: "submitted"}
	if _, err := m.schedule([]*job{j}); err != nil {
		m.refuse(fmt.Errorf("job %s can not run here, even alone: %w", s.Spec.Name, err))
		return
	}
	m.last++
	j.record.Spec.ID = m.last
	m.changed = true
	before := m.find(s.Spec.Name)
	m.jobs = append(slices.DeleteFunc(m.jobs, func(o *job) bool { return o == before }), j)
	if before != nil {
		m.dropGraph(before.record.Spec.Graph)
	}
	m.admit()
	m.tell(j)
}

func (m *Machine) refuse(err error) {
	m.answer = func() wire.Answer { return wire.Answer{Error: err.Error()} }
}

func (m *Machine) tell(j *job) {
	m.answer = func() wire.Answer { return wire.Answer{Jobs: []wire.Record{j.record}} }
}

// admit plans for the jobs that wait, as long as the next one fits beside the others: by priority, then in the order in
// which they came. None overtakes another that waits for bytes.
func (m *Machine) admit() {
	if len(m.jobs) < m.config.Expect || !m.complete() {
		return
	}
	waiting := slices.DeleteFunc(slices.Clone(m.jobs), func(j *job) bool { return j.record.Phase != wire.Queued })
	slices.SortStableFunc(waiting, func(a, b *job) int { return cmp.Compare(b.priority(), a.priority()) })
	if len(waiting) > 1 {
		if plans, err := m.schedule(append(m.active(), waiting...)); err == nil {
			m.begin(waiting, plans, fmt.Sprintf("%d jobs have come", len(waiting)))
			return
		}
	}
	for i, j := range waiting {
		plans, err := m.schedule(append(m.active(), j))
		if err != nil {
			for _, j := range waiting[i:] {
				m.wait(j, err)
				err = fmt.Errorf("job %s is before it in the queue", waiting[i].record.Spec.Name)
			}
			return
		}
		m.begin([]*job{j}, plans, fmt.Sprintf("job %s has come", j.record.Spec.Name))
	}
}

// begin admits jobs with plans for them and those that run already.
func (m *Machine) begin(jobs []*job, plans []planned, reason string) {
	for _, j := range jobs {
		j.record.Phase, j.record.Why, j.record.Need = wire.Starting, "", 0
	}
	m.adopt(plans, reason)
}

// complete plans again if an admitted job has no layout, as one that was planned just before a controller died, and
// reports whether all have one then.
func (m *Machine) complete() bool {
	jobs := m.active()
	bare := slices.IndexFunc(jobs, func(j *job) bool { return j.newest() == nil })
	if bare < 0 {
		return true
	}
	plans, err := m.schedule(jobs)
	if err != nil {
		m.wait(jobs[bare], err)
		return false
	}
	m.adopt(plans, "the controller was started anew")
	return true
}

// wait says why a job waits.
func (m *Machine) wait(j *job, why error) {
	j.record.Why, j.record.Need = why.Error(), 0
	var over *scheduler.OverBudgetError
	if errors.As(why, &over) {
		j.record.Need = over.Need - over.Budget
		j.record.Why = fmt.Sprintf("waits for %s: it and the running jobs need %s of %s", j.record.Need, over.Need, over.Budget)
	}
}

// stop ends a job: one that waits at once, another after the iterations in flight.
func (m *Machine) stop(name string) {
	j := m.find(name)
	if j == nil || j.record.Phase.Over() {
		m.refuse(fmt.Errorf("there is no job %s that runs or waits: tensile jobs lists them", name))
		return
	}
	m.changed = true
	if j.record.Phase == wire.Queued {
		j.record.Phase, j.record.Why, j.record.Need = wire.Halted, "", 0
		m.admit() // those behind it may have waited for nothing else
	} else {
		j.record.Phase, j.record.Why, j.record.Need = wire.Ending, "", 0
	}
	m.tell(j)
}

// over ends a job's life here. Its bytes go to those that wait, and then to the others.
func (m *Machine) over(j *job, phase wire.Phase, why string) {
	j.record.Phase, j.record.Why, j.layouts = phase, why, nil
	m.changed = true
	line := fmt.Sprintf("job %s %s after %d iterations", j.record.Spec.Name, phase, j.record.Iteration)
	if why != "" {
		line += ": " + why
	}
	m.log("%s", line)
	m.admit()
	m.improve(fmt.Sprintf("job %s has gone", j.record.Spec.Name))
}
