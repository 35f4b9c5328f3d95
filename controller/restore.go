package controller

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tensile/controller/fleet"
	"tensile/controller/learn"
	"tensile/controller/plans"
	"tensile/controller/recovery"
	"tensile/graph"
	"tensile/peak"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// Stored is what a controller before this one has stored.
type Stored struct {
	Records []wire.Record
	Graphs  map[graph.Digest]*graph.Graph
	// Layouts are those of each job, by its name.
	Layouts map[string][]*wire.Layout
	// Orders are the newest of each executor, by its name.
	Orders map[string]wire.Orders

	// Profiles are those of graphs on the controller's own device.
	Profiles map[graph.Digest]*planner.Profile
	// Settings is nil if nobody has set any for this device.
	Settings *wire.Settings
	// Tenants is nil if there never were any.
	Tenants *wire.Tenants
	// Learnt is nil if nothing was learnt of this device.
	Learnt *wire.Learnt
	// Devices are those that executors have registered.
	Devices []wire.Device
	// Hurt says, by the name of a job, why what is stored of it cannot be used.
	Hurt map[string]string
	// Placed are profiles of graphs on Devices, by the names of these.
	Placed map[string]map[graph.Digest]*planner.Profile
}

// Restore returns the machine of a controller that goes on where another ended. Executors keep their names. Those that
// were started for jobs are awaited as if this controller had started them. A job of which something is missing is
// held: see job.damage.
func Restore(c Config, s Stored) *Machine {
	m := NewMachine(c)
	m.storedOrders, m.settings = s.Orders, s.Settings
	if s.Tenants != nil {
		m.shares = maps.Clone(s.Tenants.Shares)
	}
	if d := m.ownDomain; d != nil {
		d.learnt = learn.Restore(c.Device, s.Learnt)
		if s.Settings != nil && c.Budget == 0 {
			d.config.Budget = s.Settings.Budget
		}
	}
	for _, brought := range s.Devices {
		m.openDevice(m.config.ForDevice(&brought), &brought)
	}
	m.restoreDebts(s.Tenants)
	for _, d := range m.domains {
		for _, o := range s.Orders {
			if o.Lease != nil && o.On == d.recordName() && o.Lease.Name == d.config.Lease &&
				o.Lease.Number > d.lease.Number {
				d.lease = *o.Lease
			}
		}
	}
	slices.SortFunc(s.Records, func(a, b wire.Record) int { return int(a.Order - b.Order) })
	for _, r := range s.Records {
		m.restoreRecord(r, &s)
	}
	m.awaitIdleExecutors()
	return m
}

// restoreRecord takes up the job of a record, and its executor.
func (m *Machine) restoreRecord(r wire.Record, s *Stored) {
	d := m.domainByRecord(r.On)
	j := &job{domain: d, record: r, stored: r}
	j.unchecked, j.onceFitted = r.State == wire.JobQueued, true
	if j.record.Waiting == 0 { // the record does not say
		j.record.Waiting = r.Submitted
	}
	m.jobs, m.lastSeq = append(m.jobs, j), max(m.lastSeq, r.Order)
	if r.State.Over() {
		return
	}
	if err := m.restoreJob(j, s); err != nil {
		j.damage = fmt.Sprintf("is held: %v; it goes on when that is mended and the controller is started anew, "+
			"and tensile job stop %s ends it", err, r.Spec.Name)
		j.layouts = nil
		if j.domain == nil {
			j.domain = m.ownDomain // its memory is counted there
		}
	}
	d = j.domain
	if name := r.Executor; d != nil && name != "" && m.executors[name] == nil {
		x := m.restoreExecutor(name, d)
		if r.Spec.Script {
			x.Kind = fleet.ForScript
		}
	}
	if x := m.executors[r.Executor]; x != nil && r.State == wire.JobUnknown {
		x.State = fleet.Silent
	}
	if r.Target != "" && j.damage == "" {
		m.migrations.mover = j
	}
}

// configMismatch says for which other configuration the controller should have been started, if every job needs another
// one: then the flags are wrong, and not what is stored. "": some job does not.
func (m *Machine) configMismatch() (why string) {
	for _, j := range m.jobs {
		switch {
		case j.record.State.Over():
		case j.configMismatch == "":
			return ""
		case why == "":
			why = fmt.Sprintf("job %s %s", j.record.Spec.Name, j.configMismatch)
		}
	}
	return why
}

// restoreJob takes up a job that is not over. The error says what is missing or wrong of what is stored. Then the job
// is held, and all others go on.
func (m *Machine) restoreJob(j *job, s *Stored) error {
	d, r := j.domain, j.record
	switch {
	case s.Hurt[r.Spec.Name] != "":
		return errors.New(s.Hurt[r.Spec.Name])
	case d == nil && (j.isActive() || j.hasExecutor()):
		return fmt.Errorf("it runs on %s, which this controller does not know: start it for that device",
			cmp.Or(r.On, r.Device))
	case d == nil:
		j.record.On = ""
	default:
		j.leasePage = d.config.Page
	}
	if d != nil && r.State == wire.JobParked && !j.hasExecutor() && r.Device != "" && r.Device != d.config.Device {
		j.domain, d = nil, nil // the job has left that device, which has gone since
	}
	if d != nil && r.State != wire.JobQueued && r.Device != "" && r.Device != d.config.Device {
		j.configMismatch = fmt.Sprintf("runs on %s, and this controller is for %s: start it for that device", r.Device,
			d.config.Device)
		return errors.New("it " + j.configMismatch)
	}
	if j.hasExecutor() && r.Sharing != d.config.MemorySharing {
		j.configMismatch = fmt.Sprintf("runs with memory sharing %s, and this controller is for %s: start it with "+
			"--memory-sharing %[1]s", r.Sharing, d.config.MemorySharing)
		return errors.New("it " + j.configMismatch)
	}
	if j.graph = s.Graphs[r.Spec.Graph]; j.graph == nil {
		return errors.New("its graph is not in the state directory: put that back from a copy, or submit the job anew")
	}
	j.measureHome()
	if d == nil {
		return nil // a device is searched when some have joined
	}
	profiles := s.Profiles
	if r.On != "" {
		profiles = s.Placed[r.On]
	}
	if j.profile = profiles[r.Spec.Graph]; j.profile == nil {
		return errors.New("it has no profile: submit the job anew")
	}
	d.initLatencies(j)
	j.plannedLatency = slices.Clone(j.latency)
	return j.restoreLayouts(&d.config, s.Layouts[r.Spec.Name])
}

// awaitIdleExecutors counts executors without jobs as out of reach until they are heard, where contexts take memory:
// they may have their device open.
func (m *Machine) awaitIdleExecutors() {
	for name, o := range m.storedOrders {
		if d := m.domainByRecord(o.On); d != nil && d.config.Context > 0 && m.executors[name] == nil {
			m.restoreExecutor(name, d).State = fleet.Silent
		}
	}
}

// restoreExecutor awaits an executor that a controller before this one knew.
func (m *Machine) restoreExecutor(name string, d *domain) *fleet.Executor {
	o := m.storedOrders[name]
	x := fleet.New(name, d.recordName(), fleet.KindOf(name), o, 0)
	x.Life, x.Refusal, m.executors[name] = o.Life, o.Refused, x
	return x
}

// Resume returns what is to be done before the first step. Executors count as heard of now: they may have died together
// with the controller before this one.
func (m *Machine) Resume(now time.Duration) []Output {
	m.beginStep(now)
	m.changed = true
	m.announceBudget()
	for _, j := range m.jobs {
		j.trainingSince = now
		// The times in a record are by the wall clock of the controller before this one, which may have been ahead.
		r := &j.record
		r.Waiting, r.Wait.Until = min(r.Waiting, now), min(r.Wait.Until, now+recovery.Pause(r.Restarts))
	}
	for _, x := range m.executors {
		x.LastHeard = now
	}
	m.healGangs()
	for _, d := range m.domains {
		m.retryAdmission(d)
		if d.hasUnplannedJob() {
			d.pending.replan = newReason(Resumed, "the controller was started again")
		}
		d.replanForMemory()
	}
	return m.endStep()
}

// announceBudget says which budget counts, if an administrator has set one of a controller before this one. A budget
// with which this controller was started counts instead, as it is newer.
func (m *Machine) announceBudget() {
	set := m.settings
	switch {
	case set == nil || m.ownDomain == nil:
		return
	case m.startBudget == 0:
		m.emitEvent(Event{Kind: BudgetRestored,
			Reason: fmt.Sprintf("the budget is %s, as tensile device budget has set it: --budget "+
				"at the start would come before that", budgetText(set.Budget))})
		return
	case m.startBudget != set.Budget:
		m.emitEvent(Event{Kind: BudgetRestored, Reason: fmt.Sprintf("the budget is %s, by --budget; that which "+
			"tensile device budget had set, %s, counts no more", budgetText(m.startBudget), budgetText(set.Budget))})
	}
	m.settings = nil
	m.emit(Output{Drop: &Drop{Settings: wire.SettingsObject(m.ownDomain.config.Device)}})
}

// replanForMemory has the jobs of a device planned for again if its budget has changed, or if they have more of its
// host's memory than there is now.
func (d *domain) replanForMemory() {
	if d.replanForBudget(); d.pending.replan.isZero() && d.isHostOverfull() {
		d.pending.replan = newReason(Memory, "there are %s of host memory", d.config.HostMemory)
	}
}

// replanForBudget has all jobs planned for again if their plans are for another budget.
func (d *domain) replanForBudget() {
	live := slices.DeleteFunc(slices.Collect(d.jobs()), func(j *job) bool { return j.record.State.Over() })
	other := slices.IndexFunc(live, func(j *job) bool { return j.record.Budget != d.config.Budget })
	if other < 0 {
		return
	}
	of := ""
	if d.registered != nil {
		of = " of device " + d.recordName()
	}
	change := fmt.Sprintf("the budget%s is %s, and was %s", of, budgetText(d.config.Budget),
		budgetText(live[other].record.Budget))
	d.m.emitEvent(Event{Kind: BudgetChanged, Reason: change})
	d.pending.replan = newReason(Memory, "%s", change)
	for _, j := range live {
		j.record.Budget = d.config.Budget
		j.unchecked = j.unchecked || j.record.State == wire.JobQueued // it may never fit the new budget
	}
}

// budgetText is a budget in words.
func budgetText(budget graph.Bytes) string {
	if budget == 0 {
		return "unlimited"
	}
	return budget.String()
}

// keepSharing is the configuration with the memory sharing with which jobs run, if some do.
func (c Config) keepSharing(records []wire.Record) Config {
	for _, r := range records {
		if j := (job{record: r}); r.On == "" && j.hasExecutor() && r.Sharing != c.MemorySharing {
			c.MemorySharing = r.Sharing
			break
		}
	}
	return c
}

// restoreLayouts takes up the layouts from the one on that was in force last. The stored claim stands until an executor
// says which layout is in force.
func (j *job) restoreLayouts(c *Config, layouts []*wire.Layout) error {
	first, last := j.record.Epochs()
	for _, w := range layouts {
		if w.Plan.Epoch < first || w.Plan.Epoch > last || !j.isActive() {
			continue
		}
		if l := (&layout{ProvenLayout: plans.ProvenLayout{Wire: w}, granted: true, delivered: true}); j.isStale(l) {
			// The layout counts until the executor says that another is in force. What the script held beside it is
			// part of the claim.
			l.scriptHeld = max(0, j.record.Claim-w.Arena-j.allocatorReserve())
			j.layouts = append(j.layouts, l)
			continue
		}
		placed := program.Placement{Offsets: w.Offsets, Scratch: w.Scratch, Arena: w.Arena, Align: c.Align}
		proven, err := compile.Prove(j.graph, w.Plan, &placed, compile.Options{})
		if err != nil {
			return fmt.Errorf("layout %d is wrong: %w", w.Plan.Epoch, err)
		}
		settings := c.PlanSettings()
		l := settings.NewLayout(w, proven.Program(), peak.Of(j.graph, w.Plan).Peak)
		j.layouts = append(j.layouts, &layout{ProvenLayout: *l, granted: true, delivered: true,
			scriptHeld: j.record.Spec.Held})
	}
	slices.SortFunc(j.layouts, func(a, b *layout) int { return int(a.Epoch() - b.Epoch()) })
	return nil
}
