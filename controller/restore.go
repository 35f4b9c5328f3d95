package controller

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tensile/graph"
	"tensile/peak"
	"tensile/plan/program"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// Stored is what a controller before this one left.
type Stored struct {
	Records []wire.Record
	Graphs  map[graph.Digest]*graph.Graph
	Layouts map[string][]*wire.Layout // per job
	Orders  map[string]wire.Orders    // per executor, the newest

	Profiles map[graph.Digest]*planner.Profile // of the graphs
	Settings *wire.Settings                    // nil: nobody has set any, for this device
	Tenants  *wire.Tenants                     // nil: there never were any
	Learnt   *wire.Learnt                      // nil: nothing was, of this device
	Devices  []wire.Device                     // that executors have brought
	Hurt     map[string]string                 // why what is stored of a job cannot be used, by its name
	// of the graphs of jobs on these, by the names of the devices
	Placed map[string]map[graph.Digest]*planner.Profile
}

// Restore returns the machine of a controller that goes on where another ended. Executors keep their names; those that
// were started for jobs are awaited as if this controller had started them. One of which
// something is missing is held.
func Restore(c Config, s Stored) *Machine {
	m := NewMachine(c)
	m.storedOrders, m.settings = s.Orders, s.Settings
	if s.Tenants != nil {
		m.shares = maps.Clone(s.Tenants.Shares)
	}
	if d := m.ownDomain; d != nil {
		d.learnt = restoreLearnt(c.Device, s.Learnt)
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
	slices.SortFunc(s.Records, func(a, b wire.Record) int { return int(a.Seq - b.Seq) })
	for _, r := range s.Records {
		d := m.domainByRecord(r.On)
		j := &job{domain: d, record: r, stored: r, unchecked: r.State == wire.Queued, onceFitted: true}
		if j.record.Waiting == 0 { // as the release before left it
			j.record.Waiting = r.Submitted
		}
		m.jobs, m.lastSeq = append(m.jobs, j), max(m.lastSeq, r.Seq)
		if r.State.Over() {
			continue
		}
		if err := m.restoreJob(j, &s); err != nil {
			j.damage = fmt.Sprintf("is held: %v; it goes on when that is mended and the controller is started anew, "+
				"and tensile stop %s ends it", err, r.Spec.Name)
			j.layouts = nil
			if j.domain == nil {
				j.domain = m.ownDomain // with whose memory it counts
			}
		}
		d = j.domain
		if name := r.Executor; d != nil && name != "" && m.executors[name] == nil {
			orders := m.storedOrders[name]
			m.executors[name] = &executor{name: name, domain: d, life: orders.Life, forJobs: wire.Owned(name),
				orders: orders, forScript: r.Spec.Script, refusal: orders.Refused}
		}
		if x := m.executors[r.Executor]; x != nil && r.State == wire.Unknown {
			x.silent = true
		}
		if r.Target != "" && j.damage == "" {
			m.migrations.mover = j
		}
	}
	m.awaitIdleExecutors()
	return m
}

// configMismatch says for what else the controller should have been started, where that holds for every job; "": it
// should not. Then its flags are wrong, not what is stored.
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

// restoreJob takes up a job that is not over. The error says what of what is stored is missing, or wrong: it is held,
// and all else goes on.
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
	if d != nil && r.State == wire.Parked && !j.hasExecutor() && r.Device != "" && r.Device != d.config.Device {
		j.domain, d = nil, nil // it has left a device that has gone since
	}
	if d != nil && r.State != wire.Queued && r.Device != "" && r.Device != d.config.Device {
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
		return nil // it is tried on those that come
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

// awaitIdleExecutors counts executors without jobs as out of reach until they are heard, where they may have a context:
// they may have their device open.
func (m *Machine) awaitIdleExecutors() {
	for name, o := range m.storedOrders {
		if d := m.domainByRecord(o.On); d != nil && d.config.Context > 0 && m.executors[name] == nil {
			m.executors[name] = &executor{name: name, domain: d, life: o.Life, forJobs: wire.Owned(name), orders: o,
				refusal: o.Refused, silent: true}
		}
	}
}

// Resume returns what is to be done before the first step. Executors count as heard of now: they may have died with the
// controller before this one.
func (m *Machine) Resume(now time.Duration) []Output {
	m.beginStep(now)
	m.changed = true
	m.announceBudget()
	for _, j := range m.jobs {
		j.trainingSince = now
	}
	for _, x := range m.executors {
		x.lastHeard = now
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

// announceBudget says which budget counts where an administrator has set one of a controller before this one. That with
// which this controller was started comes before it, and is the newer word.
func (m *Machine) announceBudget() {
	set := m.settings
	switch {
	case set == nil || m.ownDomain == nil:
		return
	case m.startBudget == 0:
		m.emitEvent(Event{Kind: Budgeted,
			Reason: fmt.Sprintf("the budget is %s, as tensile budget has set it: --budget "+
				"at the start would come before that", budgetText(set.Budget))})
		return
	case m.startBudget != set.Budget:
		m.emitEvent(Event{Kind: Budgeted, Reason: fmt.Sprintf("the budget is %s, by --budget; that which tensile "+
			"budget had set, %s, counts no more", budgetText(m.startBudget), budgetText(set.Budget))})
	}
	m.settings = nil
	m.emit(Output{Drop: &Drop{Settings: wire.SettingsObject(m.ownDomain.config.Device)}})
}

// replanForMemory has the jobs of a device planned for again if its budget is another, or they have more of its host's
// memory than there is now.
func (d *domain) replanForMemory() {
	if d.replanForBudget(); d.pending.replan.isZero() && d.isHostOverfull() {
		d.pending.replan = newReason(Memory, "there are %s of host memory", d.config.HostMemory)
	}
}

// replanForBudget has all jobs planned for again if the plans before were for another budget.
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
	d.m.emitEvent(Event{Kind: Rebudgeted, Reason: change})
	d.pending.replan = newReason(Memory, "%s", change)
	for _, j := range live {
		j.record.Budget, j.blocked = d.config.Budget, false
		j.unchecked = j.unchecked || j.record.State == wire.Queued // it may never fit what there is now
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

// restoreLayouts takes up the layouts from the one that was granted last on. The claim that was stored stands until an
// executor says which is in force.
func (j *job) restoreLayouts(c *Config, layouts []*wire.Layout) error {
	first, last := j.record.Epochs()
	for _, w := range layouts {
		if w.Plan.Epoch < first || w.Plan.Epoch > last || !j.isActive() {
			continue
		}
		if l := (&layout{ProvenLayout: ProvenLayout{Wire: w}, granted: true, delivered: true}); j.isStale(l) {
			// It is there until an executor says that another is in force. What the script held beside that was in the
			// claim.
			l.scriptHeld = max(0, j.record.Claim-w.Arena-j.allocatorReserve())
			j.layouts = append(j.layouts, l)
			continue
		}
		placed := program.Placement{Offsets: w.Offsets, Scratch: w.Scratch, Arena: w.Arena, Align: c.Align}
		proven, err := program.Prove(j.graph, w.Plan, &placed, program.Options{})
		if err != nil {
			return fmt.Errorf("layout %d is wrong: %w", w.Plan.Epoch, err)
		}
		l := &ProvenLayout{Wire: w, Peak: peak.Of(j.graph, w.Plan).Peak, Host: proven.Program().Host,
			Claim: c.claimOf(proven.Program()), program: proven.Program()}
		j.layouts = append(j.layouts, &layout{ProvenLayout: *l, granted: true, delivered: true,
			scriptHeld: j.record.Spec.Held})
	}
	slices.SortFunc(j.layouts, func(a, b *layout) int { return int(a.epoch() - b.epoch()) })
	return nil
}
