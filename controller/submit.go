package controller

import (
	"fmt"
	"slices"
	"time"

	"tensile/wire"
)

// batch are jobs that were submitted together and are neither taken nor refused yet: that plans decide.
type batch struct {
	from  int64 // whom to answer
	since time.Duration
	jobs  []*job
	none  string // the end of a refusal
}

// answerWithin is how long whoever submits jobs waits for plans. Jobs of which is not known then whether they can run
// are taken, and fail if they cannot.
const answerWithin = 5 * time.Second

// submit takes jobs in, all or none: they are planned for, and then begin, or wait until they fit beside the others, or
// are refused if one of them never will.
func (m *Machine) submit(from int64, by string, list []Submission) {
	b := &batch{from: from, since: m.now}
	if len(list) > 1 {
		b.none = fmt.Sprintf("; none of the %d jobs was taken", len(list))
	}
	for _, s := range list {
		if err := m.refuses(by, s); err != nil {
			m.reply(from, fmt.Errorf("%w%s", err, b.none))
			return
		}
	}
	if err := m.refusesReplicas(list); err != nil {
		m.reply(from, fmt.Errorf("%w%s", err, b.none))
		return
	}
	for _, s := range list {
		s.Spec.Owner = by
		b.jobs = append(b.jobs, &job{graph: s.Graph, batch: b, fresh: true, queued: m.now,
			record: wire.Record{Spec: s.Spec, State: wire.Queued, Why: "is being planned for", Submitted: s.At,
				Waiting: m.now}})
	}
	for i, j := range b.jobs {
		if list := m.candidates(j); len(list) == 1 {
			m.bind(j, list[0])
			list[0].want.admission = true
		}
		if j.findHome(); j.record.Spec.Script {
			j.profile = profileOf(list[i].Latency)
			j.domain.expect(j)
		}
	}
	m.jobs = append(m.jobs, b.jobs...)
	m.look = true
}

// refuses is why a user's job cannot be taken, whatever plans there are; nil: it can.
func (m *Machine) refuses(by string, s Submission) error {
	switch other := m.find(s.Spec.Name); {
	case other == nil:
	case m.denied(by, s.Spec.Name) != nil: // which the new one would replace
		return fmt.Errorf("there is a job %s, and it is not yours: give the new one another name", s.Spec.Name)
	case !other.record.State.Over():
		return fmt.Errorf("there is a job %s: give the new one another name, or stop that one first", s.Spec.Name)
	}
	if s.Spec.Script {
		if m.own == nil {
			return fmt.Errorf("job %s is a script, which trains on the controller's device, and this one has none",
				s.Spec.Name)
		}
		return refusesScript(&s.Spec)
	}
	if s.Spec.Device != "" && m.device(s.Spec.Device) == nil {
		return fmt.Errorf("job %s: there is no device %s: tensile devices lists them", s.Spec.Name, s.Spec.Device)
	}
	if len(m.domains) == 0 || !simulated(m.domains[0].config.Device) { // either all devices are simulated, or none is
		return nil
	}
	on := m.domains[0].config.Device
	if s.Spec.Weights != "" {
		return fmt.Errorf("job %s: %s has no data that could begin with weights: leave --weights out", s.Spec.Name, on)
	}
	if s.Spec.Save != "" {
		return fmt.Errorf("job %s: %s has no data that could be saved: leave --save out", s.Spec.Name, on)
	}
	return nil
}

// take makes jobs known for good. They replace those of their names that are over.
func (m *Machine) take(b *batch) {
	for _, j := range b.jobs {
		m.last++
		j.record.Seq, j.record.Spec.ID = m.last, m.last
		if r := &j.record.Spec.Replica; r.Of > 0 {
			r.Group = m.last - int64(r.Number) // they stand one after the other
		}
		j.batch = nil
		before := slices.IndexFunc(m.jobs, func(o *job) bool {
			return o != j && o.record.Spec.Name == j.record.Spec.Name
		})
		if before >= 0 {
			old := m.jobs[before]
			m.jobs = slices.Delete(m.jobs, before, before+1)
			j.record.Held = old.record.Held
			m.dropResult(old)
			m.dropGraph(old.record.Spec.Graph)
		}
		if j.record.Spec.Script {
			m.settle(j)
		}
	}
	m.changed = true
	m.reply(b.from, nil, b.jobs...)
}

// refuse forgets jobs that were not taken yet.
func (m *Machine) refuse(b *batch, why string) {
	m.jobs = slices.DeleteFunc(m.jobs, func(j *job) bool { return j.batch == b })
	for _, j := range b.jobs {
		j.batch, j.record.State = nil, wire.Broken // what was asked for them lets go of them
		m.dropGraph(j.record.Spec.Graph)
	}
	m.reply(b.from, fmt.Errorf("%s%s", why, b.none))
}

// takeLate takes the jobs that have waited long for plans.
func (m *Machine) takeLate() {
	for _, j := range slices.Clone(m.jobs) {
		if b := j.batch; b != nil && m.now-b.since >= answerWithin {
			m.take(b)
		}
	}
}

func (m *Machine) reply(to int64, err error, jobs ...*job) {
	m.replies = append(m.replies, reply{to, jobs, err})
}

// over ends a job's life here, with the result of which its executor told, if it did. Its bytes go to those that wait,
// and then to the others.
func (m *Machine) over(j *job, state wire.JobState, why string, result *wire.Result) {
	active := j.active()
	j.record.State, j.record.Why, j.record.Speed = state, why, 0
	m.discard(j, j.given(), true)
	j.graph, j.profile, j.latency, j.spare, j.last, j.former, j.layouts = nil, nil, nil, nil, nil, nil, nil
	j.progress = progress{}
	d := j.domain
	if j.lessons = nil; d != nil && d.learnt.news {
		d.keep()
	}
	m.collect(j, result)
	m.changed = true
	m.count(j, func(t *Tally) { t.ended(state) })
	m.event(Event{Kind: Ended, Job: j.record.Spec.Name, Epoch: j.record.Applied, State: state,
		Iterations: j.record.Iteration, Why: why})
	m.admit(d) // those behind it may have waited for nothing else
	if active && (!m.config.NoReplan || d.overfull() || d.bare()) {
		d.want.better = because(Departure, "job %s has gone", j.record.Spec.Name)
	}
	if state != wire.Done {
		m.endToo(j)
	}
}

// awaits reports whether a key is that of the result of a job that an executor has.
func (m *Machine) awaits(key string) bool {
	return slices.ContainsFunc(m.jobs, func(j *job) bool {
		r := &j.record
		return !r.State.Over() && r.Executor != "" && key == wire.ResultKey(r.Executor, r.Spec.ID, r.Incarnation)
	})
}

// collect has the result of a job stored for good: what its executor has left, or, if that was lost, what reports have
// told.
func (m *Machine) collect(j *job, result *wire.Result) {
	heard := j.heard.result()
	j.heard.values = nil
	c := Collection{Heard: heard, Object: wire.ResultObject(j.record.Spec.Name, j.record.Spec.ID)}
	if result != nil {
		r := *result
		key := wire.ResultKey(j.record.Executor, j.record.Spec.ID, j.record.Incarnation)
		if r.Stored == key { // and no other executor's
			c.Key = key
		}
		r.Stored, r.Losses, r.Weights = "", nil, nil // which belong to what is stored
		j.record.Result = &r
	} else if heard != nil {
		j.record.Result = &wire.Result{Last: heard.Last}
	}
	if c.Key != "" || heard != nil {
		j.record.Result.Stored = c.Object
		m.say(Output{Result: &c})
	}
}
