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
	checkIterations = 8                // of each job that are timed after a move
	firstBackoff    = 10 * time.Minute // that nothing moves on a host after the first move in vain
)

// moveCheck compares how fast the jobs of two devices are after a move with how fast they were before.
type moveCheck struct {
	mover    *job
	from, to *domain
	gain     time.Duration // that was promised, weighted
	arrived  bool
	jobs     []timedJob
}

// timedJob is a job whose iterations are timed.
type timedJob struct {
	*job
	domain *domain // where it is after the move
	weight float64 // what a second less in each iteration is worth, of the iterations that count
	before time.Duration
	total  time.Duration // all that were timed
	count  int           // iterations since the move, the first of which is not timed: it may have begun before
}

// backoff is for how long nothing moves on a host, where moves were in vain.
type backoff struct {
	length time.Duration
	until  time.Duration
}

// newMoveCheck returns what times the jobs of both devices of a move; nil: of one it is not known how fast it is now.
func (t *migration) newMoveCheck(gain time.Duration) *moveCheck {
	p := &moveCheck{mover: t.job, from: t.fromOffer.domain, to: t.to, gain: gain}
	add := func(j *job, on *domain) {
		was := j.iterationTime // an average, which lags behind where jobs have come lately
		if was > 0 {
			was = max(was, scaleTime(totalTime(j.domain.plannedLatencies(j)), j.plannedSlowdown()))
		}
		p.jobs = append(p.jobs, timedJob{job: j, domain: on, weight: t.weight(j) * float64(on.gainIterations(j)),
			before: was})
	}
	if t.fromOffer.request != nil {
		for _, j := range t.fromOffer.request.jobs {
			add(j, t.fromOffer.domain)
		}
	}
	for _, j := range t.toOffer.request.jobs { // the one that moves is the last
		add(j, t.to)
	}
	if slices.ContainsFunc(p.jobs, func(j timedJob) bool { return j.before == 0 }) {
		return nil
	}
	return p
}

// timeIteration takes down what an iteration of a job took, for moves whose gain is being timed.
func (v *migrations) timeIteration(j *job, took time.Duration) {
	for _, p := range v.checks {
		at := slices.IndexFunc(p.jobs, func(o timedJob) bool { return o.job == j })
		if !p.arrived || at < 0 || j.record.State != wire.Training {
			continue
		}
		o := &p.jobs[at]
		if o.count++; o.count > 1 {
			o.total += took
		}
	}
}

// judgeMoveChecks ends the proofs of moves after which all jobs were timed, and of those that show nothing, as jobs
// have come or gone.
func (m *Machine) judgeMoveChecks() {
	v := &m.migrations
	v.checks = slices.DeleteFunc(v.checks, func(p *moveCheck) bool {
		switch {
		case !p.arrived && v.mover == p.mover:
			return false
		case !p.arrived || !p.isValid():
			return true
		case slices.ContainsFunc(p.jobs, func(j timedJob) bool { return j.count <= checkIterations }):
			return false
		}
		saved, hosts := p.savedTime(), hostsOf(p.from, p.to)
		if saved >= p.gain/2 {
			for _, host := range hosts {
				delete(v.backoffs, host)
			}
			return true
		}
		rest := firstBackoff
		for _, host := range hosts {
			rest = max(rest, saturate(2*float64(v.backoffs[host].length)))
		}
		for _, host := range hosts {
			v.backoffs[host] = backoff{length: rest, until: saturate(float64(m.now) + float64(rest))}
		}
		m.emitEvent(Event{Kind: Disproved, Job: p.mover.record.Spec.Name, Device: p.to.config.Name,
			Host: strings.Join(hosts, ", "), Gain: p.gain, Saved: saved, Rest: rest})
		return true
	})
}

// isValid reports whether the jobs of both devices are still those that the move has left there, all training.
func (p *moveCheck) isValid() bool {
	for _, j := range p.jobs {
		if j.domain != j.domain || j.record.State != wire.Training {
			return false
		}
	}
	return len(p.from.reachableJobs())+len(p.to.reachableJobs()) == len(p.jobs)
}

// savedTime is what the move has saved, weighted as its gain was.
func (p *moveCheck) savedTime() time.Duration {
	var saved float64
	for _, j := range p.jobs {
		saved += j.weight * (float64(j.before) - float64(j.total)/float64(j.count-1))
	}
	return saturate(saved)
}

// awaitsCheck reports whether a device waits for what a move has saved, so that no job is to come or go by another.
func (v *migrations) awaitsCheck(d *domain) bool {
	return slices.ContainsFunc(v.checks, func(p *moveCheck) bool { return p.from == d || p.to == d })
}

// isInBackoff reports whether nothing is to move on a host now, since moves there were in vain.
func (m *Machine) isInBackoff(host string) bool { return m.now < m.migrations.backoffs[host].until }
