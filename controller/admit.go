package controller

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tensile/graph"
	"tensile/planner"
	"tensile/scheduler"
	"tensile/wire"
)

// submit takes jobs in, all or none: they are planned for at once, wait until they fit beside the others, or are refused if
// one of them never will.
func (m *Machine) submit(list []Submission) {
	var none string
	if len(list) > 1 {
		none = fmt.Sprintf("; none of the %d jobs was taken", len(list))
	}
	for _, s := range list {
		if other := m.find(s.Spec.Name); other != nil && !other.record.Phase.Over() {
			m.refuse(fmt.Errorf("there is a job %s: give the new one another name, or stop that one first%s", s.Spec.Name, none))
			return
		}
		if s.Spec.Save != "" && strings.HasPrefix(m.config.Identity, "sim:") {
			m.refuse(fmt.Errorf("job %s: %s has no data that could be saved: leave --save out%s", s.Spec.Name, m.config.Identity, none))
			return
		}
	}
	jobs, err := m.newJobs(list)
	if err != nil {
		m.refuse(fmt.Errorf("%w%s", err, none))
		return
	}
	waiting := m.waiting(jobs...)
	plans, err := m.beside(waiting)
	if err != nil {
		if err := m.possible(jobs); err != nil {
			m.refuse(fmt.Errorf("%w%s", err, none))
			return
		}
	}
	m.changed = true
	for _, j := range jobs {
		m.last++
		j.record.Order, j.record.Spec.ID = m.last, m.last
		before := m.find(j.record.Spec.Name)
		m.jobs = append(slices.DeleteFunc(m.jobs, func(o *job) bool { return o == before }), j)
		if before != nil {
			m.dropGraph(before.record.Spec.Graph)
		}
	}
	m.enter(waiting, plans, err)
	m.tell(jobs...)
}

// newJobs are those of submissions. Copies share their profile.
func (m *Machine) newJobs(list []Submission) ([]*job, error) {
	profiles := make(map[graph.Digest]planner.Profile)
	jobs := make([]*job, len(list))
	for i, s := range list {
		p, known := profiles[s.Spec.Graph]
		if !known {
			var err error
			if p, err = m.config.Profile(s.Graph); err != nil {
				return nil, fmt.Errorf("job %s cannot run here: %w", s.Spec.Name, err)
			}
			profiles[s.Spec.Graph] = p
		}
		jobs[i] = &job{graph: s.Graph, profile: p,
			record: wire.Record{Spec: s.Spec, Phase: wire.Queued, Why: "submitted", Submitted: s.At, Budget: m.config.Budget}}
		m.expect(jobs[i])
	}
	return jobs, nil
}

// possible returns an error if one of the jobs does not even fit alone. Copies are tried once.
func (m *Machine) possible(jobs []*job) error {
	type kind struct {
		graph    graph.Digest
		swapRate float64
	}
	tried := make(map[kind]bool)
	for _, j := range jobs {
		k := kind{j.record.Spec.Graph, j.record.Spec.SwapRate}
		if tried[k] {
			continue
		}
		tried[k] = true
		if _, err := m.schedule([]*job{j}); err != nil {
			return m.never(j, err)
		}
	}
	return nil
}

// never says why a job can never run here.
func (m *Machine) never(j *job, err error) error {
	name := j.record.Spec.Name
	over, ok := errors.AsType[*scheduler.OverBudgetError](err)
	if !ok {
		return fmt.Errorf("job %s cannot run here, even alone: %w", name, err)
	}
	at, why := "", "; "+over.Why
	if w := scheduler.WorkingSetOf(m.request(j), m.config.Align); w.Bytes == over.Need {
		at, why = " at "+j.graph.Ops[w.Op].Name, ""
	}
	return fmt.Errorf("job %s cannot run here, even alone: it needs %s%s and the budget is %s%s; try a smaller --batch or --image",
		name, over.Need, at, over.Budget, why)
}

func (m *Machine) refuse(err error) {
	m.answer = func() wire.Answer { return wire.Answer{Error: err.Error()} }
}

func (m *Machine) tell(jobs ...*job) {
	m.answer = func() wire.Answer {
		var a wire.Answer
		for _, j := range jobs {
			a.Jobs = append(a.Jobs, j.record)
		}
		return a
	}
}

// waiting are the jobs that are queued, and more that are to be: by priority, then in the order in which they came.
func (m *Machine) waiting(more ...*job) []*job {
	waiting := slices.DeleteFunc(slices.Clone(m.jobs), func(j *job) bool { return j.record.Phase != wire.Queued })
	waiting = append(waiting, more...)
	slices.SortStableFunc(waiting, func(a, b *job) int { return cmp.Compare(b.priority(), a.priority()) })
	return waiting
}

// beside plans for jobs beside those that were admitted.
func (m *Machine) beside(jobs []*job) ([]planned, error) {
	if err := m.complete(); err != nil {
		return nil, err
	}
	return m.schedule(append(m.active(), jobs...))
}

// admit plans for the jobs that wait, and admits those that fit beside the others.
func (m *Machine) admit() {
	if waiting := m.waiting(); len(waiting) > 0 {
		plans, err := m.beside(waiting)
		m.enter(waiting, plans, err)
	}
}

// enter admits jobs that wait, with plans for all of them. If there are none, for the reason err, it admits as many from
// the first on as fit: none overtakes another that waits for bytes.
func (m *Machine) enter(waiting []*job, plans []planned, err error) {
	fits, most := 0, len(waiting) // so many fit, and so many do not
	if err == nil {
		fits = most
	}
	for most-fits > 1 {
		n := min(2*fits+1, (fits+most)/2)
		if p, e := m.beside(waiting[:n]); e == nil {
			fits, plans = n, p
		} else {
			most, err = n, e
		}
	}
	if fits > 0 {
		m.begin(waiting[:fits], plans)
	}
	for _, j := range waiting[fits:] {
		m.wait(j, err)
		err = fmt.Errorf("job %s is before it in the queue", waiting[fits].record.Spec.Name)
	}
}

// begin admits jobs with plans for them and those that run already.
func (m *Machine) begin(jobs []*job, plans []planned) {
	reason := fmt.Sprintf("job %s has come", jobs[0].record.Spec.Name)
	if len(jobs) > 1 {
		reason = fmt.Sprintf("%d jobs have come", len(jobs))
	}
	for _, j := range jobs {
		j.record.Phase, j.record.Why, j.record.Need = wire.Starting, "", 0
	}
	m.adopt(plans, reason)
}

// complete plans again if an admitted job has no layout, as one that was planned just before a controller died. It returns
// an error if there are no plans.
func (m *Machine) complete() error {
	jobs := m.active()
	bare := slices.IndexFunc(jobs, func(j *job) bool { return j.newest() == nil })
	if bare < 0 {
		return nil
	}
	plans, err := m.schedule(jobs)
	if err != nil {
		m.wait(jobs[bare], err)
		return err
	}
	m.adopt(plans, "the controller was started anew")
	return nil
}

// wait says why a job waits.
func (m *Machine) wait(j *job, why error) {
	j.record.Why, j.record.Need = why.Error(), 0
	if over, ok := errors.AsType[*scheduler.OverBudgetError](why); ok {
		j.record.Need = over.Need - over.Budget
		j.record.Why = fmt.Sprintf("waits for %s: it and the running jobs need %s of %s", j.record.Need, over.Need, over.Budget)
	}
}

// stop ends a job: one that waits at once, another after the iterations in flight.
func (m *Machine) stop(name string) {
	j := m.find(name)
	if j != nil && j.record.Phase.Over() {
		m.refuse(fmt.Errorf("job %s is %s already", name, j.record.Phase))
		return
	}
	if j == nil {
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
	if j.record.Result == nil {
		j.record.Result = j.heard.result()
	}
	j.heard.values = nil
	m.changed = true
	line := fmt.Sprintf("job %s %s after %d iterations", j.record.Spec.Name, phase, j.record.Iteration)
	if why != "" {
		line += ": " + why
	}
	m.log("%s", line)
	m.admit()
	m.improve(fmt.Sprintf("job %s has gone", j.record.Spec.Name))
}
