// Package place decides on which device a job trains.
//
// A job is tried on several devices: one is asked for plans for the jobs that train there, those that wait for it alone
// and the job. The job goes to the device where the sum over jobs of weight x slowdown grows least by these plans. Of
// equal sums the first device by name is taken.
//
// Not all devices are asked. The latencies of the jobs give a lower bound of the growth, whatever the plans. Devices
// are asked in the order of these bounds until none of the others can be better than the best answer; of devices that
// are alike only the first by name is asked.
package place

import (
	"math"
	"reflect"
	"slices"
	"time"

	"tensile/controller/plans"
	"tensile/graph"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// Search is the search of a device for a job. Its value says what was found out so far.
type Search struct {
	// Offers has one offer for each device, by name.
	Offers []Offer
	// Weight is what the job's slowdown is worth.
	Weight float64
}

// Offer is one device of a search.
type Offer struct {
	// Prospect is the device with the job. nil: something that bounds depend on is not known yet.
	Prospect *Prospect
	// Promise is nil until the device was asked and has answered.
	Promise *Promise
}

// Promise is what the plans of a device promise.
type Promise struct {
	// Others is by how much the sum of the weighted slowdowns of the other jobs grows.
	Others float64
	// Job is the plan for the job. nil: the job does not fit now.
	Job *plans.PlannedJob
	// Never says that the job can never run on the device.
	Never bool
	// Lacks is how many bytes are missing for a job that does not fit.
	Lacks graph.Bytes
}

// Prospect is a device with the job of a search, as it was when it was first looked at: all that plans depend on.
type Prospect struct {
	// Facts are the device's, but for its name.
	Facts any
	// Jobs are those that are planned for, the job of the search last.
	Jobs []plans.Candidate
	// Slowdowns are the present ones of the other jobs.
	Slowdowns []float64
	// Demands are those of Jobs.
	Demands []planner.Demand
	// TimeAlone is how long an iteration of the job of the search takes alone.
	TimeAlone time.Duration
	// TooSmall says that single ops need more memory than there is.
	TooSmall bool
	// Reserved and HostReserved are what others may have of the device and of its host.
	Reserved, HostReserved graph.Bytes
	// Contexts are those of processes that stay.
	Contexts wire.Contexts
	// HasWaiting says that other jobs wait for the device.
	HasWaiting bool
}

// Next is the index of the offer whose device is to be asked next. -1: no other can be better than the best answer.
func (t *Search) Next() int {
	for i := range t.Offers {
		if o := &t.Offers[i]; o.Prospect == nil && o.Promise == nil {
			return i
		}
	}
	fastest := t.fastestAlone()
	next, least := -1, 0.0
	for i := range t.Offers {
		o := &t.Offers[i]
		asked := func(b Offer) bool { return b.Promise != nil && o.isAlike(&b) }
		if o.Promise != nil || slices.ContainsFunc(t.Offers, asked) {
			continue
		}
		if bound := o.Prospect.lowerBound(fastest); next < 0 || bound < least {
			next, least = i, bound
		}
	}
	best := t.Best()
	if next < 0 || best < 0 {
		return next
	}
	if grows := t.growth(best, fastest); grows < least || grows == least && best < next {
		return -1
	}
	return next
}

// Best is the index of the offer by which the sum of weighted slowdowns grows least, of those with plans. -1: the job
// fits none of the devices that were asked. The job's own slowdown counts against its speed alone on the fastest of all
// devices.
func (t *Search) Best() int {
	fastest := t.fastestAlone()
	best, least := -1, 0.0
	for i, o := range t.Offers { // by name
		if o.Promise == nil || o.Promise.Job == nil {
			continue
		}
		if grows := t.growth(i, fastest); best < 0 || grows < least {
			best, least = i, grows
		}
	}
	return best
}

// LeastLacking is the index of the offer that lacks least of the memory that the job needs, of the devices on which it
// might fit. -1: there is none.
func (t *Search) LeastLacking() int {
	nearest := -1
	for i, o := range t.Offers {
		if o.Promise == nil || o.Promise.Never { // a device that was not asked is like one that was
			continue
		}
		if nearest < 0 || o.Promise.Lacks < t.Offers[nearest].Promise.Lacks {
			nearest = i
		}
	}
	return nearest
}

// growth is by how much the sum of weighted slowdowns grows by the plans of an offer.
func (t *Search) growth(at int, fastest time.Duration) float64 {
	a := t.Offers[at].Promise
	return a.Others + t.Weight*a.Job.Slowdown*float64(a.Job.Alone)/float64(fastest)
}

// fastestAlone is how long an iteration of the job takes alone on the fastest of the devices.
func (t *Search) fastestAlone() time.Duration {
	fastest := time.Duration(math.MaxInt64)
	for _, o := range t.Offers {
		switch {
		case o.Promise != nil && o.Promise.Job != nil && o.Promise.Job.Alone > 0:
			fastest = min(fastest, o.Promise.Job.Alone)
		case o.Prospect != nil:
			fastest = min(fastest, max(1, o.Prospect.TimeAlone))
		}
	}
	return fastest
}

// lowerBound is by how much the sum of weighted slowdowns grows at least on a device.
func (p *Prospect) lowerBound(fastest time.Duration) float64 {
	switch {
	case p == nil:
		return math.Inf(-1)
	case p.TooSmall:
		return math.Inf(1)
	}
	demands := slices.Clone(p.Demands)
	last := &demands[len(demands)-1]
	last.Weight *= float64(p.TimeAlone) / float64(fastest)
	var was float64
	for i, slowdown := range p.Slowdowns {
		was += demands[i].Weight * slowdown
	}
	return planner.LeastSlowdowns(demands) - was
}

// isAlike reports whether plans with the job on a device are those on another, and as much better or worse than the
// present ones.
func (o *Offer) isAlike(b *Offer) bool {
	p, q := o.Prospect, b.Prospect
	return p != nil && q != nil && !p.HasWaiting && !q.HasWaiting && p.Reserved == q.Reserved &&
		p.HostReserved == q.HostReserved && p.Contexts == q.Contexts && slices.Equal(p.Slowdowns, q.Slowdowns) &&
		slices.Equal(p.Demands, q.Demands) && slices.EqualFunc(p.Jobs, q.Jobs, isSameCandidate) &&
		reflect.DeepEqual(p.Facts, q.Facts)
}

// isSameCandidate reports whether two jobs get the same plans.
func isSameCandidate(c, e plans.Candidate) bool {
	return c.LastReport == nil && e.LastReport == nil && c.Spec.Graph == e.Spec.Graph &&
		c.Spec.Priority == e.Spec.Priority && c.Spec.SwapRate == e.Spec.SwapRate && c.Spec.Least == e.Spec.Least &&
		c.Measured == e.Measured && c.Unchecked == e.Unchecked && c.HostExtra == e.HostExtra &&
		c.HostParked == e.HostParked && c.DeviceExtra == e.DeviceExtra && c.StartsProcess == e.StartsProcess &&
		slices.Equal(c.Latency, e.Latency) && slices.Equal(c.Slack, e.Slack)
}
