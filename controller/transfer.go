package controller

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tensile/graph/text"
	"tensile/plan/program"
	"tensile/predictor/correct"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// A job that trains goes to another device when that gains more than it costs: it leaves with a checkpoint and goes on
// there. Gains and costs are seconds, weighted by what jobs are worth, as those of new plans are. The gain is what the
// next iterations of all jobs of both devices take less: of each job Config.Horizon, or as many as are left. The cost
// is the changes of plan of the other jobs and the pause of the one that moves: the iterations in flight, the copies of
// its way to Home and out of it, a checkpoint written and read, and what moves so far took beyond that.
//
// The sum over all jobs of weight x slowdown has to fall as well, each against the job's speed alone on the fastest of
// its devices. As long as no job comes or goes only moves change where jobs are, and each lowers that sum, so that
// later ones never undo it.
//
// Bounds say first which moves may pay (planner.LeastSlowdowns); few of them are planned for. One job moves at a time.

// CheckpointRate is the rate in bytes a second at which a job's first checkpoint is expected to be written, and to be
// read.
const CheckpointRate = 500e6

const (
	lookEvery  = time.Second // at the earliest devices are looked at for moves again
	maxOptions = 4           // that are planned for when devices are looked at
)

// moves are what a machine knows of jobs that may move, and do.
type moves struct {
	stirred bool              // something has changed since devices were looked at last
	again   time.Duration     // when they may be looked at again
	pause   time.Duration     // that a move takes beside what is reckoned: a moving average
	options []option          // that are still to be planned for, the best first
	under   *transfer         // that is being planned for; nil: none is
	mover   *job              // is on its way; nil: none is
	to      *domain           // where it goes; nil: this controller did not see it leave
	left    time.Duration     // when it was told to leave
	reckons time.Duration     // the pause that was reckoned, but for moves.pause
	proofs  []*proof          // of moves whose gain is being timed
	futile  map[string]futile // by host
}

// option is a move that may pay by bounds.
type option struct {
	job  *job
	to   *domain
	pays float64 // the most that it may gain beyond its cost, in weighted nanoseconds
}

// transfer is a move that is planned for: the target with the job, then what it leaves without it.
type transfer struct {
	option
	from, with attempt
	weight     func(*job) float64
	pause      time.Duration
}

// stir has devices looked at for moves.
func (m *Machine) stir() { m.moves.stirred = true }

// shift looks for a job that another device would serve better, and moves it.
func (m *Machine) shift() {
	v := &m.moves
	if m.config.NoMoves || m.config.NoReplan || len(m.domains) < 2 {
		return
	}
	m.follow()
	m.judge()
	if v.under != nil {
		m.pursue()
	}
	for len(v.options) > 0 && v.under == nil && v.mover == nil {
		o := v.options[0]
		if v.options = v.options[1:]; m.movable(o.job, o.to) && !m.queueing() {
			m.consider(o)
		}
	}
	if v.under != nil || v.mover != nil || !v.stirred || m.now < v.again || m.queueing() {
		return
	}
	if v.options = m.lookForMoves(); len(v.options) > 0 {
		m.shift()
	}
}

// queueing reports whether a job that waits is tried, which comes first.
func (m *Machine) queueing() bool { return m.trial != nil || m.look }

// follow sees how the job fares that is on its way.
func (m *Machine) follow() {
	v := &m.moves
	j := v.mover
	if j == nil {
		return
	}
	switch s := j.record.State; {
	case s == wire.JobParking && j.record.Target != "", s == wire.JobQueued && j.chosen, s == wire.JobStarting:
		return
	case s == wire.JobRunning && j.domain == v.to:
		v.pause = correct.Latency(v.pause, max(0, m.now-v.left-v.reckons), m.config.Alpha, false)
		for _, p := range v.proofs {
			p.arrived = p.arrived || p.mover == j
		}
	}
	v.mover, v.to, v.stirred = nil, nil, true
}

// quiet reports whether nothing else is to be done on a device that executors bring, so that it can be looked at.
func (d *domain) quiet() bool {
	return d.brought != nil && d.errand == nil && !d.pressed()
}

// leaves reports whether a job may leave its device, now or when it has trained there for a turn.
func (j *job) leaves() bool {
	r := &j.record
	return r.State == wire.JobRunning && j.domain.brought != nil && !r.Spec.Script && !j.stays &&
		r.Spec.Replica == (wire.Replica{}) && r.Spec.Checkpoint != (wire.Interval{}) && r.Spec.Device == "" &&
		r.Iteration < r.Spec.Iterations && r.Applied == r.Epoch
}

// movable reports whether a job may go to a device now.
func (m *Machine) movable(j *job, to *domain) bool {
	return j.leaves() && m.now-j.begun >= j.domain.config.Turn && j.domain != to && j.domain.quiet() && to.quiet() &&
		to.serves(j) && m.mayMove(j, to)
}

// mayMove reports whether earlier moves let a job go to a device.
func (m *Machine) mayMove(j *job, to *domain) bool {
	v := &m.moves
	return !v.unproven(j.domain) && !v.unproven(to) && !slices.ContainsFunc(hostsOf(j.domain, to), m.restsFromMoves)
}

// serves reports whether a job may go on at a device: with the same bits, at an executor that finds its checkpoint,
// and not held there for what other tenants are owed.
func (d *domain) serves(j *job) bool {
	here := d.m.executors[j.record.Executor]
	if !slices.Contains(d.m.domains, d) || !d.takes(j) || here == nil || !d.equals(j) {
		return false
	}
	if _, held := d.holds(j); held {
		return false
	}
	for x := range d.executors() {
		if x.joined && !x.gone && !x.silent && !x.leaving && x.folder != "" && x.folder == here.folder &&
			!slices.Contains(j.tried, x.name) {
			return true
		}
	}
	return false
}

// equals reports whether a device has the bits of that on which a job trains, or the job may go on with others.
func (d *domain) equals(j *job) bool {
	return d.config.Device == j.domain.config.Device || j.record.Spec.AnyDevice
}

// hostsOf are the hosts of two devices that executors have brought.
func hostsOf(a, b *domain) []string {
	return slices.Compact([]string{a.brought.Host, b.brought.Host})
}

// view is a device as bounds see it.
type view struct {
	jobs    []*job
	demands []planner.Demand // weighted by what an iteration alone takes, times those that count
	now     float64          // the sum of slowdowns so weighted that jobs have
}

// view looks at a device; nil: it is not quiet, or something that bounds need is not known.
func (d *domain) view(weight func(*job) float64) *view {
	if !d.quiet() {
		return nil
	}
	v := &view{jobs: d.reachable()}
	for _, j := range v.jobs {
		demand, known := d.demand(j, weight)
		if !known {
			return nil
		}
		v.demands = append(v.demands, demand)
		v.now += demand.Weight * j.expects()
	}
	return v
}

// demand is what a job needs of a device, weighted by what counts of its time alone there.
func (d *domain) demand(j *job, weight func(*job) float64) (demand planner.Demand, known bool) {
	e, known := d.expectation(j)
	if !known {
		return demand, false
	}
	demand = e.profile.Demand(e.latency, d.config.Sharing)
	demand.Weight = weight(j) * float64(d.counts(j)) * float64(total(e.latency))
	return demand, true
}

// counts is over how many iterations of a job a gain counts.
func (d *domain) counts(j *job) int {
	return max(0, min(d.config.Horizon, j.record.Spec.Iterations-j.record.Iteration))
}

// expects is the slowdown that is expected of a job by its plan.
func (j *job) expects() float64 { return cmp.Or(j.record.Slowdown, 1) }

// lookForMoves are the moves that may pay by bounds, the best first. Of equal ones, as to devices that are alike, there
// is the first by name.
func (m *Machine) lookForMoves() (options []option) {
	v := &m.moves
	v.stirred, v.again = false, m.now+lookEvery
	weight := m.worth()
	views := make(map[*domain]*view)
	for _, d := range m.domains {
		if views[d] = d.view(weight); views[d] == nil && d.brought != nil {
			v.stirred = true // it is looked at when it is quiet
		}
	}
	demands := make(map[kind]planner.Demand) // of weight 1
	seen := make(map[float64]bool)
	for _, from := range m.domains {
		here := views[from]
		if here == nil {
			continue
		}
		for at, j := range here.jobs {
			if !j.leaves() {
				continue
			}
			if m.now-j.begun < from.config.Turn {
				v.stirred = true
				continue
			}
			gained := here.now - planner.LeastSlowdowns(slices.Delete(slices.Clone(here.demands), at, at+1))
			gained -= weight(j) * float64(m.pauseOf(j))
			for _, to := range m.domains {
				there := views[to]
				if there == nil || to == from {
					continue
				}
				if !m.mayMove(j, to) {
					v.stirred = true
					continue
				}
				k := to.kind(j)
				demand, known := demands[k]
				if !known {
					if demand, known = to.demand(j, func(*job) float64 { return 1 }); known {
						demand.Weight /= float64(max(1, to.counts(j)))
						demands[k] = demand
					} else { // it was never planned for there: what it needs here is the guess until it is
						demand = here.demands[at]
						demand.Weight /= weight(j) * float64(max(1, from.counts(j)))
					}
				}
				demand.Weight *= weight(j) * float64(to.counts(j))
				grows := planner.LeastSlowdowns(append(slices.Clone(there.demands), demand)) - there.now
				if pays := gained - grows; pays > 0 && !seen[pays] && to.serves(j) {
					seen[pays] = true
					options = append(options, option{j, to, pays})
				}
			}
		}
	}
	slices.SortStableFunc(options, func(a, b option) int { return cmp.Compare(b.pays, a.pays) })
	return options[:min(len(options), maxOptions)]
}

// pauseOf is for how long a job that moves is expected not to train, but for the copies out of Home where it goes.
func (m *Machine) pauseOf(j *job) time.Duration {
	flying := times(j.alone(), j.expects())
	pause := m.moves.pause + flying + 2*j.carries()
	if l := j.newest(); l != nil && l.program != nil {
		c := &j.domain.config
		pause += copying(&l.program.Epilogue, c.Out, c.In)
	}
	return pause
}

// carries is how long it is expected to take to write a checkpoint of a job, or to read it.
func (j *job) carries() time.Duration {
	if c := j.record.Checkpoint; c != nil && c.Took > 0 {
		return c.Took
	}
	_, bytes := program.SnapshotSlots(j.graph)
	return time.Duration(float64(bytes) / CheckpointRate * float64(time.Second))
}

// consider has plans made for the target of a move.
func (m *Machine) consider(o option) {
	t := &transfer{option: o, weight: m.worth(), pause: m.pauseOf(o.job)}
	t.from.domain, t.with.domain = o.job.domain, o.to
	m.moves.under = t
	t.with.send(append(o.to.reachable(), o.job))
	t.with.at = len(t.with.errand.jobs) - 1
}

// send has plans made for jobs on a device, all of which are to fit.
func (a *attempt) send(jobs []*job) {
	a.errand = &errand{jobs: jobs, admitted: len(jobs)}
	a.domain.post(a.errand)
}

// plans reports whether an errand is for a move.
func (v *moves) plans(e *errand) bool {
	return v.under != nil && (v.under.with.errand == e || v.under.from.errand == e)
}

// answer takes the plans for a device of a move.
func (v *moves) answer(d *domain, p *Planned) {
	a := &v.under.with
	if v.under.from.errand == d.errand {
		a = &v.under.from
	}
	a.answer = p
}

// pressed reports whether plans are wanted that come before those for a move.
func (d *domain) pressed() bool {
	return d.sought || !d.want.better.none() || len(d.waiting()) > 0 || d.overfull() || d.bare()
}

// pursue goes on with the move that is planned for, or gives it up: what else is to be planned for comes first.
func (m *Machine) pursue() {
	t := m.moves.under
	off := func(a *attempt) bool {
		return !slices.Contains(m.domains, a.domain) || a.domain.errand != a.errand || a.domain.pressed()
	}
	switch {
	case m.queueing() || off(&t.from) || off(&t.with) || !t.job.leaves() || t.job.domain != t.from.domain ||
		!t.to.serves(t.job):
		m.dropTransfer()
		m.stir()
	case t.with.answer == nil:
	case t.with.fits() == nil:
		m.dropTransfer()
	case t.from.errand == nil:
		rest := slices.DeleteFunc(t.from.domain.reachable(), func(j *job) bool { return j == t.job })
		if len(rest) > 0 {
			t.from.send(rest)
			return
		}
		m.weigh()
	case t.from.answer != nil:
		m.weigh()
	}
}

// dropTransfer gives up the plans of a move.
func (m *Machine) dropTransfer() {
	t := m.moves.under
	m.moves.under = nil
	for _, a := range []*attempt{&t.with, &t.from} {
		if a.errand != nil && a.domain.errand == a.errand {
			m.moves.again = max(m.moves.again, m.now+restFactor*(m.now-a.errand.asked))
			a.release()
		}
	}
}

// weigh has a job move if that gains more than it costs.
func (m *Machine) weigh() {
	t := m.moves.under
	gain, cost, falls := t.worth()
	m.dropTransfer()
	if !falls || gain <= cost {
		return
	}
	j, to := t.job, t.to
	e := Event{Kind: Moves, Job: j.record.Spec.Name, Device: to.config.Name, Iterations: m.config.Horizon, Gain: gain,
		Transition: cost}
	m.event(e)
	if p := t.prove(gain); p != nil {
		m.moves.proofs = append(m.moves.proofs, p)
	}
	m.vacate(j)
	j.record.Target, j.record.Reason = to.on(), e.moves()
	v := &m.moves
	v.options, v.mover, v.to, v.left, v.reckons = nil, j, to, m.now, t.pause-v.pause
	m.changed = true
}

// worth is what a move gains and costs by the plans for both devices, and whether the sum of weighted slowdowns falls.
func (t *transfer) worth() (gain, cost time.Duration, falls bool) {
	var saves, costs, falling float64
	takes := func(d *domain, o *job, was, is time.Duration) {
		less := t.weight(o) * float64(was-is)
		saves += float64(d.counts(o)) * less
		falling += less / float64(o.fastest())
	}
	others := func(a *attempt, jobs []*job) {
		for i, o := range jobs {
			p := &a.answer.Jobs[i]
			takes(a.domain, o, times(p.Alone, o.expects()), times(p.Alone, p.Slowdown))
			costs += t.weight(o) * float64(p.Transition) / float64(max(1, a.errand.plan.Jobs[i].Spec.Priority))
		}
	}
	if left := t.from.answer; left != nil {
		if left.Why != nil || len(left.Never) > 0 {
			return 0, 0, false
		}
		others(&t.from, t.from.errand.jobs)
	}
	others(&t.with, t.with.errand.jobs[:t.with.at])
	j, p := t.job, t.with.fits()
	takes(t.to, j, times(total(t.from.domain.steady(j)), j.expects()), times(p.Alone, p.Slowdown))
	pause := t.pause
	if p.Layout != nil && p.Layout.program != nil {
		pause += copying(&p.Layout.program.Prologue, t.to.config.Out, t.to.config.In)
	}
	costs += t.weight(j) * float64(pause)
	return bounded(saves), bounded(costs), falling > 0
}

// times is a time multiplied.
func times(d time.Duration, factor float64) time.Duration { return bounded(float64(d) * factor) }

// bounded is a time of so many nanoseconds, which may be too many.
func bounded(x float64) time.Duration { return time.Duration(min(x, math.MaxInt64/2)) }

// fastest is how long an iteration of a job that trains takes alone on the fastest of the devices on which it may.
func (j *job) fastest() time.Duration {
	fastest := j.alone()
	for _, d := range j.domain.m.domains {
		if e, known := d.expectation(j); known && d.takes(j) && d.equals(j) {
			fastest = min(fastest, total(e.latency))
		}
	}
	return max(1, fastest)
}

// arrives has a job that has left its device for another wait for that one alone or, if that does not take it any more,
// for any.
func (m *Machine) arrives(j *job) {
	to, from := m.named(j.record.Target), j.domain
	j.record.Target, j.record.Preempted = "", false
	from.want.must = true // the plans without it are part of what was reckoned
	held := false
	if to != nil {
		_, held = to.holds(j)
	}
	if to == nil || held || !to.takes(j) {
		m.enqueueAgain(j, fmt.Sprintf("has left device %s for one that does not take it any more", from.on()))
		return
	}
	m.enqueueAgain(j, fmt.Sprintf("moves to device %s", to.on()))
	m.bind(j, to)
	j.chosen, to.want.admission = true, true
}

// stays has a job whose checkpoint cannot be written go on at its device, until a newer one was.
func (m *Machine) stays(j *job, why string) {
	j.stays, j.begun = true, m.now
	if err := m.resume(j); err != nil {
		panic("controller: " + err.Error())
	}
	m.changed = true
	m.event(Event{Kind: Troubled, Job: j.record.Spec.Name, Why: "stays where it is: " + why})
}

// moves says in words that a job moves.
func (e Event) moves() string {
	if e.Why != "" {
		return fmt.Sprintf("moves to device %s: %s", e.Device, e.Why)
	}
	return fmt.Sprintf("moves to device %s: saves %v of the next %d iterations, costs %v", e.Device,
		text.Duration(e.Gain), e.Iterations, text.Duration(e.Transition))
}

// disproved says in words that a move was in vain.
func (e Event) disproved() string {
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
