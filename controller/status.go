package controller

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"tensile/controller/fleet"
	"tensile/graph/text"
	"tensile/predictor/correct"
	"tensile/wire"
)

// maxError is how many bytes of an executor's error are kept.
const maxError = 1000

// applyStatus compares what an executor does with what it is to do.
func (m *Machine) applyStatus(s *wire.Status) {
	for _, life := range s.Dead {
		if life != s.Life {
			m.processEnded(s.Executor, life, "its process has ended")
		}
	}
	leaves := slices.Contains(s.Dead, s.Life) // this is the last status of the process
	x := m.executors[s.Executor]
	switch fleet.Judge(x, s) {
	case fleet.Late:
		if leaves {
			m.processEnded(s.Executor, s.Life, "it has left")
		}
		return
	case fleet.Second:
		m.handleRival(x, s)
		return
	case fleet.Older:
		x.LastHeard = m.now
		return
	case fleet.Stranger:
		if x = m.joinExecutor(s); x == nil {
			return
		}
	}
	if !m.hearExecutor(x, s) {
		return
	}
	for _, js := range s.Jobs {
		if j := m.findJob(js.Name); j != nil && j.record.Spec.ID == js.ID && j.record.Executor == x.Name &&
			js.Incarnation == j.record.Incarnation && !j.record.State.Over() {
			js.Error = text.Line(js.Error, maxError) // tables print it in one line
			m.applyJobStatus(j, js, s.Orders >= x.Orders.Number)
		}
	}
	if leaves {
		m.removeExecutor(x, fleet.Dead, "it has left")
		return
	}
	m.settleReservations(x, s)
	if s.Orders < x.Orders.Number {
		m.repeatOrders(x)
	}
}

// hearExecutor takes what the process of an executor says of itself, and reports whether it may be that executor.
func (m *Machine) hearExecutor(x *fleet.Executor, s *wire.Status) bool {
	begins := x.Life == ""
	m.changed = m.changed || begins // orders are for this process alone from now on
	if why := m.leaseConflict(x, s); why != "" && (x.LastStatus == 0 || x.IsSilent()) {
		m.refuseExecutor(x, s, why)
		return false
	}
	returns := x.Hear(s, m.now)
	m.domainByRecord(x.Device).applyRegisteredBudget(x, s.Brings, begins)
	if x.Rival != nil {
		rival := x.RefuseRival()
		m.changed = true
		m.emitEvent(Event{Kind: Repelled, Executor: x.Name, Host: rival.Host, Reason: x.Refusal.Reason})
	}
	if returns {
		m.executorReturned(x)
	}
	return true
}

// repeatOrders emits the newest orders of an executor once more, as they may have been lost.
func (m *Machine) repeatOrders(x *fleet.Executor) {
	again := x.Orders
	m.emit(Output{Orders: &again})
}

// leaseConflict is why a process cannot be that executor of its device. "": it can.
func (m *Machine) leaseConflict(x *fleet.Executor, s *wire.Status) string {
	if !m.domainByRecord(x.Device).config.sharesMemory() {
		return ""
	}
	return m.executors.LeaseConflict(x, s)
}

// refuseExecutor refuses the process of an executor, which then ends.
func (m *Machine) refuseExecutor(x *fleet.Executor, s *wire.Status, why string) {
	if x.IsRefused(s.Life) {
		m.repeatOrders(x)
		return
	}
	m.emitEvent(Event{Kind: SentAway, Executor: s.Executor, Reason: why})
	x.Life, x.Refusal, m.changed = s.Life, &wire.Refusal{Life: s.Life, Reason: why}, true
}

// maxSeen is the largest number of orders that a process is believed to have seen: later orders have larger ones.
const maxSeen = 1 << 52

// joinExecutor takes in an executor that was not started from here, or that was given up too early.
func (m *Machine) joinExecutor(s *wire.Status) *fleet.Executor {
	orders := m.storedOrders[s.Executor]
	if old := m.executors[s.Executor]; old != nil {
		orders = old.Orders
	}
	orders.Number = max(orders.Number, min(s.Orders, maxSeen))
	d, why := m.domainOf(s)
	x := fleet.New(s.Executor, d.recordName(), fleet.KindOf(s.Executor), orders, m.now)
	if why == "" {
		why = m.leaseConflict(x, s)
	}
	if why != "" {
		m.emitEvent(Event{Kind: SentAway, Executor: s.Executor, Reason: why})
		m.emit(Output{Orders: &wire.Orders{Executor: s.Executor, Life: s.Life, Number: x.Orders.Number + 1,
			Jobs: []wire.Assignment{}, Refused: &wire.Refusal{Life: s.Life, Reason: why}}})
		return nil
	}
	m.executors[s.Executor], m.changed = x, true
	m.unblock()
	for _, j := range m.jobs { // this process may have what the former one of its name lacked
		j.failedAt = slices.DeleteFunc(j.failedAt, func(name string) bool { return name == x.Name })
		if j.checkpointDeadline > 0 {
			m.retryAdmission(j.domain)
		}
	}
	if m.needsPlacement = true; d.registered != nil { // queued jobs may take it
		m.retryAdmission(d)
	}
	m.emitEvent(Event{Kind: Joined, Executor: s.Executor})
	return x
}

// handleRival takes the status of a second process with the name of an executor.
func (m *Machine) handleRival(x *fleet.Executor, s *wire.Status) {
	if x.Launched = false; x.IsRefused(s.Life) {
		m.repeatOrders(x)
	} else if x.HearRival(s) {
		m.emitEvent(Event{Kind: Doubled, Executor: x.Name, Host: s.Host})
	}
}

// maxTick is the longest time between two ticks of a process that was not suspended.
const maxTick = 5 * time.Second

// applyTick does what is due, every second or so.
func (m *Machine) applyTick(t *Tick) {
	for _, d := range m.domains {
		if m.now-d.learntStoredAt >= storeEvery {
			d.storeLearnt()
		}
	}
	m.takeLateBatches()
	before := m.lastTick
	m.lastTick = m.now
	m.checkSilence(t.Deaf || m.now-before > maxTick)
	for _, j := range m.jobs {
		if until := j.record.Wait.Until; before < until && until <= m.now { // its pause has ended
			m.retryAdmission(j.domain)
			for _, d := range m.domains {
				d.pending.admission = d.pending.admission || len(d.waitingJobs()) > 0 // jobs behind it may begin
			}
		}
	}
	m.orderTimedCheckpoints()
	m.settleAccounts()
	m.failMissingCheckpoints()
	for _, d := range slices.Clone(m.domains) {
		m.closeDevice(d)
	}
}

// checkSilence does what is due about executors of which nothing has come. deaf says that what they have said may not
// have arrived yet, as this process was suspended.
func (m *Machine) checkSilence(deaf bool) {
	for _, x := range m.executors.Sorted() {
		d := m.domainByRecord(x.Device)
		due := x.Tick(m.now, fleet.Patience{Silence: m.config.Silence, GiveUp: m.config.GiveUp,
			Watched: m.config.Watched, SharesMemory: d != nil && d.config.sharesMemory(), Deaf: deaf})
		if due.Forget {
			delete(m.executors, x.Name)
		}
		if due.Silent {
			m.markSilent(x)
		}
		if due.GiveUp {
			m.giveUpExecutor(x)
		}
		if due.Kill && x.IsSilent() {
			x.Enter(fleet.Killed)
			m.emitEvent(Event{Kind: Killed, Executor: x.Name, Detail: x.SilenceText(m.now)})
			m.emit(Output{ProcessOutput: ProcessOutput{Kill: x.Name}})
		}
	}
}

// orphans are the executors that a controller before this one had launched, and those that may have memory although
// they were given up, in the order of their names.
func (m *Machine) orphans() []string {
	names := make(map[string]bool)
	for name, x := range m.executors {
		names[name] = x.Kind != fleet.ByHand && !x.Launched && !x.IsGone()
	}
	for _, j := range m.jobs {
		for _, h := range j.record.Held {
			names[h.Executor] = names[h.Executor] || wire.Owned(h.Executor)
		}
	}
	maps.DeleteFunc(names, func(_ string, orphan bool) bool { return !orphan })
	return slices.Sorted(maps.Keys(names))
}

// executorEnded takes the news that a process with the name of an executor has ended. If two had its name and it is not
// known which one this was, it may have been the one that was refused: then silence decides about the other.
func (m *Machine) executorEnded(g *ExecutorEnd) {
	for _, life := range g.Lives {
		m.processEnded(g.Executor, life, g.Why)
	}
	x := m.executors[g.Executor]
	switch {
	case x == nil || x.IsGone():
	case x.Life != "" && len(g.Lives) > 0 || x.Refusal != nil: // another process of that name may have ended
		x.Launched = false
	default:
		m.removeExecutor(x, fleet.Dead, g.Why)
	}
}

// recordIteration records that a job has trained an iteration.
func (m *Machine) recordIteration(j *job, r *wire.Report) {
	j.iterationTime = correct.Latency(cmp.Or(j.iterationTime, r.Wall), r.Wall, j.domain.config.Alpha, false)
	m.migrations.timeIteration(j, r.Wall)
	j.gateTime = correct.Latency(j.gateTime, r.Gate, j.domain.config.Alpha, false)
	j.record.Iteration = max(j.record.Iteration, r.Iteration+1)
}

// applyReport moves a job's latencies towards what was measured. It has all jobs planned again when they differ by more
// than the threshold from those that the plans were made for (TENSILE, section IV-E: |s'-s|/s).
func (m *Machine) applyReport(r *wire.Report) {
	j := m.findJob(r.Job)
	if j == nil || j.record.Executor != r.Executor || j.record.State.Over() || r.ID != 0 && r.ID != j.record.Spec.ID ||
		r.Incarnation != j.record.Incarnation {
		return
	}
	j.losses.add(r.Iteration, r.Loss)
	if j.record.Spec.Script {
		m.recordIteration(j, r)
	}
	d := j.domain
	at := slices.IndexFunc(j.layouts, func(l *layout) bool { return l.Epoch() == r.Epoch && !j.isStale(l) })
	if at < 0 || len(r.Steps) != len(j.layouts[at].Wire.Plan.Steps) {
		m.countReport(j, r, nil)
		return // the plan is no longer in use
	}
	m.countReport(j, r, j.layouts[at])
	if m.recordTraining(j); j.record.Arena == 0 { // the status that says so may still be on its way
		j.record.Arena, j.record.SlotPeak = j.layouts[at].Wire.Arena, j.layouts[at].Peak
	}
	alone := j.firstVariantTimes(j.layouts[at], d.withoutSlowdown(j, r.Steps))
	for i, s := range j.layouts[at].Wire.Plan.Steps {
		j.latency[s.Op] = correct.Latency(j.latency[s.Op], alone[i], d.config.Alpha, r.Iteration == 0)
	}
	if !j.record.Spec.Script {
		d.correctLine(j, j.layouts[at], r.Iteration, alone)
		d.learnt.Hear(&j.teacher, j.record.Incarnation, j.profile, j.layouts[at].Wire.Plan, alone)
		m.recordIteration(j, r)
	}
	j.measured, j.lastReport = true, r
	if j.wantsReport && r.Epoch == j.record.Epoch && r.Iteration > 0 {
		j.wantsReport, j.policyReport, m.changed = false, r, true
		waits := func(j *job) bool { return j.wantsReport }
		if !slices.ContainsFunc(d.activeJobs(), waits) {
			d.pending.mandatory, d.pending.replan = true, newReason(Asked, "the policy asked to plan again")
		}
	}
	if j.reportsSincePlan++; d.config.NoReplan || j.reportsSincePlan < d.config.SettleReports ||
		r.Epoch != j.record.Epoch || m.now < d.driftNotBefore {
		return
	}
	if rate := correct.Drift(j.latency, j.plannedLatency); rate > d.config.Threshold {
		d.pending.replan = newReason(Drifted, "the latencies of job %s have changed by %.0f %%", r.Job, 100*rate)
	}
}
