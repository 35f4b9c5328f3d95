package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tensile/wire"
)

// batch is a submission whose jobs are neither taken nor refused yet: plans decide.
type batch struct {
	// from is Input.From of whoever waits for the answer. 0: nobody waits.
	from int64
	// submittedAt is since the Unix epoch.
	submittedAt time.Duration
	jobs        []*job
	// refusalSuffix ends the text of a refusal. "": there is one job alone.
	refusalSuffix string
}

// answerWithin is how long those who submit jobs wait for plans. If it is not known then whether the jobs can run, they
// are taken, and fail if they cannot.
const answerWithin = 5 * time.Second

// maxJobsOne is the most jobs of one user that are not over: these are planned for, and listed in one answer.
const maxJobsOne = 500

// checkJobQuota returns why no more jobs of a user are taken. nil: they may be, as any number of the administrator's.
func (m *Machine) checkJobQuota(user string, more int) error {
	has := 0
	for _, j := range m.jobs {
		if j.record.Spec.Owner == user && !j.record.State.Over() {
			has++
		}
	}
	if user == "" || has+more <= maxJobsOne {
		return nil
	}
	return fmt.Errorf("%s has %d jobs that are not over, and would have %d more: a user has at most %d: wait until "+
		"some are over, or stop them", user, has, more, maxJobsOne)
}

// submitJobs takes in jobs, all or none. They are planned for, and then begin, or wait until they fit beside the
// others. All are refused if one of them can never run.
func (m *Machine) submitJobs(from int64, by string, list []Submission) {
	b := &batch{from: from, submittedAt: m.now}
	if len(list) > 1 {
		b.refusalSuffix = fmt.Sprintf("; none of the %d jobs was taken", len(list))
	}
	for _, s := range list {
		if err := m.checkSubmission(by, s); err != nil {
			m.reply(from, fmt.Errorf("%w%s", err, b.refusalSuffix))
			return
		}
	}
	if err := cmp.Or(m.checkJobQuota(by, len(list)), m.checkReplicas(list)); err != nil {
		m.reply(from, fmt.Errorf("%w%s", err, b.refusalSuffix))
		return
	}
	for _, s := range list {
		s.Spec.Owner = by
		j := &job{graph: s.Graph, batch: b, record: wire.Record{Spec: s.Spec, State: wire.JobQueued,
			Reason: "is being planned for", Submitted: s.At, Waiting: m.now}}
		j.unchecked, j.waiting = true, waiting{wire.JobQueued, "plans", m.now}
		b.jobs = append(b.jobs, j)
	}
	for i, j := range b.jobs {
		if list := m.candidateDevices(j); len(list) == 1 {
			m.bindDevice(j, list[0])
			list[0].pending.admission = true
		}
		if j.measureHome(); j.record.Spec.Script {
			j.profile = recordedProfile(list[i].Latency)
			j.domain.initLatencies(j)
		}
	}
	m.jobs = append(m.jobs, b.jobs...)
	m.needsPlacement = true
}

// checkSubmission returns why a user's job cannot be taken, whatever plans there are. nil: it can.
func (m *Machine) checkSubmission(by string, s Submission) error {
	switch other := m.findJob(s.Spec.Name); {
	case other == nil:
	case m.checkOwner(by, s.Spec.Name) != nil: // the new job would replace it
		return fmt.Errorf("there is a job %s, and it is not yours: give the new one another name", s.Spec.Name)
	case !other.record.State.Over():
		return fmt.Errorf("there is a job %s: give the new one another name, or stop that one first", s.Spec.Name)
	}
	if s.Spec.Script {
		if m.ownDomain == nil {
			return fmt.Errorf("job %s is a script, which trains on the controller's device, and this one has none",
				s.Spec.Name)
		}
		return checkScript(&s.Spec)
	}
	if s.Spec.Device != "" && m.domainByName(s.Spec.Device) == nil {
		return fmt.Errorf("job %s: there is no device %s: tensile devices lists them", s.Spec.Name, s.Spec.Device)
	}
	if len(m.domains) == 0 || !isSimulated(m.domains[0].config.Device) { // either all devices are simulated, or none is
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

// takeBatch makes jobs known for good. They replace the jobs of their names that are over.
func (m *Machine) takeBatch(b *batch) {
	for _, j := range b.jobs {
		m.lastSeq++
		j.record.Order, j.record.Spec.ID = m.lastSeq, m.lastSeq
		if r := &j.record.Spec.Replica; r.Of > 0 {
			r.Group = m.lastSeq - int64(r.Number) // the replicas come one after the other
		}
		j.batch = nil
		before := slices.IndexFunc(m.jobs, func(o *job) bool {
			return o != j && o.record.Spec.Name == j.record.Spec.Name
		})
		if before >= 0 {
			old := m.jobs[before]
			m.jobs = slices.Delete(m.jobs, before, before+1)
			j.record.Held = old.record.Held
			m.emit(Output{Drop: &Drop{Log: old.record.Spec.Name}})
			m.dropResult(old)
			m.dropGraph(old.record.Spec.Graph)
		}
		if j.record.Spec.Script {
			m.giveScriptExecutor(j)
		}
	}
	m.changed = true
	m.reply(b.from, nil, b.jobs...)
}

// refuseBatch forgets jobs that were not taken yet.
func (m *Machine) refuseBatch(b *batch, why string) {
	m.jobs = slices.DeleteFunc(m.jobs, func(j *job) bool { return j.batch == b })
	for _, j := range b.jobs {
		j.batch = nil
		j.enter(wire.JobFailed, why) // requests that name them ignore them
		m.dropGraph(j.record.Spec.Graph)
	}
	m.reply(b.from, fmt.Errorf("%s%s", why, b.refusalSuffix))
}

// takeLateBatches takes the jobs that have waited for plans for answerWithin.
func (m *Machine) takeLateBatches() {
	for _, j := range slices.Clone(m.jobs) {
		if b := j.batch; b != nil && m.now-b.submittedAt >= answerWithin {
			m.takeBatch(b)
		}
	}
}

// reply adds the answer to a request to the step.
func (m *Machine) reply(to int64, err error, jobs ...*job) {
	m.replies = append(m.replies, reply{to, jobs, err})
}

// awaitsResult reports whether a key is that of the result of a job that an executor has.
func (m *Machine) awaitsResult(key string) bool {
	return slices.ContainsFunc(m.jobs, func(j *job) bool {
		r := &j.record
		return !r.State.Over() && r.Executor != "" && key == wire.ResultKey(r.Executor, r.Spec.ID, r.Incarnation)
	})
}
