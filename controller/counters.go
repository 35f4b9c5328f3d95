package controller

import (
	"cmp"
	"maps"
	"time"

	"tensile/graph"
	"tensile/plan"
	"tensile/wire"
)

// Counters count what jobs have done since this controller was started. None ever falls.
type Counters struct {
	// Iterations counts complete iterations, also those that were lost with an executor and done again.
	Iterations int64
	// Served is the time that these iterations take alone and without a plan.
	Served time.Duration
	// Stall and Gate are the time for which reported iterations waited for copies and for page grants.
	Stall, Gate time.Duration
	// Out and In are the bytes that reported iterations have copied to the host and back, by their plans.
	Out, In graph.Bytes
	// Queued is the time that jobs have spent in the queue.
	Queued time.Duration
	// Waited is the time that jobs have waited, by wire.WaitFor, "plans" while none have been made yet, or "parked".
	Waited map[string]time.Duration
	// Plans counts the plans that jobs got, by cause.
	Plans map[Cause]int64
	// Ended counts the jobs that are over, by state.
	Ended map[wire.JobState]int64
}

func (t *Counters) countPlan(c Cause) {
	if t.Plans == nil {
		t.Plans = make(map[Cause]int64)
	}
	t.Plans[c]++
}

func (t *Counters) countEnd(s wire.JobState) {
	if t.Ended == nil {
		t.Ended = make(map[wire.JobState]int64)
	}
	t.Ended[s]++
}

// clone returns a copy that shares nothing with the original.
func (t *Counters) clone() Counters {
	c := *t
	c.Plans, c.Ended, c.Waited = maps.Clone(t.Plans), maps.Clone(t.Ended), maps.Clone(t.Waited)
	return c
}

// maxOwners is for how many users a controller has counters of their own. Those who come later share one.
const maxOwners = 100

// otherOwners stands for the users beyond the first maxOwners. No user can have this name.
const otherOwners = "*"

// addCount adds to the counters of a job and to those of its owner.
func (m *Machine) addCount(j *job, add func(*Counters)) {
	add(&j.counters)
	owner := m.countedOwner(j)
	t := m.counters[owner]
	if t == nil {
		t = new(Counters)
		m.counters[owner] = t
	}
	add(t)
}

// countedOwner is the owner for whom a job is counted.
func (m *Machine) countedOwner(j *job) string {
	owner := j.record.Spec.Owner
	if m.counters[owner] == nil && len(m.counters) >= maxOwners {
		return otherOwners
	}
	return owner
}

// waiting is what a job waits for, and since when, as far as this controller knows. Zero: it does not wait.
type waiting struct {
	state wire.JobState
	what  string
	since time.Duration
}

// waitingNow is what a job waits for now.
func (m *Machine) waitingNow(j *job) waiting {
	switch j.record.State {
	case wire.JobQueued, wire.JobStarting, wire.JobUnknown:
		return waiting{j.record.State, cmp.Or(string(j.record.Wait.For), "plans"), m.now}
	case wire.JobParked, wire.JobParking:
		return waiting{j.record.State, "parked", m.now}
	}
	return waiting{}
}

// countWait counts the time for which a job has waited when it begins to wait for something else, or for nothing. It is
// called at the end of each step that may have changed that.
func (m *Machine) countWait(j *job) {
	was, now := j.waiting, m.waitingNow(j)
	if was.state == now.state && was.what == now.what {
		return
	}
	j.waiting = now
	if passed := m.now - was.since; was.since > 0 && passed > 0 {
		m.addCount(j, func(t *Counters) { t.countWait(was, passed) })
	}
}

func (t *Counters) countWait(w waiting, passed time.Duration) {
	if t.Waited == nil {
		t.Waited = make(map[string]time.Duration)
	}
	t.Waited[w.what] += passed
	if w.state == wire.JobQueued {
		t.Queued += passed
	}
}

// soFar are the counters of a job with its present wait.
func (m *Machine) soFar(j *job) Counters {
	c := j.counters.clone()
	if w := j.waiting; w.since > 0 && m.now > w.since {
		c.countWait(w, m.now-w.since)
	}
	return c
}

// progress is what reports have told of a job's present incarnation.
type progress struct {
	// reported says that a report has come. The other fields mean nothing before.
	reported    bool
	incarnation int64
	// iteration is the number of the newest iteration that was reported.
	iteration int
	// steps are the times of its steps.
	steps []time.Duration
	// layout is the one that it used. nil: that layout is no longer in use.
	layout *layout
	// touched is the highest byte of the arena that it used. 0: it is not known.
	touched graph.Bytes
}

// countReport counts a report of a job. A report that came twice, or after a newer one, is not counted again. l is the
// layout of the report; nil if that is no longer in use.
func (m *Machine) countReport(j *job, r *wire.Report, l *layout) {
	p := &j.progress
	lost := int64(0)
	if p.reported && p.incarnation == r.Incarnation {
		if r.Iteration <= p.iteration {
			return
		}
		lost = int64(r.Iteration - p.iteration - 1)
	}
	*p = progress{true, r.Incarnation, r.Iteration, r.Steps, l, r.Touched}
	m.reportCount, m.lostReports = m.reportCount+1, m.lostReports+lost
	served := time.Duration(min(float64(1+lost)*float64(j.timeAlone()), float64(maxServed)))
	if m.hasTenants() {
		j.domain.ledger.Account(j.tenant()).Served += served
	}
	m.addCount(j, func(t *Counters) {
		t.Iterations += 1 + lost
		t.Served += served
		t.Stall, t.Gate = t.Stall+r.Stall, t.Gate+r.Gate
		if l != nil {
			out, in := l.copiedBytes(j.graph)
			t.Out, t.In = t.Out+out, t.In+in
		}
	})
}

// maxServed is the most that one report counts as served: the number of an iteration is its executor's own claim.
const maxServed = time.Hour

// traffic is what a plan copies in an iteration.
type traffic struct {
	// out and in are the bytes that are copied to the host and back.
	out, in graph.Bytes
	// swappedOut holds, per step, the bytes that are on the host alone then and come back.
	swappedOut []graph.Bytes
}

// copiedBytes is what the plan copies to the host and back in an iteration.
func (l *layout) copiedBytes(g *graph.Graph) (out, in graph.Bytes) {
	if l.traffic == nil {
		out, in := l.Wire.Plan.Copied(g)
		l.traffic = &traffic{out, in, swappedOut(g, l.Wire.Plan)}
	}
	return l.traffic.out, l.traffic.in
}

// swappedOut holds, per step of a plan, how many bytes are on the host alone then and come back to the device. Inputs,
// which arrive from the host, are left out.
func swappedOut(g *graph.Graph, p *plan.Plan) []graph.Bytes {
	n := len(p.Steps)
	change := make([]graph.Bytes, n+1)
	leave := func(from, to int, bytes graph.Bytes) { // steps [from, to)
		change[from] += bytes
		change[to] -= bytes
	}
	moves := make(map[graph.StorageID][]plan.Move)
	for _, m := range p.Moves {
		if g.Storages[m.Storage].Role != graph.Input {
			moves[m.Storage] = append(moves[m.Storage], m)
		}
	}
	for s, list := range moves {
		bytes := g.Storages[s].Bytes
		for i, m := range list {
			next := list[(i+1)%len(list)]
			switch {
			case m.Kind != plan.Drop || next.Kind != plan.In:
			case i+1 < len(list):
				leave(m.After+1, next.After+1, bytes)
			default: // it is away across the boundary of the iteration
				leave(m.After+1, n, bytes)
				leave(0, next.After+1, bytes)
			}
		}
	}
	sums := change[:n]
	for i := 1; i < n; i++ {
		sums[i] += sums[i-1]
	}
	return sums
}

// meanSwapped is the mean, over the job's newest iteration, of the bytes that were on the host alone and came back.
func (p *progress) meanSwapped() graph.Bytes {
	if p.layout == nil || p.layout.traffic == nil {
		return 0
	}
	var sum float64
	var length time.Duration
	for i, took := range p.steps {
		sum, length = sum+float64(p.layout.traffic.swappedOut[i])*float64(took), length+took
	}
	return graph.Bytes(sum / float64(max(1, length)))
}
