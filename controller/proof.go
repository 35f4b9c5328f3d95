package controller

import (
	"slices"
	"strings"
	"time"

	"tensile/wire"
)

// The plans for a move know nothing of what devices of one host share, such as the processors of two cpu devices or a
// link of two GPUs: there a move may promise what it cannot keep. So the jobs of both devices are timed after a move.
// One that has saved less than half of what was promised was in vain: nothing moves on its hosts for a while, and for
// twice as long after each more of them, until one keeps its promise. A controller that is started again has forgotten
// that.

const (
	proofIterations = 8                // of each job that are timed after a move
	firstRest       = 10 * time.Minute // that nothing moves on a host after the first move in vain
)

// proof compares how fast the jobs of two devices are after a move with how fast they were before.
type proof struct {
	mover    *job
	from, to *domain
	gain     time.Duration // that was promised, weighted
	arrived  bool
	jobs     []timed
}

// timed is a job whose iterations are timed.
type timed struct {
	*job
	on     *domain // where it is after the move
	weight float64 // what a second less in each iteration is worth, of the iterations that count
	was    time.Duration
	took   time.Duration // all that were timed
	seen   int           // iterations since the move, the first of which is not timed: it may have begun before
}

// futile is for how long nothing moves on a host, where moves were in vain.
type futile struct {
	rest  time.Duration
	until time.Duration
}

// prove returns what times the jobs of both devices of a move; nil: of one it is not known how fast it is now.
func (t *transfer) prove(gain time.Duration) *proof {
	p := &proof{mover: t.job, from: t.from.domain, to: t.to, gain: gain}
	add := func(j *job, on *domain) {
		was := j.pace // an average, which lags behind where jobs have come lately
		if was > 0 {
			was = max(was, times(total(j.domain.steady(j)), j.expects()))
		}
		p.jobs = append(p.jobs, timed{job: j, on: on, weight: t.weight(j) * float64(on.counts(j)), was: was})
	}
	if t.from.errand != nil {
		for _, j := range t.from.errand.jobs {
			add(j, t.from.domain)
		}
	}
	for _, j := range t.with.errand.jobs { // the one that moves is the last
		add(j, t.to)
	}
	if slices.ContainsFunc(p.jobs, func(j timed) bool { return j.was == 0 }) {
		return nil
	}
	return p
}

// timed takes down what an iteration of a job took, for moves whose gain is being timed.
func (v *moves) timed(j *job, took time.Duration) {
	for _, p := range v.proofs {
		at := slices.IndexFunc(p.jobs, func(o timed) bool { return o.job == j })
		if !p.arrived || at < 0 || j.record.State != wire.JobRunning {
			continue
		}
		o := &p.jobs[at]
		if o.seen++; o.seen > 1 {
			o.took += took
		}
	}
}

// judge ends the proofs of moves after which all jobs were timed, and of those that show nothing, as jobs have come or
// gone.
func (m *Machine) judge() {
	v := &m.moves
	v.proofs = slices.DeleteFunc(v.proofs, func(p *proof) bool {
		switch {
		case !p.arrived && v.mover == p.mover:
			return false
		case !p.arrived || !p.stands():
			return true
		case slices.ContainsFunc(p.jobs, func(j timed) bool { return j.seen <= proofIterations }):
			return false
		}
		saved, hosts := p.saved(), hostsOf(p.from, p.to)
		if saved >= p.gain/2 {
			for _, host := range hosts {
				delete(v.futile, host)
			}
			return true
		}
		rest := firstRest
		for _, host := range hosts {
			rest = max(rest, bounded(2*float64(v.futile[host].rest)))
		}
		for _, host := range hosts {
			v.futile[host] = futile{rest: rest, until: bounded(float64(m.now) + float64(rest))}
		}
		m.event(Event{Kind: Disproved, Job: p.mover.record.Spec.Name, Device: p.to.config.Name,
			Host: strings.Join(hosts, ", "), Gain: p.gain, Saved: saved, Rest: rest})
		return true
	})
}

// stands reports whether the jobs of both devices are still those that the move has left there, all training.
func (p *proof) stands() bool {
	for _, j := range p.jobs {
		if j.domain != j.on || j.record.State != wire.JobRunning {
			return false
		}
	}
	return len(p.from.reachable())+len(p.to.reachable()) == len(p.jobs)
}

// saved is what the move has saved, weighted as its gain was.
func (p *proof) saved() time.Duration {
	var saved float64
	for _, j := range p.jobs {
		saved += j.weight * (float64(j.was) - float64(j.took)/float64(j.seen-1))
	}
	return bounded(saved)
}

// unproven reports whether a device waits for what a move has saved, so that no job is to come or go by another.
func (v *moves) unproven(d *domain) bool {
	return slices.ContainsFunc(v.proofs, func(p *proof) bool { return p.from == d || p.to == d })
}

// restsFromMoves reports whether nothing is to move on a host now, since moves there were in vain.
func (m *Machine) restsFromMoves(host string) bool { return m.now < m.moves.futile[host].until }
