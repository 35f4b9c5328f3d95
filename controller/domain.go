package controller

import (
	"iter"
	"time"

	"tensile/graph"
	"tensile/predictor/correct"
	"tensile/wire"
)

// domain is a device and all that is planned for on it together: its facts and budget, what its jobs claim, the plans
// that are being made, and what was learnt of it.
type domain struct {
	m      *Machine
	config Config // the machine's, with the facts of this device

	line     correct.Line // by which profiles are wrong on the device, as the jobs so far have shown
	learnt   learnt
	training []*job // those whose stretches are worked out

	errand *errand       // the plans that are being made; nil: none
	rest   time.Duration // until when no drift of latencies has plans made
	want   wants
	noPlan string // that and why there were no new plans, as it was said last; "": there were some
	opened int    // processes that had the device open, or were to, at the end of the last step

	lease wire.Lease // what leases have to give; zero where jobs share no memory
}

// open returns the domain of a device of which nothing is known yet but what the configuration says.
func (m *Machine) open(c Config) *domain {
	d := &domain{m: m, config: c, learnt: restoreLearnt(c.Device, nil)}
	m.domains = append(m.domains, d)
	return d
}

// jobs are those of the device, in the order of their submission, also those that are over.
func (d *domain) jobs() iter.Seq[*job] {
	return func(yield func(*job) bool) {
		for _, j := range d.m.jobs {
			if j.domain == d && !yield(j) {
				return
			}
		}
	}
}

// executors are those that have the device open, or are to.
func (d *domain) executors() iter.Seq[*executor] {
	return func(yield func(*executor) bool) {
		for _, x := range d.m.executors {
			if x.domain == d && !yield(x) {
				return
			}
		}
	}
}

// heldBy is what older incarnations of a job may still have of this device and on its host, whichever device the job is
// on now.
func (d *domain) heldBy(j *job) (bytes, host graph.Bytes) {
	for _, h := range j.record.Held {
		if d.m.domainOf(&h) == d {
			bytes, host = bytes+h.Bytes, host+h.Host
		}
	}
	return bytes, host
}

// held is that of all jobs.
func (d *domain) held() (bytes, host graph.Bytes) {
	for _, j := range d.m.jobs {
		b, h := d.heldBy(j)
		bytes, host = bytes+b, host+h
	}
	return bytes, host
}

// domainOf is the domain of the device of which a holding is.
func (m *Machine) domainOf(*wire.Holding) *domain { return m.own }

// admit has the jobs of a device looked at that wait, since they may fit now.
func (m *Machine) admit(d *domain) { d.want.admission = true }
