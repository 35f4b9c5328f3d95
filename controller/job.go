package controller

import (
	"slices"
	"time"

	"tensile/controller/learn"
	"tensile/controller/memory"
	"tensile/controller/plans"
	"tensile/graph"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// job is what a machine knows about a job, in parts by what they are for. Times are since the Unix epoch unless the
// comment says that they are lengths. Most fields count in some states only (wire.JobState): the comment names these,
// and elsewhere the field is zero or means nothing. A job that is over keeps its record alone.
type job struct {
	// domain is that of the device on which the job trains, or is to train. It is nil while no device is chosen.
	domain *domain
	// record is what is stored of the job and shown to users.
	record wire.Record
	// stored is the record as it was stored last. Zero: it was not stored yet.
	stored wire.Record
	// graph is nil once the job is over.
	graph *graph.Graph
	// batch is the submission with which the job came, as long as it is neither taken nor refused. nil: it is taken.
	batch *batch
	// trainingSince is when the job began to train or went on; for one that trained when the controller was started,
	// that moment. 0: it has not trained.
	trainingSince time.Duration
	// prepared says that the executor of a Starting job has it, and that it has not left Home yet.
	prepared bool
	// trace is the newest trace of the job that a user wants. Zero: nobody wants one.
	trace wire.Trace

	jobLatencies
	jobMemory
	jobPlace
	jobDamage
	jobReports
	// replica is the state that a replica has beyond other jobs.
	replica replicaState
}

// jobLatencies is how long the job's ops take, as plans reckon.
type jobLatencies struct {
	// profile has the latencies that were predicted or measured before the job began. It is nil until the first plans
	// for the job's device are made.
	profile *planner.Profile
	// latency holds, per op, how long the op takes when nothing else runs: the profile at first, then a moving average
	// of reports. It is nil without a profile.
	latency []time.Duration
	// latencySlack holds, per op, by how much latency may be off. It counts until latencies are measured. It may be
	// nil: the profile does not say.
	latencySlack []time.Duration
	// plannedLatency holds, per op, the latencies for which plans were requested last (s of TENSILE, section IV-E).
	plannedLatency []time.Duration
	// reportsSincePlan counts the reports since plans were requested last.
	reportsSincePlan int
	// measured says that latency follows measurements, of this job or of others with the same ops.
	measured bool
	// teacher is what learnt has the job's reports improve.
	teacher learn.Teacher
	// slowdown is how many times as long as alone the job's work takes beside the other jobs that train on the device
	// now. It counts while the job is Training, and is computed anew when the set of these jobs changes.
	slowdown float64
}

// jobMemory is what the job has, or may come to have, of the device and of the host.
type jobMemory struct {
	// leasePage is the page size, in bytes, in which leases of the job's device count. 0: jobs share no memory there.
	leasePage graph.Bytes
	// scriptNeed is how many bytes of the device a script's graph takes without a plan. 0 for other jobs.
	scriptNeed graph.Bytes
	// homeBytes is what the job has on the host between iterations whatever its plan: its slots, and snapshotBytes.
	homeBytes graph.Bytes
	// snapshotBytes is the room on the host for a snapshot. 0: the job takes no checkpoints.
	snapshotBytes graph.Bytes
	// formerLayout was in force before the present one. The executor still has it, as commands compare the two. nil:
	// there is none.
	formerLayout *layout
	// layouts are those that are in force or may become so, oldest first. The last is the newest plan, which may not be
	// granted yet. It is empty while the job has no plan.
	layouts []*layout
}

// jobPlace is what is known of where and when a Queued job may begin.
type jobPlace struct {
	// failedAt names executors at which the job could not begin. It is given to none of them until another process of
	// that name joins.
	failedAt []string
	// checkpointDeadline is when a Queued job fails that waits for an executor with its newest checkpoint. 0: it does
	// not wait for one.
	checkpointDeadline time.Duration
	// deviceChosen says that a placement search has decided: the Queued job is to begin on the device of domain.
	deviceChosen bool
	// unchecked says that it is not known yet whether the Queued job fits the budget even when it is alone.
	unchecked bool
	// onceFitted says that plans have shown that the job can run here. Then it waits where another job would fail.
	onceFitted bool
	// found is what was found out about a place for the Queued job. It counts until something changes on a device
	// (retryAdmission).
	found findings
	// pinned says that the job does not migrate: it was to leave, and its checkpoint could not be written. It counts
	// until a newer checkpoint was written.
	pinned bool
}

// jobDamage is why what is stored of the job cannot be used. Such a job is not planned for, but what its executor may
// have is counted.
type jobDamage struct {
	// damage is the reason in words. "": nothing is damaged.
	damage string
	// configMismatch is the part of damage that another configuration of the controller mends. "": there is none.
	configMismatch string
}

// jobReports is what reports have told of the job, and what is asked of them.
type jobReports struct {
	// lastReport is the newest report of an iteration with one of layouts. It is nil before the first.
	lastReport *wire.Report
	// wantsReport says that the policy wants a report of an iteration with the newest layout.
	wantsReport bool
	// policyReport is that report, until plans are requested with it. It is nil while none has come.
	policyReport *wire.Report
	// iterationTime is the time of an iteration, waiting included: a moving average of reports. 0: not known yet.
	iterationTime time.Duration
	// gateTime is the time per iteration that the job waits for page grants: a moving average of reports. 0: not known
	// yet, or none.
	gateTime time.Duration
	// losses are those that reports have told, of which the result is made if the executor is lost.
	losses losses
	// progress is what reports of the present incarnation have told.
	progress progress
	// counters count what the job has done since the controller was started.
	counters Counters
	// waiting is what the job waits for, and since when.
	waiting waiting
}

// findings are what was found out about a place for a queued job.
type findings struct {
	// noRoom says that a placement search has found no device that the job fits now.
	noRoom bool
	// packed says that a replica may share a device with its peers, because it fits none of the devices that have
	// fewest of them.
	packed bool
	// overtakable says that the job does not fit although nothing trains on its device, so that others may begin before
	// it.
	overtakable bool
}

// layout is a plan with offsets with which a job may train.
type layout struct {
	plans.ProvenLayout
	// granted says that the job may train with it; it never becomes false but for a grant that no executor has.
	granted bool
	// delivered says that it was stored where the job's executor finds it.
	delivered bool
	// scriptHeld is how many bytes a script holds beside the arena. 0 for other jobs.
	scriptHeld graph.Bytes
	// traffic is nil until an iteration with the layout was reported.
	traffic *traffic
}

// claimWith is what the job claims while it trains with a layout.
func (j *job) claimWith(l *layout) memory.Claim {
	if j.record.Spec.Script {
		c := memory.Exclusive(memory.WholePages(l.Wire.Arena+l.scriptHeld+j.allocatorReserve(), j.leasePage))
		if j.isStale(l) { // the script does not keep to its former plan any more
			c = c.Union(memory.Exclusive(j.unplannedBytes()))
		}
		return c
	}
	return l.ClaimOrArena()
}

// isActive reports whether the job is planned for.
func (j *job) isActive() bool {
	return j.record.State != wire.JobQueued && j.record.State != wire.JobParked && !j.record.State.Over()
}

// canChangePlan reports whether the job is admitted and may change to new plans.
func (j *job) canChangePlan() bool {
	return j.damage == "" && (j.record.State == wire.JobStarting || j.record.State == wire.JobRunning)
}

// hasExecutor reports whether an executor has the job, or is to have it. A job that is parked in memory has one.
func (j *job) hasExecutor() bool { return j.record.Executor != "" && !j.record.State.Over() }

// newestLayout is the layout of the newest plan. nil: there is none yet.
func (j *jobMemory) newestLayout() *layout {
	if len(j.layouts) == 0 {
		return nil
	}
	return j.layouts[len(j.layouts)-1]
}

// claim is what the job counts with: the largest arena that it may have now, or may come to have by what it was
// granted. Where gates share memory, a job that cannot be reached counts with its whole arena, which it may have for as
// long as that lasts.
func (j *job) claim() memory.Claim {
	c := j.grantedClaim()
	if j.record.State == wire.JobUnknown {
		return memory.Exclusive(c.Arena)
	}
	return c
}

// grantedClaim is what the job may have by what it was granted.
func (j *job) grantedClaim() (c memory.Claim) {
	if j.record.State.Over() {
		return c
	}
	if j.damage != "" && !j.hasExecutor() {
		return c
	}
	if j.damage != "" {
		return memory.Exclusive(j.record.Claim) // the executor goes on with the memory that it has
	}
	for _, l := range j.layouts {
		if l.granted {
			c = c.Union(j.claimWith(l))
		}
	}
	return c
}

// mayApply reports whether the layout of an epoch was granted and is not superseded. An executor that names another
// epoch is mistaken, and no reason to forget layouts.
func (j *jobMemory) mayApply(epoch int64) bool {
	return slices.ContainsFunc(j.layouts, func(l *layout) bool { return l.granted && l.Epoch() == epoch })
}

// deliveredLayouts are the layouts that are, or will be, stored for the job's executor.
func (j *jobMemory) deliveredLayouts() []*layout {
	if j.formerLayout == nil {
		return j.layouts
	}
	return append([]*layout{j.formerLayout}, j.layouts...)
}

// addLayout makes a layout the newest. The newest before it is forgotten if it was not granted.
func (j *job) addLayout(l *plans.ProvenLayout, reason string) {
	if last := j.newestLayout(); last != nil && !last.granted {
		j.layouts = j.layouts[:len(j.layouts)-1]
	}
	if j.record.Granted == 0 {
		j.record.Cleared = l.Epoch() - 1 // a revoked layout may still be stored for the executor
	}
	j.layouts = append(j.layouts, &layout{ProvenLayout: *l, scriptHeld: j.record.Spec.Held})
	j.record.Epoch = l.Epoch()
	j.record.PlansMade, j.record.PlanReason, j.record.Unplanned = j.record.PlansMade+1, reason, ""
}

// revokeGrant takes back the grant of a job that no executor has.
func (j *job) revokeGrant() {
	if l := j.newestLayout(); l != nil {
		l.granted, j.layouts, j.record.Granted, j.record.Cleared = false, []*layout{l}, 0, l.Epoch()-1
	}
}

// priority is that of the job, at least 1.
func (j *job) priority() int { return max(1, j.record.Spec.Priority) }

// slack is by how much latencies may be off, per op. nil: they are measured, or nothing is known.
func (j *jobLatencies) slack() []time.Duration {
	if j.measured {
		return nil
	}
	return j.latencySlack
}
