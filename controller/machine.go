package controller

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"tensile/graph"
	"tensile/wire"
)

// Machine decides for all jobs.
type Machine struct {
	config         Config
	domains        []*domain        // one per device
	ownDomain      *domain          // that of the device of this process; nil: it has none
	search         *placementSearch // a job that is tried on several; nil: none is
	needsPlacement bool             // jobs are to be looked at that may be tried
	migrations     migrations       // of jobs that train
	now            time.Duration    // of the newest input
	lastTick       time.Duration    // when the newest tick came
	jobs           []*job           // in the order of their submission
	executors      map[string]*executor
	profiles       map[profileKey]*knownProfile // of graphs on devices that executors bring
	lastSeq        int64                        // Record.Order of the youngest job
	lastTicket     int64                        // of the newest errand

	counters    map[string]*Counters // by owner
	reportCount int64                // of iterations that were counted
	lostReports int64                // that were lost between these

	startBudget graph.Bytes    // the budget with which this controller was started; 0: none
	settings    *wire.Settings // that were set while a controller ran; nil: none
	shares      map[string]int // of tenants; none: there are no tenants
	storedDebts *wire.Tenants  // as they were stored last; nil: never by this controller

	storedOrders map[string]wire.Orders // of a controller before this one
	changed      bool                   // in this step: something that others are to know
	replies      []reply                // of this step, given last: what they say is stored then
	departed     []string               // executors that have left in this step
	drops        []Output               // of this step
	outputs      []Output
}

// executor is a process that trains jobs, or is about to be started.
type executor struct {
	domain     *domain // of its device
	name       string
	life       string        // of its process; "": not known yet
	host       string        // where that runs
	folder     string        // identity of its folder of checkpoints; "": it is not known
	leaseHost  string        // where its leases are
	startedAt  int64         // when it began: since the Unix epoch, in nanoseconds
	lastStatus int64         // number of its newest status
	lastHeard  time.Duration // when it was last heard of
	launched   bool          // this controller had it started
	killed     bool          // it was told to end at once
	joined     bool          // it was heard of
	forJobs    bool          // it was started for certain jobs and is to leave when they are over
	gone       bool
	dead       bool          // it is gone, and its process has ended for sure
	silent     bool          // it cannot be reached
	leaving    bool          // it was interrupted: it takes no job any more
	forScript  bool          // it is that of a script, and takes no other job
	orders     wire.Orders   // the newest
	duplicates []string      // lives of other processes of that name, as it was said
	duplicate  *wire.Status  // of another process of that name, until it is known whether the first one lives
	refusal    *wire.Refusal // of the last such process
}

// reply is what whoever asked for something is told at the end of a step.
type reply struct {
	to   int64
	jobs []*job
	err  error
}

// NewMachine returns the machine of a controller without jobs.
func NewMachine(c Config) *Machine {
	c = c.withDefaults()
	m := &Machine{config: c, startBudget: c.Budget, executors: make(map[string]*executor),
		counters: make(map[string]*Counters),
		profiles: make(map[profileKey]*knownProfile), migrations: migrations{pause: c.MovePause,
			backoffs: make(map[string]backoff)}}
	if !c.NoDevice {
		m.ownDomain = m.openDevice(c, nil)
	}
	return m
}

// Step takes one input, which arrived at a time since the Unix epoch, and returns what is to be done, in order. It
// never plans: that is an errand, which Output.Plan asks for and Input.Planned brings back.
func (m *Machine) Step(now time.Duration, in Input) []Output {
	m.beginStep(now)
	switch {
	case in.Submit != nil:
		m.submitJobs(in.From, in.By, in.Submit)
	case in.Request != nil:
		m.handleRequest(in.From, in.By, in.Request, in.To)
	case in.Status != nil:
		m.applyStatus(in.Status)
	case in.Report != nil:
		m.applyReport(in.Report)
	case in.Ended != nil:
		m.executorEnded(in.Ended)
	case in.PlanResult != nil:
		m.takeResult(in.PlanResult)
	case in.Tick != nil:
		m.applyTick(in.Tick)
	}
	return m.endStep()
}

func (m *Machine) beginStep(now time.Duration) {
	m.now = max(m.now, now)
	m.outputs, m.departed, m.drops, m.changed, m.replies = nil, nil, nil, false, nil
}

// endStep returns what a step wants done.
func (m *Machine) endStep() []Output {
	if len(m.departed) > 0 {
		m.emitRecords() // that name them no more: a controller that dies in between finds no job at one that is gone
	}
	for _, name := range m.departed {
		m.emit(Output{Forget: name}) // before anything is stored for another process of its name
	}
	m.assignDevices()
	m.startSearch()
	m.requeueIncompleteGang()
	m.migrate()
	for _, d := range m.domains {
		d.repayDebt()
		d.preempt()
		d.unloadParked()
	}
	if m.changed { // most reports and statuses change nothing
		m.startGang()
		for _, d := range m.domains {
			d.grant()
			d.assignExecutors()
		}
		for _, j := range m.jobs {
			m.countQueueTime(j)
		}
		m.emitChanges()
		m.forgetOldJobs()
		for _, d := range m.domains {
			d.replanForContexts()
		}
	}
	m.outputs = append(m.outputs, m.drops...) // after the records that do not need them any more
	for _, d := range m.domains {
		d.requestDuePlans()
	}
	for _, r := range m.replies {
		a := Answer{To: r.to}
		if r.err != nil {
			a.Error = r.err.Error()
		}
		for _, j := range r.jobs {
			a.Jobs = append(a.Jobs, j.record)
		}
		m.emit(Output{Answer: &a})
	}
	return m.outputs
}

// Records are those of all jobs, in the order of their submission. A job that is not taken yet hides an older one of
// its name, which is forgotten when it is.
func (m *Machine) Records() []wire.Record {
	records := make([]wire.Record, 0, len(m.jobs))
	for _, j := range m.jobs {
		if m.findJob(j.record.Spec.Name) != j {
			continue
		}
		r := j.record
		m.fillClaim(j, &r)
		r.Pace, r.Gate, r.Loss, r.Measured = j.iterationTime, j.gateTime, j.losses.last, j.measuredSlowdown()
		if j.damage != "" && !r.State.Over() {
			r.Why = j.damage
		}
		if r.Why == "" && r.Unplanned != "" {
			r.Why = "has no plan: " + r.Unplanned
		}
		records = append(records, r)
	}
	return records
}

// Trouble says why nothing else begins, in one line; "": it does.
func (m *Machine) Trouble() string {
	for _, d := range m.domains {
		if held := d.takenBytes(); d.config.Budget > 0 && held > d.config.Budget && d.lastNoPlan != "" {
			return fmt.Sprintf("jobs hold %s of %s%s, and cannot shrink that far: nothing else begins until some "+
				"have ended or are parked", held, d.config.Budget, contextSuffix(d.contexts()))
		}
	}
	return ""
}

// Budget is what the arenas of all jobs, and contexts, may take together of the device of this process; 0: there is no
// limit, or no such device.
func (m *Machine) Budget() graph.Bytes {
	if m.ownDomain == nil {
		return 0
	}
	return m.ownDomain.config.Budget
}

// Contexts are what this process and all executors that may live take of that by having the device open.
func (m *Machine) Contexts() wire.Contexts {
	if m.ownDomain == nil {
		return wire.Contexts{}
	}
	return m.ownDomain.contexts()
}

// ByHand reports whether executors that were not started here take jobs.
func (m *Machine) ByHand() bool {
	for _, x := range m.executors {
		if x.joined && !x.forJobs && !x.gone && !x.leaving {
			return true
		}
	}
	return false
}

func (m *Machine) emit(o Output) { m.outputs = append(m.outputs, o) }

func (m *Machine) emitEvent(e Event) { m.emit(Output{Event: &e}) }

func (m *Machine) findJob(name string) *job {
	for _, j := range slices.Backward(m.jobs) { // the youngest of a name
		if j.record.Spec.Name == name {
			return j
		}
	}
	return nil
}

// activeJobs are the jobs that are planned for.
func (d *domain) activeJobs() []*job {
	return slices.DeleteFunc(slices.Collect(d.jobs()), func(j *job) bool { return !j.isActive() })
}

// emitChanges says what has changed: records first, so that a controller that dies in between knows at least as much as
// its executors.
func (m *Machine) emitChanges() {
	m.emitRecords()
	for _, d := range m.domains {
		d.updateLease()
	}
	for _, name := range slices.Sorted(maps.Keys(m.executors)) {
		if x := m.executors[name]; !x.gone {
			m.sendOrders(x)
		}
	}
}

// emitRecords says which records have changed.
func (m *Machine) emitRecords() {
	for _, j := range m.jobs {
		if j.batch != nil {
			continue // it may yet be refused
		}
		m.fillClaim(j, &j.record)
		now := j.record
		now.Iteration = j.stored.Iteration // not worth a write of its own
		if !reflect.DeepEqual(now, j.stored) {
			j.stored = j.record
			stored := j.record
			m.emit(Output{Record: &stored})
		}
	}
}

// fillClaim says in a record what a job counts with.
func (m *Machine) fillClaim(j *job, r *wire.Record) {
	if j.domain == nil || j.damage != "" {
		return // it has nothing of any, or what it was stored with
	}
	c, config := j.claim(), &j.domain.config
	r.Claim, r.Host, r.Sharing, r.Base = c.Arena, j.hostClaim(), config.MemorySharing, 0
	if config.sharesMemory() {
		r.Base = c.Base
	}
}

// linkOf is what the copies of an executor's jobs may take.
func (m *Machine) linkOf(x *executor) (sum wire.Rates) {
	for _, j := range x.domain.activeJobs() {
		if j.record.Executor == x.name {
			sum.Out, sum.In = sum.Out+j.record.Link.Out, sum.In+j.record.Link.In
		}
	}
	return sum
}

// sendOrders tells an executor what it is to do if that has changed. Orders are for one process, so that two with the
// same credentials never train one job: before it has joined it hears nothing.
func (m *Machine) sendOrders(x *executor) {
	if x.life == "" {
		return
	}
	orders := wire.Orders{Executor: x.name, On: x.domain.recordName(), Jobs: []wire.Assignment{}, Life: x.life,
		Refused: x.refusal}
	var weights map[*job]int
	if m.hasTenants() {
		weights = m.tenantWeights(x.domain.activeJobs())
	}
	away := x.refusal != nil && x.refusal.Life == x.life
	for _, j := range m.jobs {
		if j.record.Executor == x.name && j.hasExecutor() && !away {
			spec := j.orderedSpec()
			if w := weights[j]; w > 0 {
				spec.Priority = w
			}
			a := wire.Assignment{Spec: spec, Incarnation: j.record.Incarnation,
				From: j.record.From, Epoch: j.record.Granted, Stop: j.record.State == wire.Ending, Park: j.record.Park,
				Copies: j.wantsReport, Trace: j.trace, Unplanned: j.record.Unplanned}
			if j.isReplica() {
				m.orderRest(j, &a)
			}
			orders.Jobs = append(orders.Jobs, a)
		}
	}
	for _, j := range m.jobs {
		for _, h := range j.record.Held {
			if h.Executor == x.name && h.Life == x.life {
				orders.Elsewhere = append(orders.Elsewhere, h.ID)
			}
		}
	}
	if orders.Link = m.linkOf(x); x.domain.config.sharesMemory() {
		lease := x.domain.lease
		orders.Lease = &lease
	}
	orders.Leave = x.forJobs && len(orders.Jobs) == 0
	if orders.Number = x.orders.Number; x.orders.Number > 0 && reflect.DeepEqual(orders, x.orders) {
		return
	}
	orders.Number++
	x.orders = orders
	m.emit(Output{Orders: &orders})
}
