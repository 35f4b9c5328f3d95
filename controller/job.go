package controller

import (
	"slices"
	"time"

	"tensile/graph"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// job is what a machine knows about a job.
type job struct {
	domain  *domain // that of the device on which it trains, or is to; nil: that is not known yet
	record  wire.Record
	written wire.Record // as it was stored last
	graph   *graph.Graph
	profile *planner.Profile // nil: not made yet
	page    graph.Bytes      // in which leases count; 0: memory is not shared
	latency []time.Duration  // per op, as if it ran alone: the profile, then a moving average of what was measured
	stretch float64          // how many times as long as alone its work takes beside the other jobs that train
	spare   []time.Duration  // per op: by how much the latency may be off, before anything was measured; may be nil
	assumed []time.Duration  // latencies when plans were last asked for (s of TENSILE, section IV-E)
	reports int              // since then
	learnt  bool             // latencies were measured, of this job or of others with the same ops
	lessons []*lesson        // per op: what its reports teach; nil: none has yet
	warm    int64            // the incarnation of which a report has come
	told    *wire.Report     // the newest; nil: none has come
	pace    time.Duration    // of an iteration: a moving average; 0: not known yet
	gate    time.Duration    // that it waits for the lease in an iteration: likewise
	heard   losses
	tried   []string      // executors at which it could not begin
	lacking time.Duration // until then it waits for an executor that has its newest checkpoint; 0: it does not
	chosen  bool          // it was tried on several devices, and is to begin on this one
	hurt    string        // why it is held: what is stored of it is damaged; "": it is not
	other   string        // why it wants a controller that was started otherwise
	held    bool          // it waits for what other tenants are owed
	stays   bool          // it was to move, and its checkpoint was not written: it stays until one was
	full    bool          // it fits none of these, as long as nothing changes
	dense   bool          // a replica that is tried beside siblings, since it fits nowhere else
	batch   *batch        // with which it was submitted; nil: it was taken
	fresh   bool          // whether it fits the budget alone is not known yet
	fitted  bool          // it once did
	passed  bool          // it does not fit although nothing trains on its device: it holds nobody up until some leave
	stuck   bool          // it waits for a larger budget, or for what executors out of reach have, and holds nobody up
	wants   graph.Bytes   // on the host, for which it waits
	ready   time.Duration // it waits at least until then, after its executor was lost
	begun   time.Duration // when it began to train, or went on
	there   bool          // its executor has it, and it has not left Home yet
	trace   wire.Trace    // of what it does, that somebody wants
	follow  bool          // the policy wants a report of the newest layout
	last    *wire.Report  // which is this; nil: none has come
	need    graph.Bytes   // of a script: of its graph, without a plan
	home    graph.Bytes   // that it has on the host, whatever its plan
	beside  graph.Bytes   // of that: beside its host slots
	former  *layout       // that was in force before; commands compare the present one with it
	layouts []*layout     // those that may be in force or become so, oldest first; the last is the newest plan

	sibling sibling // of a replica

	tally    Tally
	progress progress
	queued   time.Duration // since when it is queued, as far as this controller knows; 0: it is not
}

// layout is one that a job may train with.
type layout struct {
	ProvenLayout
	granted   bool
	delivered bool        // it is where the executor finds it
	held      graph.Bytes // by a script, beside the arena
	traffic   *traffic    // nil: no iteration with it was reported
}

func (l *ProvenLayout) epoch() int64 { return l.Wire.Plan.Epoch }

// claim is what a job counts with while it trains with the layout.
func (l *ProvenLayout) claim() Claim {
	if l.Claim == nil {
		return whole(l.Wire.Arena)
	}
	return *l.Claim
}

// with is what the job counts with while it trains with a layout.
func (j *job) with(l *layout) Claim {
	if j.record.Spec.Script {
		c := whole(j.pages(l.Wire.Arena + l.held + j.reserve()))
		if j.stale(l) { // to which nothing holds it any more
			c = c.or(whole(j.plain()))
		}
		return c
	}
	return l.claim()
}

// active reports whether the job is planned for.
func (j *job) active() bool {
	return j.record.State != wire.Queued && j.record.State != wire.Parked && !j.record.State.Over()
}

// goesOn reports whether a job that is active may change to new plans.
func (j *job) goesOn() bool {
	return j.hurt == "" && (j.record.State == wire.Starting || j.record.State == wire.Training)
}

// placed reports whether an executor has the job, or is to have it: also one that is parked in memory there.
func (j *job) placed() bool { return j.record.Executor != "" && !j.record.State.Over() }

// newest is the layout of the last plan, nil before the first.
func (j *job) newest() *layout {
	if len(j.layouts) == 0 {
		return nil
	}
	return j.layouts[len(j.layouts)-1]
}

// claim is what the job counts with: the largest arena that it may have now or come to have by what it was granted.
// Where gates share memory one that cannot be reached counts whole: it may hold its arena for as long as that lasts.
func (j *job) claim() Claim {
	c := j.granted()
	if j.record.State == wire.Unknown {
		return whole(c.Arena)
	}
	return c
}

// granted is what the job may have by what it was granted.
func (j *job) granted() (c Claim) {
	if j.record.State.Over() {
		return c
	}
	if j.hurt != "" && !j.placed() {
		return c
	}
	if j.hurt != "" {
		return whole(j.record.Claim) // its executor goes on with what it has
	}
	for _, l := range j.layouts {
		if l.granted {
			c = c.or(j.with(l))
		}
	}
	return c
}

// mayApply reports whether a layout was granted that has not been superseded. An executor that names another epoch is
// mistaken, and no reason to forget layouts.
func (j *job) mayApply(epoch int64) bool {
	return slices.ContainsFunc(j.layouts, func(l *layout) bool { return l.granted && l.epoch() == epoch })
}

// applied takes down that the layout of an epoch is in force, and forgets older ones. It returns those that are of no
// use to anybody.
func (j *job) applied(epoch int64) (useless []*layout) {
	was := j.record.Applied
	j.record.Applied, j.record.Plans = epoch, j.record.Plans+1
	if j.former != nil {
		useless = append(useless, j.former)
		j.former = nil
	}
	j.layouts = slices.DeleteFunc(j.layouts, func(l *layout) bool {
		switch {
		case l.epoch() >= epoch:
			return false
		case l.epoch() == was:
			j.former = l
		default:
			useless = append(useless, l)
		}
		return true
	})
	if at := slices.IndexFunc(j.layouts, func(l *layout) bool { return l.epoch() == epoch }); at >= 0 {
		j.record.Arena, j.record.SlotPeak = j.layouts[at].Wire.Arena, j.layouts[at].Peak
	}
	return useless
}

// given are the layouts that an executor has been given and that still lie there.
func (j *job) given() []*layout {
	if j.former == nil {
		return j.layouts
	}
	return append([]*layout{j.former}, j.layouts...)
}

// plan makes a layout the newest. One that was not granted yet will never be.
func (j *job) plan(l *ProvenLayout, reason string) {
	if last := j.newest(); last != nil && !last.granted {
		j.layouts = j.layouts[:len(j.layouts)-1]
	}
	if j.record.Granted == 0 {
		j.record.Cleared = l.epoch() - 1 // one that was revoked may still lie where it was delivered
	}
	j.layouts = append(j.layouts, &layout{ProvenLayout: *l, held: j.record.Spec.Held})
	j.record.Epoch = l.epoch()
	j.record.PlansMade, j.record.Reason, j.record.Unplanned = j.record.PlansMade+1, reason, ""
}

// revoke takes back what a job was granted that no executor has.
func (j *job) revoke() {
	if l := j.newest(); l != nil {
		l.granted, j.layouts, j.record.Granted, j.record.Cleared = false, []*layout{l}, 0, l.epoch()-1
	}
}

func (j *job) priority() int { return max(1, j.record.Spec.Priority) }

// slack is by how much latencies may be off: nothing once they are measured.
func (j *job) slack() []time.Duration {
	if j.learnt {
		return nil
	}
	return j.spare
}
