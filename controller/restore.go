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
	"tensile/plan/compile"
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
	m.stored, m.settings = s.Orders, s.Settings
	if s.Tenants != nil {
		m.shares = maps.Clone(s.Tenants.Shares)
	}
	if d := m.own; d != nil {
		d.learnt = restoreLearnt(c.Device, s.Learnt)
		if s.Settings != nil && c.Budget == 0 {
			d.config.Budget = s.Settings.Budget
		}
	}
	for _, brought := range s.Devices {
		m.open(m.config.For(&brought), &brought)
	}
	m.restoreDebts(s.Tenants)
	for _, d := range m.domains {
		for _, o := range s.Orders {
			if o.Lease != nil && o.On == d.on() && o.Lease.Name == d.config.Lease && o.Lease.Number > d.lease.Number {
				d.lease = *o.Lease
			}
		}
	}
	slices.SortFunc(s.Records, func(a, b wire.Record) int { return int(a.Seq - b.Seq) })
	for _, r := range s.Records {
		d := m.named(r.On)
		j := &job{domain: d, record: r, written: r, fresh: r.State == wire.Queued, fitted: true}
		if j.record.Waiting == 0 { // as the release before left it
			j.record.Waiting = r.Submitted
		}
		m.jobs, m.last = append(m.jobs, j), max(m.last, r.Seq)
		if r.State.Over() {
			continue
		}
		if err := m.takeUp(j, &s); err != nil {
			j.hurt = fmt.Sprintf("is held: %v; it goes on when that is mended and the controller is started anew, and "+
				"tensile stop %s ends it", err, r.Spec.Name)
			j.layouts = nil
			if j.domain == nil {
				j.domain = m.own // with whose memory it counts
			}
		}
		d = j.domain
		if name := r.Executor; d != nil && name != "" && m.executors[name] == nil {
			orders := m.stored[name]
			m.executors[name] = &executor{name: name, domain: d, life: orders.Life, own: wire.Owned(name),
				orders: orders, script: r.Spec.Script, refused: orders.Refused}
		}
		if x := m.executors[r.Executor]; x != nil && r.State == wire.Unknown {
			x.silent = true
		}
		if r.Target != "" && j.hurt == "" {
			m.moves.mover = j
		}
	}
	m.awaitIdle()
	return m
}

// otherwise says for what else the controller should have been started, where that holds for every job; "": it
// should not. Then its flags are wrong, not what is stored.
func (m *Machine) otherwise() (why string) {
	for _, j := range m.jobs {
		switch {
		case j.record.State.Over():
		case j.other == "":
			return ""
		case why == "":
			why = fmt.Sprintf("job %s %s", j.record.Spec.Name, j.other)
		}
	}
	return why
}

// takeUp takes up a job that is not over. The error says what of what is stored is missing, or wrong: it is held,
// and all else goes on.
func (m *Machine) takeUp(j *job, s *Stored) error {
	d, r := j.domain, j.record
	switch {
	case s.Hurt[r.Spec.Name] != "":
		return errors.New(s.Hurt[r.Spec.Name])
	case d == nil && (j.active() || j.placed()):
		return fmt.Errorf("it runs on %s, which this controller does not know: start it for that device",
			cmp.Or(r.On, r.Device))
	case d == nil:
		j.record.On = ""
	default:
		j.page = d.config.Page
	}
	if d != nil && r.State == wire.Parked && !j.placed() && r.Device != "" && r.Device != d.config.Device {
		j.domain, d = nil, nil // it has left a device that has gone since
	}
	if d != nil && r.State != wire.Queued && r.Device != "" && r.Device != d.config.Device {
		j.other = fmt.Sprintf("runs on %s, and this controller is for %s: start it for that device", r.Device,
			d.config.Device)
		return errors.New("it " + j.other)
	}
	if j.placed() && r.Sharing != d.config.MemorySharing {
		j.other = fmt.Sprintf("runs with memory sharing %s, and this controller is for %s: start it with "+
			"--memory-sharing %[1]s", r.Sharing, d.config.MemorySharing)
		return errors.New("it " + j.other)
	}
	if j.graph = s.Graphs[r.Spec.Graph]; j.graph == nil {
		return errors.New("its graph is not in the state directory: put that back from a copy, or submit the job anew")
	}
	j.findHome()
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
	d.expect(j)
	j.assumed = slices.Clone(j.latency)
	return j.restore(&d.config, s.Layouts[r.Spec.Name])
}

// awaitIdle counts executors without jobs as out of reach until they are heard, where they may have a context: they may
// have their device open.
func (m *Machine) awaitIdle() {
	for name, o := range m.stored {
		if d := m.named(o.On); d != nil && d.config.Context > 0 && m.executors[name] == nil {
			m.executors[name] = &executor{name: name, domain: d, life: o.Life, own: wire.Owned(name), orders: o,
				refused: o.Refused, silent: true}
		}
	}
}

// Resume returns what is to be done before the first step. Executors count as heard of now: they may have died with the
// controller before this one.
func (m *Machine) Resume(now time.Duration) []Output {
	m.begin(now)
	m.changed = true
	m.budgeted()
	for _, j := range m.jobs {
		j.begun = now
	}
	for _, x := range m.executors {
		x.heard = now
	}
	m.heal()
	for _, d := range m.domains {
		m.admit(d)
		if d.bare() {
			d.want.better = because(Resumed, "the controller was started again")
		}
		d.refit()
	}
	return m.end()
}

// budgeted says which budget counts where an administrator has set one of a controller before this one. That with which
// this controller was started comes before it, and is the newer word.
func (m *Machine) budgeted() {
	set := m.settings
	switch {
	case set == nil || m.own == nil:
		return
	case m.given == 0:
		m.event(Event{Kind: Budgeted, Reason: fmt.Sprintf("the budget is %s, as tensile budget has set it: --budget "+
			"at the start would come before that", words(set.Budget))})
		return
	case m.given != set.Budget:
		m.event(Event{Kind: Budgeted, Reason: fmt.Sprintf("the budget is %s, by --budget; that which tensile "+
			"budget had set, %s, counts no more", words(m.given), words(set.Budget))})
	}
	m.settings = nil
	m.say(Output{Drop: &Drop{Settings: wire.SettingsObject(m.own.config.Device)}})
}

// refit has the jobs of a device planned for again if its budget is another, or they have more of its host's memory
// than there is now.
func (d *domain) refit() {
	if d.rebudget(); d.want.better.none() && d.hostFull() {
		d.want.better = because(Memory, "there are %s of host memory", d.config.HostMemory)
	}
}

// rebudget has all jobs planned for again if the plans before were for another budget.
func (d *domain) rebudget() {
	live := slices.DeleteFunc(slices.Collect(d.jobs()), func(j *job) bool { return j.record.State.Over() })
	other := slices.IndexFunc(live, func(j *job) bool { return j.record.Budget != d.config.Budget })
	if other < 0 {
		return
	}
	of := ""
	if d.brought != nil {
		of = " of device " + d.on()
	}
	change := fmt.Sprintf("the budget%s is %s, and was %s", of, words(d.config.Budget),
		words(live[other].record.Budget))
	d.m.event(Event{Kind: Rebudgeted, Reason: change})
	d.want.better = because(Memory, "%s", change)
	for _, j := range live {
		j.record.Budget, j.stuck = d.config.Budget, false
		j.fresh = j.fresh || j.record.State == wire.Queued // it may never fit what there is now
	}
}

// words is a budget in words.
func words(budget graph.Bytes) string {
	if budget == 0 {
		return "unlimited"
	}
	return budget.String()
}

// inForce is the configuration with the memory sharing with which jobs run, if some do.
func (c Config) inForce(records []wire.Record) Config {
	for _, r := range records {
		if j := (job{record: r}); r.On == "" && j.placed() && r.Sharing != c.MemorySharing {
			c.MemorySharing = r.Sharing
			break
		}
	}
	return c
}

// restore takes up the layouts from the one that was granted last on. The claim that was stored stands until an
// executor says which is in force.
func (j *job) restore(c *Config, layouts []*wire.Layout) error {
	first, last := j.record.Epochs()
	for _, w := range layouts {
		if w.Plan.Epoch < first || w.Plan.Epoch > last || !j.active() {
			continue
		}
		if l := (&layout{ProvenLayout: ProvenLayout{Wire: w}, granted: true, delivered: true}); j.stale(l) {
			// It is there until an executor says that another is in force. What the script held beside that was in the
			// claim.
			l.held = max(0, j.record.Claim-w.Arena-j.reserve())
			j.layouts = append(j.layouts, l)
			continue
		}
		placed := program.Placement{Offsets: w.Offsets, Scratch: w.Scratch, Arena: w.Arena, Align: c.Align}
		proven, err := compile.Prove(j.graph, w.Plan, &placed, compile.Options{})
		if err != nil {
			return fmt.Errorf("layout %d is wrong: %w", w.Plan.Epoch, err)
		}
		l := &ProvenLayout{Wire: w, Peak: peak.Of(j.graph, w.Plan).Peak, Host: proven.Program().Host,
			Claim: c.claimOf(proven.Program()), program: proven.Program()}
		j.layouts = append(j.layouts, &layout{ProvenLayout: *l, granted: true, delivered: true,
			held: j.record.Spec.Held})
	}
	slices.SortFunc(j.layouts, func(a, b *layout) int { return int(a.epoch() - b.epoch()) })
	return nil
}
