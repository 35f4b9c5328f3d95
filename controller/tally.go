package controller

import (
	"maps"
	"time"

	"tensile/graph"
	"tensile/plan"
	"tensile/wire"
)

// Tally counts what jobs have done since this controller was started. No count ever falls.
type Tally struct {
	Iterations  int64         // complete, those that were lost with an executor and done again included
	Served      time.Duration // what these take alone and without a plan
	Stall, Gate time.Duration // of the iterations that were reported
	Out, In     graph.Bytes   // that these have copied to the host and back, by their plans
	Queued      time.Duration // in the queue
	Plans       map[Cause]int64
	Ended       map[wire.JobState]int64 // jobs that are over
}

func (t *Tally) plan(c Cause) {
	if t.Plans == nil {
		t.Plans = make(map[Cause]int64)
	}
	t.Plans[c]++
}

func (t *Tally) ended(s wire.JobState) {
	if t.Ended == nil {
		t.Ended = make(map[wire.JobState]int64)
	}
	t.Ended[s]++
}

// clone returns a copy that does not change any more.
func (t *Tally) clone() Tally {
	c := *t
	c.Plans, c.Ended = maps.Clone(t.Plans), maps.Clone(t.Ended)
	return c
}

// maxOwners is for how many users a controller counts apart; those who come later are counted together.
const maxOwners = 100

// otherOwners stands for the users beyond the first 100: no user can be called so.
const otherOwners = "*"

// count adds to what is counted of a job and of its owner.
func (m *Machine) count(j *job, add func(*Tally)) {
	add(&j.tally)
	owner := m.counted(j)
	t := m.tallies[owner]
	if t == nil {
		t = new(Tally)
		m.tallies[owner] = t
	}
	add(t)
}

// counted is the owner for whom a job counts.
func (m *Machine) counted(j *job) string {
	owner := j.record.Spec.Owner
	if m.tallies[owner] == nil && len(m.tallies) >= maxOwners {
		return otherOwners
	}
	return owner
}

// queue keeps the time of a job in the queue, at the end of each step that may have changed its state.
func (m *Machine) queue(j *job) {
	switch queued := j.record.State == wire.JobQueued; {
	case queued && j.queued == 0:
		j.queued = m.now
	case !queued && j.queued > 0:
		waited := m.now - j.queued
		j.queued = 0
		m.count(j, func(t *Tally) { t.Queued += waited })
	}
}

// progress is what reports have told of a job's present incarnation.
type progress struct {
	reported    bool
	incarnation int64
	iteration   int             // the newest that was reported
	steps       []time.Duration // of that
	layout      *layout         // of that; nil: of a plan that is over
	touched     graph.Bytes     // of its arena, likewise
}

// hear counts a report of a job. One that came twice, or after a newer one, counts once; l is its layout, nil if that
// is over.
func (m *Machine) hear(j *job, r *wire.Report, l *layout) {
	p := &j.progress
	lost := int64(0)
	if p.reported && p.incarnation == r.Incarnation {
		if r.Iteration <= p.iteration {
			return
		}
		lost = int64(r.Iteration - p.iteration - 1)
	}
	*p = progress{true, r.Incarnation, r.Iteration, r.Steps, l, r.Touched}
	m.reports, m.missing = m.reports+1, m.missing+lost
	served := time.Duration(min(float64(1+lost)*float64(j.alone()), float64(mostServed)))
	if m.tenanted() {
		j.domain.ledger.of(j.tenant()).served += served
	}
	m.count(j, func(t *Tally) {
		t.Iterations += 1 + lost
		t.Served += served
		t.Stall, t.Gate = t.Stall+r.Stall, t.Gate+r.Gate
		if l != nil {
			out, in := l.copied(j.graph)
			t.Out, t.In = t.Out+out, t.In+in
		}
	})
}

// mostServed is the most that one report counts as served: an iteration's number is its executor's own word.
const mostServed = time.Hour

// traffic is what a plan copies in an iteration, and what it has swapped out.
type traffic struct {
	out, in graph.Bytes
	away    []graph.Bytes // per step
}

func (l *layout) copied(g *graph.Graph) (out, in graph.Bytes) {
	if l.traffic == nil {
		out, in := l.Wire.Plan.Copied(g)
		l.traffic = &traffic{out, in, away(g, l.Wire.Plan)}
	}
	return l.traffic.out, l.traffic.in
}

// away is per step of a plan how many bytes are on the host alone then and come back to the device. Inputs, which
// arrive from there, are left out.
func away(g *graph.Graph, p *plan.Plan) []graph.Bytes {
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
			default: // over the boundary of the iteration
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

// swapped is the mean over a job's newest iteration of the bytes that were on the host alone, to come back.
func (p *progress) swapped() graph.Bytes {
	if p.layout == nil || p.layout.traffic == nil {
		return 0
	}
	var sum float64
	var length time.Duration
	for i, took := range p.steps {
		sum, length = sum+float64(p.layout.traffic.away[i])*float64(took), length+took
	}
	return graph.Bytes(sum / float64(max(1, length)))
}
