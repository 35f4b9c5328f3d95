package controller

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tensile/controller/fleet"
	"tensile/controller/plans"
	"tensile/graph/text"
	"tensile/plan/program"
	"tensile/predictor/correct"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// A job that trains migrates to another device when that gains more than it costs: it leaves with a checkpoint and goes
// on there. Gains and costs are seconds, weighted by what jobs are worth, as those of new plans are.
//
// The gain is the time that the next iterations of all jobs of both devices take less. Config.Horizon iterations of
// each job count, or as many as are left.
//
// The cost is the time of the changes of plan of the other jobs, and the pause of the job that migrates: the iterations
// in flight, the copies of its ways to Home and out of it, a checkpoint written and read, and what migrations so far
// took beyond that.
//
// The sum over all jobs of weight x slowdown has to fall as well, each slowdown against the job's speed alone on the
// fastest of its devices. As long as no job comes or goes, only migrations change where jobs are. Each lowers that sum,
// so that later ones never undo it.
//
// Lower bounds say first which migrations may pay (planner.LeastSlowdowns). Few of them are planned for. One job
// migrates at a time.

// CheckpointRate is the rate, in bytes per second, at which a job's first checkpoint is expected to be written, and to
// be read.
const CheckpointRate = 500e6

const (
	lookEvery  = time.Second // the shortest time between two comparisons of devices
	maxOptions = 4           // how many options are planned for after a comparison
)

// migrations are the jobs that may go to another device, or are on their way. Times are since the Unix epoch.
type migrations struct {
	// dirty says that something has changed since devices were last compared.
	dirty bool
	// notBefore is when devices may be compared again. 0: at any time.
	notBefore time.Duration
	// pause is the length of time that a migration takes beyond what is estimated: a moving average.
	pause time.Duration
	// options are those that are still to be planned for, the best first.
	options []migrationOption
	// current is the migration that is being planned for. nil: none is.
	current *migration
	// mover is the job that is on its way. nil: none is.
	mover *job
	// target is where mover goes. nil: none goes, or this controller did not see it leave.
	target *domain
	// leftAt is when mover was told to leave.
	leftAt time.Duration
	// expectedPause is the estimate for mover, without pause.
	expectedPause time.Duration
	// checks are the migrations whose gain is being timed.
	checks []*moveCheck
	// coolDowns has the hosts on which migrations did not pay.
	coolDowns map[string]coolDown
}

// migrationOption is a migration that may pay by the lower bounds.
type migrationOption struct {
	job *job
	to  *domain
	// maxNetGain is the most that it may gain beyond its cost, in weighted nanoseconds.
	maxNetGain float64
}

// migration is an option that is being planned for: first the target with the job, then the source without it.
type migration struct {
	migrationOption
	fromOffer, toOffer offer
	// weight is what a job's second is worth (jobWorth).
	weight func(*job) float64
	// pause is the length of time for which the job is expected not to train.
	pause time.Duration
}

// wakeMigrations has devices compared for migrations, because something has changed.
func (m *Machine) wakeMigrations() { m.migrations.dirty = true }

// migrate looks for a job that another device would serve better, and has it migrate.
func (m *Machine) migrate() {
	v := &m.migrations
	if m.config.NoMoves || m.config.NoReplan || len(m.domains) < 2 {
		return
	}
	m.followMigration()
	m.judgeMoveChecks()
	if v.current != nil {
		m.advanceMigration()
	}
	for len(v.options) > 0 && v.current == nil && v.mover == nil {
		o := v.options[0]
		if v.options = v.options[1:]; m.canMigrateNow(o.job, o.to) && !m.isSearchPending() {
			m.requestMigrationPlans(o)
		}
	}
	if v.current != nil || v.mover != nil || !v.dirty || m.now < v.notBefore || m.isSearchPending() {
		return
	}
	if v.options = m.findMigrations(); len(v.options) > 0 {
		m.migrate()
	}
}

// isSearchPending reports whether a search for a queued job is going on or due, which comes first.
func (m *Machine) isSearchPending() bool { return m.search != nil || m.needsPlacement }

// followMigration checks how far the job is that is on its way.
func (m *Machine) followMigration() {
	v := &m.migrations
	j := v.mover
	if j == nil {
		return
	}
	switch s := j.record.State; {
	case s == wire.JobParking && j.record.Target != "", s == wire.JobQueued && j.deviceChosen, s == wire.JobStarting:
		return
	case s == wire.JobRunning && j.domain == v.target:
		v.pause = correct.Latency(v.pause, max(0, m.now-v.leftAt-v.expectedPause), m.config.Alpha, false)
		for _, p := range v.checks {
			p.arrived = p.arrived || p.mover == j
		}
	}
	v.mover, v.target, v.dirty = nil, nil, true
}

// isIdle reports whether no plans are made or due on a device that executors have registered, so that it can be
// compared with others.
func (d *domain) isIdle() bool {
	return d.registered != nil && d.request == nil && !d.hasUrgentWork()
}

// mayMigrate reports whether a job may leave its device, now or when it has trained there for a turn.
func (j *job) mayMigrate() bool {
	r := &j.record
	return r.State == wire.JobRunning && j.domain.registered != nil && !r.Spec.Script && !j.pinned &&
		r.Spec.Replica == (wire.Replica{}) && r.Spec.Checkpoint != (wire.Interval{}) && r.Spec.Device == "" &&
		r.Iteration < r.Spec.Iterations && r.Applied == r.Epoch
}

// canMigrateNow reports whether a job may migrate to a device now.
func (m *Machine) canMigrateNow(j *job, to *domain) bool {
	return j.mayMigrate() && m.now-j.trainingSince >= j.domain.config.Turn && j.domain != to && j.domain.isIdle() &&
		to.isIdle() &&
		to.canTakeOver(j) && m.mayMigrateTo(j, to)
}

// mayMigrateTo reports whether earlier migrations let a job go to a device.
func (m *Machine) mayMigrateTo(j *job, to *domain) bool {
	v := &m.migrations
	return !v.awaitsCheck(j.domain) && !v.awaitsCheck(to) && !slices.ContainsFunc(hostsOf(j.domain, to), m.isInCoolDown)
}

// canTakeOver reports whether a job may go on at a device: with the same bits, at an executor that finds its
// checkpoint, and not throttled there.
func (d *domain) canTakeOver(j *job) bool {
	here := d.m.executors[j.record.Executor]
	if !slices.Contains(d.m.domains, d) || !d.mayTake(j) || here == nil || !d.hasSameBits(j) {
		return false
	}
	if _, held := d.throttles(j); held {
		return false
	}
	for x := range d.executors() {
		if x.State == fleet.Present && x.Folder != "" && x.Folder == here.Folder &&
			!slices.Contains(j.failedAt, x.Name) {
			return true
		}
	}
	return false
}

// hasSameBits reports whether a device computes the bits of the one on which a job trains, or the job may go on with
// others.
func (d *domain) hasSameBits(j *job) bool {
	return d.config.Device == j.domain.config.Device || j.record.Spec.AnyDevice
}

// hostsOf are the hosts of two devices that executors have registered.
func hostsOf(a, b *domain) []string {
	return slices.Compact([]string{a.registered.Host, b.registered.Host})
}

// deviceView is a device as the lower bounds see it.
type deviceView struct {
	jobs []*job
	// demands are those of jobs. They are weighted by the time of an iteration alone, times the iterations that count.
	demands []planner.Demand
	// slowdowns is the sum of the present slowdowns, weighted in the same way.
	slowdowns float64
}

// viewForBounds is the device as the lower bounds see it. nil: the device is not idle, or something that the bounds
// need is not known.
func (d *domain) viewForBounds(weight func(*job) float64) *deviceView {
	if !d.isIdle() {
		return nil
	}
	v := &deviceView{jobs: d.reachableJobs()}
	for _, j := range v.jobs {
		demand, known := d.demandOf(j, weight)
		if !known {
			return nil
		}
		v.demands = append(v.demands, demand)
		v.slowdowns += demand.Weight * j.plannedSlowdown()
	}
	return v
}

// demandOf is what a job needs of a device, weighted by what counts of its time alone there.
func (d *domain) demandOf(j *job, weight func(*job) float64) (demand planner.Demand, known bool) {
	e, known := d.expectationOf(j)
	if !known {
		return demand, false
	}
	demand = e.profile.Demand(e.latency, d.config.Sharing)
	demand.Weight = weight(j) * float64(d.gainIterations(j)) * float64(plans.TotalTime(e.latency))
	return demand, true
}

// gainIterations is how many iterations of a job a gain counts for.
func (d *domain) gainIterations(j *job) int {
	return max(0, min(d.config.Horizon, j.record.Spec.Iterations-j.record.Iteration))
}

// plannedSlowdown is the slowdown that is expected of a job by its plan. 1: nothing is.
func (j *job) plannedSlowdown() float64 { return cmp.Or(j.record.Slowdown, 1) }

// findMigrations are the migrations that may pay by the lower bounds, the best first. Of equal ones, as to devices that
// are alike, only the first by name is among them.
func (m *Machine) findMigrations() (options []migrationOption) {
	v := &m.migrations
	v.dirty, v.notBefore = false, m.now+lookEvery
	weight := m.jobWorth()
	views := make(map[*domain]*deviceView)
	for _, d := range m.domains {
		if views[d] = d.viewForBounds(weight); views[d] == nil && d.registered != nil {
			v.dirty = true // the device is compared when it is idle
		}
	}
	demands := make(map[profileKey]planner.Demand) // their weight is 1
	seen := make(map[float64]bool)
	for _, from := range m.domains {
		here := views[from]
		if here == nil {
			continue
		}
		for at, j := range here.jobs {
			if !j.mayMigrate() {
				continue
			}
			if m.now-j.trainingSince < from.config.Turn {
				v.dirty = true
				continue
			}
			gained := here.slowdowns - planner.LeastSlowdowns(slices.Delete(slices.Clone(here.demands), at, at+1))
			gained -= weight(j) * float64(m.migrationPause(j))
			for _, to := range m.domains {
				there := views[to]
				if there == nil || to == from {
					continue
				}
				if !m.mayMigrateTo(j, to) {
					v.dirty = true
					continue
				}
				k := to.profileKeyOf(j)
				demand, known := demands[k]
				if !known {
					if demand, known = to.demandOf(j, func(*job) float64 { return 1 }); known {
						demand.Weight /= float64(max(1, to.gainIterations(j)))
						demands[k] = demand
					} else { // the job was never planned for there: what it needs here is the guess
						demand = here.demands[at]
						demand.Weight /= weight(j) * float64(max(1, from.gainIterations(j)))
					}
				}
				demand.Weight *= weight(j) * float64(to.gainIterations(j))
				grows := planner.LeastSlowdowns(append(slices.Clone(there.demands), demand)) - there.slowdowns
				if pays := gained - grows; pays > 0 && !seen[pays] && to.canTakeOver(j) {
					seen[pays] = true
					options = append(options, migrationOption{j, to, pays})
				}
			}
		}
	}
	slices.SortStableFunc(options, func(a, b migrationOption) int { return cmp.Compare(b.maxNetGain, a.maxNetGain) })
	return options[:min(len(options), maxOptions)]
}

// migrationPause is for how long a job that migrates is expected not to train, without the copies out of Home at its
// target.
func (m *Machine) migrationPause(j *job) time.Duration {
	flying := scaleTime(j.timeAlone(), j.plannedSlowdown())
	pause := m.migrations.pause + flying + 2*j.checkpointTime()
	if l := j.newestLayout(); l != nil && l.IsProven() {
		c := &j.domain.config
		pause += l.LeaveTime(c.Out, c.In)
	}
	return pause
}

// checkpointTime is how long it is expected to take to write a checkpoint of a job, or to read it.
func (j *job) checkpointTime() time.Duration {
	if c := j.record.Checkpoint; c != nil && c.Took > 0 {
		return c.Took
	}
	_, bytes := program.SnapshotSlots(j.graph)
	return time.Duration(float64(bytes) / CheckpointRate * float64(time.Second))
}

// requestMigrationPlans requests plans for the target of a migration.
func (m *Machine) requestMigrationPlans(o migrationOption) {
	t := &migration{migrationOption: o, weight: m.jobWorth(), pause: m.migrationPause(o.job)}
	t.fromOffer.domain, t.toOffer.domain = o.job.domain, o.to
	m.migrations.current = t
	t.toOffer.requestFixed(append(o.to.reachableJobs(), o.job))
	t.toOffer.index = len(t.toOffer.request.jobs) - 1
}

// requestFixed requests plans for jobs on the device, all of which are to fit.
func (a *offer) requestFixed(jobs []*job) {
	a.request = &openRequest{jobs: jobs, admitted: len(jobs)}
	a.domain.sendRequest(a.request)
}

// ownsRequest reports whether a request is for a migration.
func (v *migrations) ownsRequest(e *openRequest) bool {
	return v.current != nil && (v.current.toOffer.request == e || v.current.fromOffer.request == e)
}

// takeAnswer takes the plans for a device of a migration.
func (v *migrations) takeAnswer(d *domain, p *plans.Result) {
	a := &v.current.toOffer
	if v.current.fromOffer.request == d.request {
		a = &v.current.fromOffer
	}
	a.answer = p
}

// hasUrgentWork reports whether plans are wanted that come before those for a migration.
func (d *domain) hasUrgentWork() bool {
	return d.inSearch || !d.pending.replan.isZero() || len(d.waitingJobs()) > 0 || d.isOverfull() || d.hasUnplannedJob()
}

// advanceMigration goes on with the migration that is being planned for, or gives it up if something else is to be
// planned for first.
func (m *Machine) advanceMigration() {
	t := m.migrations.current
	off := func(a *offer) bool {
		return !slices.Contains(m.domains, a.domain) || a.domain.request != a.request || a.domain.hasUrgentWork()
	}
	switch {
	case m.isSearchPending() || off(&t.fromOffer) || off(&t.toOffer) || !t.job.mayMigrate() ||
		t.job.domain != t.fromOffer.domain ||
		!t.to.canTakeOver(t.job):
		m.dropMigration()
		m.wakeMigrations()
	case t.toOffer.answer == nil:
	case t.toOffer.jobPlan() == nil:
		m.dropMigration()
	case t.fromOffer.request == nil:
		rest := slices.DeleteFunc(t.fromOffer.domain.reachableJobs(), func(j *job) bool { return j == t.job })
		if len(rest) > 0 {
			t.fromOffer.requestFixed(rest)
			return
		}
		m.decideMigration()
	case t.fromOffer.answer != nil:
		m.decideMigration()
	}
}

// dropMigration gives up the plans of a migration.
func (m *Machine) dropMigration() {
	t := m.migrations.current
	m.migrations.current = nil
	for _, a := range []*offer{&t.toOffer, &t.fromOffer} {
		if a.request != nil && a.domain.request == a.request {
			m.migrations.notBefore = max(m.migrations.notBefore, m.now+coolDownFactor*(m.now-a.request.sentAt))
			a.release()
		}
	}
}

// decideMigration has a job migrate if that gains more than it costs.
func (m *Machine) decideMigration() {
	t := m.migrations.current
	gain, cost, falls := t.gainAndCost()
	m.dropMigration()
	if !falls || gain <= cost {
		return
	}
	j, to := t.job, t.to
	e := Event{Kind: Migrating, Job: j.record.Spec.Name, Device: to.config.Name, Iterations: m.config.Horizon,
		Benefit: Benefit{Gain: gain, Transition: cost}}
	m.emitEvent(e)
	if p := t.newMoveCheck(gain); p != nil {
		m.migrations.checks = append(m.migrations.checks, p)
	}
	m.vacateDevice(j)
	j.record.Target, j.record.Reason = to.recordName(), e.migrationText()
	v := &m.migrations
	v.options, v.mover, v.target, v.leftAt, v.expectedPause = nil, j, to, m.now, t.pause-v.pause
	m.changed = true
}

// gainAndCost is what a migration gains and costs by the plans for both devices, and whether the sum of weighted
// slowdowns falls.
func (t *migration) gainAndCost() (gain, cost time.Duration, falls bool) {
	var saves, costs, falling float64
	takes := func(d *domain, o *job, was, is time.Duration) {
		less := t.weight(o) * float64(was-is)
		saves += float64(d.gainIterations(o)) * less
		falling += less / float64(o.fastestAlone())
	}
	others := func(a *offer, jobs []*job) {
		for i, o := range jobs {
			p := &a.answer.Jobs[i]
			takes(a.domain, o, scaleTime(p.Alone, o.plannedSlowdown()), scaleTime(p.Alone, p.Slowdown))
			costs += t.weight(o) * float64(p.Transition) / float64(max(1, a.request.message.Jobs[i].Spec.Priority))
		}
	}
	if left := t.fromOffer.answer; left != nil {
		if left.NoPlan != nil || len(left.NeverFit) > 0 {
			return 0, 0, false
		}
		others(&t.fromOffer, t.fromOffer.request.jobs)
	}
	others(&t.toOffer, t.toOffer.request.jobs[:t.toOffer.index])
	j, p := t.job, t.toOffer.jobPlan()
	takes(t.to, j, scaleTime(plans.TotalTime(t.fromOffer.domain.plannedLatencies(j)), j.plannedSlowdown()),
		scaleTime(p.Alone, p.Slowdown))
	pause := t.pause
	if p.Layout != nil && p.Layout.IsProven() {
		pause += p.Layout.EnterTime(t.to.config.Out, t.to.config.In)
	}
	costs += t.weight(j) * float64(pause)
	return saturate(saves), saturate(costs), falling > 0
}

// scaleTime is a time multiplied by a factor, or the largest time.
func scaleTime(d time.Duration, factor float64) time.Duration { return saturate(float64(d) * factor) }

// saturate is a time of so many nanoseconds, or the largest time.
func saturate(x float64) time.Duration { return time.Duration(min(x, math.MaxInt64/2)) }

// fastestAlone is how long an iteration of a job that trains takes alone on the fastest of the devices on which it may
// train.
func (j *job) fastestAlone() time.Duration {
	fastest := j.timeAlone()
	for _, d := range j.domain.m.domains {
		if e, known := d.expectationOf(j); known && d.mayTake(j) && d.hasSameBits(j) {
			fastest = min(fastest, plans.TotalTime(e.latency))
		}
	}
	return max(1, fastest)
}

// arriveAtTarget has a job that has left its device for another wait for that one alone. If the target does not take it
// any more, it waits for any device.
func (m *Machine) arriveAtTarget(j *job) {
	to, from := m.domainByRecord(j.record.Target), j.domain
	j.record.Target, j.record.Preempted = "", false
	from.pending.mandatory = true // the gain was computed with the plans without the job
	held := false
	if to != nil {
		_, held = to.throttles(j)
	}
	if to == nil || held || !to.mayTake(j) {
		m.requeueInPlace(j, fmt.Sprintf("has left device %s for one that does not take it any more", from.recordName()))
		return
	}
	m.requeueInPlace(j, fmt.Sprintf("moves to device %s", to.recordName()))
	m.bindDevice(j, to)
	j.deviceChosen, to.pending.admission = true, true
}

// stayOnDevice has a job whose checkpoint cannot be written go on at its device, until a newer checkpoint was written.
func (m *Machine) stayOnDevice(j *job, why string) {
	j.pinned, j.trainingSince = true, m.now
	if err := m.resumeJob(j); err != nil {
		panic("controller: " + err.Error())
	}
	m.changed = true
	m.tell(j, Event{Kind: Troubled, Detail: "stays where it is: " + why})
}

// migrationText says in words that a job migrates.
func (e Event) migrationText() string {
	if e.Detail != "" {
		return fmt.Sprintf("moves to device %s: %s", e.Device, e.Detail)
	}
	return fmt.Sprintf("moves to device %s: saves %v of the next %d iterations, costs %v", e.Device,
		text.Duration(e.Gain), e.Iterations, text.Duration(e.Transition))
}

// inVainText says in words that a migration was in vain.
func (e Event) inVainText() string {
	saved := "nothing"
	if e.Saved > 0 {
		saved = text.Duration(e.Saved).String()
	}
	on := "host " + e.Host
	if strings.Contains(e.Host, ", ") {
		on = "any of the hosts " + e.Host
	}
	return fmt.Sprintf("the move of job %s to device %s has saved %s of the %v that plans promised: no job moves on "+
		"%s for %v", e.Job, e.Device, saved, text.Duration(e.Gain), on, e.Rest)
}
