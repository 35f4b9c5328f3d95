package controller

import (
	"slices"
	"strings"
	"time"

	"tensile/controller/plans"
	"tensile/wire"
)

// The plans for a migration know nothing of what devices of one host share, such as the processors of two cpu devices
// or a link of two GPUs. There a migration may not keep what its plans promise. So the jobs of both devices are timed
// after it. If it has saved less than half of the promised time, no job migrates on its hosts for a while, and for
// twice as long after each further one, until a migration keeps its promise. A controller that is started again has
// forgotten that.

const (
	checkIterations = 8                // how many iterations of each job are timed after a migration
	firstCoolDown   = 10 * time.Minute // how long no job migrates on a host after the first migration in vain
)

// moveCheck times the jobs of two devices after a migration, and compares that with the time before.
type moveCheck struct {
	mover    *job
	from, to *domain
	// gain is the weighted time that plans promised to save.
	gain time.Duration
	// arrived says that mover trains at its target: timing has begun.
	arrived bool
	jobs    []timedJob
}

// timedJob is a job whose iterations are timed.
type timedJob struct {
	*job
	// domain is where the job is after the migration.
	domain *domain
	// weight is what a second less per iteration is worth, over the iterations that count.
	weight float64
	// before is the time of an iteration before the migration.
	before time.Duration
	// total is the time of all iterations that were timed.
	total time.Duration
	// count is how many iterations were reported since the migration. The first is not timed, as it may have begun
	// before.
	count int
}

// coolDown is for how long no job migrates on a host, after migrations that did not pay.
type coolDown struct {
	length time.Duration
	until  time.Duration // since the Unix epoch
}

// newMoveCheck returns the check of a migration, which times the jobs of both devices. nil: of one of them it is not
// known how fast it is now.
func (t *migration) newMoveCheck(gain time.Duration) *moveCheck {
	p := &moveCheck{mover: t.job, from: t.fromOffer.domain, to: t.to, gain: gain}
	add := func(j *job, on *domain) {
		was := j.iterationTime // the average lags behind where jobs came lately
		if was > 0 {
			was = max(was, scaleTime(plans.TotalTime(j.domain.plannedLatencies(j)), j.plannedSlowdown()))
		}
		p.jobs = append(p.jobs, timedJob{job: j, domain: on, weight: t.weight(j) * float64(on.gainIterations(j)),
			before: was})
	}
	if t.fromOffer.request != nil {
		for _, j := range t.fromOffer.request.jobs {
			add(j, t.fromOffer.domain)
		}
	}
	for _, j := range t.toOffer.request.jobs { // the job that migrates is the last
		add(j, t.to)
	}
	if slices.ContainsFunc(p.jobs, func(j timedJob) bool { return j.before == 0 }) {
		return nil
	}
	return p
}

// timeIteration records what an iteration of a job took, for the migrations whose gain is being timed.
func (v *migrations) timeIteration(j *job, took time.Duration) {
	for _, p := range v.checks {
		at := slices.IndexFunc(p.jobs, func(o timedJob) bool { return o.job == j })
		if !p.arrived || at < 0 || j.record.State != wire.JobRunning {
			continue
		}
		o := &p.jobs[at]
		if o.count++; o.count > 1 {
			o.total += took
		}
	}
}

// judgeMoveChecks ends the checks after which all jobs were timed, and those that show nothing, as jobs have come or
// gone.
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
				delete(v.coolDowns, host)
			}
			return true
		}
		rest := firstCoolDown
		for _, host := range hosts {
			rest = max(rest, saturate(2*float64(v.coolDowns[host].length)))
		}
		for _, host := range hosts {
			v.coolDowns[host] = coolDown{length: rest, until: saturate(float64(m.now) + float64(rest))}
		}
		m.emitEvent(Event{Kind: Disproved, Job: p.mover.record.Spec.Name, Device: p.to.config.Name,
			Host: strings.Join(hosts, ", "), Benefit: Benefit{Gain: p.gain, Saved: saved, Rest: rest}})
		return true
	})
}

// isValid reports whether the jobs of both devices are still those that the migration has left there, and all train.
func (p *moveCheck) isValid() bool {
	for _, j := range p.jobs {
		if j.job.domain != j.domain || j.record.State != wire.JobRunning {
			return false
		}
	}
	return len(p.from.reachableJobs())+len(p.to.reachableJobs()) == len(p.jobs)
}

// savedTime is what the migration has saved, weighted as its gain was.
func (p *moveCheck) savedTime() time.Duration {
	var saved float64
	for _, j := range p.jobs {
		saved += j.weight * (float64(j.before) - float64(j.total)/float64(j.count-1))
	}
	return saturate(saved)
}

// awaitsCheck reports whether the gain of a migration from or to a device is being timed, so that no other job is to
// migrate there.
func (v *migrations) awaitsCheck(d *domain) bool {
	return slices.ContainsFunc(v.checks, func(p *moveCheck) bool { return p.from == d || p.to == d })
}

// isInCoolDown reports whether no job is to migrate on a host now, because migrations there did not pay.
func (m *Machine) isInCoolDown(host string) bool { return m.now < m.migrations.coolDowns[host].until }
