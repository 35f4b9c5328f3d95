package controller

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"tensile/controller/fleet"
	"tensile/graph"
	"tensile/wire"
)

// Machine decides for all jobs. Its zero value is of no use: see [NewMachine] and [Restore]. Times are since the Unix
// epoch.
type Machine struct {
	config Config
	devices
	placing
	times
	// jobs are in the order of their submission.
	jobs []*job
	// executors are those that may live, or were heard of lately, by name.
	executors fleet.Fleet
	// profiles has what is known of graphs on devices that executors have registered.
	profiles map[profileKey]*knownProfile
	lastNumbers
	tallies
	tenancy
	predecessor
	step
}

// devices are those that jobs are planned for.
type devices struct {
	// domains has one domain per device, ordered by name.
	domains []*domain
	// ownDomain is the domain of the device of this process. nil: the process has none.
	ownDomain *domain
}

// placing is what is being found out about the devices of jobs.
type placing struct {
	// search is the placement search that is going on. nil: none is.
	search *placementSearch
	// needsPlacement says that queued jobs are to be looked at which may begin on several devices.
	needsPlacement bool
	// migrations are the jobs that may go to another device or are on their way.
	migrations migrations
}

// times are those of inputs, since the Unix epoch.
type times struct {
	// now is the time of the newest input.
	now time.Duration
	// lastTick is when the newest tick came. 0: none has come.
	lastTick time.Duration
}

// lastNumbers are the newest that were given.
type lastNumbers struct {
	// lastSeq is the Record.Seq of the youngest job. 0: there was none.
	lastSeq int64
	// lastTicket is the ticket of the newest plan request. 0: there was none.
	lastTicket int64
}

// tallies count what was done since the controller was started.
type tallies struct {
	// counters count what jobs have done, by owner.
	counters map[string]*Counters
	// reportCount is how many iterations were reported, and lostReports how many reports were lost between these.
	reportCount, lostReports int64
}

// predecessor is what a controller before this one, or the start of this one, has left.
type predecessor struct {
	// startBudget is the budget with which this controller was started. 0: none was given.
	startBudget graph.Bytes
	// settings are those that an administrator has set. nil: none, or those at the start count instead.
	settings *wire.Settings
	// storedOrders are the newest orders of a controller before this one, by executor.
	storedOrders map[string]wire.Orders
}

// step is what belongs to one step of a machine. It is empty when the step begins.
type step struct {
	// changed says that something has changed that others are to know.
	changed bool
	// replies are given last, when what they tell is stored.
	replies []reply
	// departed names the executors that have left.
	departed []string
	// drops remove objects. They come after the records that do not need these any more.
	drops []Output
	// outputs is what the step wants done so far.
	outputs []Output
}

// reply is the answer to a request at the end of a step.
type reply struct {
	to   int64  // Input.From of the request; 0: nobody waits
	jobs []*job // the jobs that the request is about
	err  error  // nil: the request was done
}

// NewMachine returns the machine of a controller without jobs.
func NewMachine(c Config) *Machine {
	c = c.withDefaults()
	m := &Machine{config: c, executors: make(fleet.Fleet), profiles: make(map[profileKey]*knownProfile)}
	m.startBudget, m.counters = c.Budget, make(map[string]*Counters)
	m.migrations = migrations{pause: c.MovePause, coolDowns: make(map[string]coolDown)}
	if !c.NoDevice {
		m.ownDomain = m.openDevice(c, nil)
	}
	return m
}

// Step takes one input, which arrived at a time since the Unix epoch, and returns what is to be done, in order. It
// never makes plans: Output.plans.Request asks for them, and Input.plans.Result brings them.
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

// beginStep clears what belongs to one step.
func (m *Machine) beginStep(now time.Duration) {
	m.now = max(m.now, now)
	m.step = step{}
}

// endStep decides what follows from the input, and returns what the step wants done.
func (m *Machine) endStep() []Output {
	if len(m.departed) > 0 {
		m.emitRecords() // so that no stored record names an executor that is removed
	}
	for _, name := range m.departed {
		// before anything is stored for another process of that name
		m.emit(Output{ProcessOutput: ProcessOutput{Forget: name}})
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
			m.countWait(j)
		}
		m.emitChanges()
		m.forgetOldJobs()
		for _, d := range m.domains {
			d.replanForContexts()
		}
	}
	m.outputs = append(m.outputs, m.drops...) // records that still name these objects come before
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
// its name, which is forgotten when the new one is taken.
func (m *Machine) Records() []wire.Record {
	records := make([]wire.Record, 0, len(m.jobs))
	for _, j := range m.listed() {
		r := j.record
		m.fillClaim(j, &r)
		r.Pace, r.Gate, r.Loss, r.Measured = j.iterationTime, j.gateTime, j.losses.last, j.measuredSlowdown()
		if j.damage != "" && !r.State.Over() {
			r.Reason = j.damage
		}
		if r.Reason == "" && r.Unplanned != "" {
			r.Reason = "has no plan: " + r.Unplanned
		}
		records = append(records, r)
	}
	return records
}

// listed are the jobs but for those that a younger one of the same name hides.
func (m *Machine) listed() []*job {
	youngest := make(map[string]*job, len(m.jobs))
	for _, j := range m.jobs {
		youngest[j.record.Spec.Name] = j
	}
	return slices.DeleteFunc(slices.Clone(m.jobs), func(j *job) bool { return youngest[j.record.Spec.Name] != j })
}

// Trouble says in one line why no other job can begin. "": jobs can.
func (m *Machine) Trouble() string {
	for _, d := range m.domains {
		if held := d.takenBytes(); d.config.Budget > 0 && held > d.config.Budget && d.lastNoPlan != "" {
			return fmt.Sprintf("jobs hold %s of %s%s, and cannot shrink that far: nothing else begins until some "+
				"have ended or are parked", held, d.config.Budget, d.contexts().Suffix())
		}
	}
	return ""
}

// Budget is what the arenas of all jobs, and contexts, may take together of the device of this process, in bytes. 0:
// there is no limit, or no such device.
func (m *Machine) Budget() graph.Bytes {
	if m.ownDomain == nil {
		return 0
	}
	return m.ownDomain.config.Budget
}

// Contexts are those that this process and all executors that may live have on the device of this process.
func (m *Machine) Contexts() wire.Contexts {
	if m.ownDomain == nil {
		return wire.Contexts{}
	}
	return m.ownDomain.contexts()
}

// emit adds an output to the step.
func (m *Machine) emit(o Output) { m.outputs = append(m.outputs, o) }

// emitEvent adds an event to the step.
func (m *Machine) emitEvent(e Event) { m.emit(Output{Event: &e}) }

// findJob is the youngest job of a name. nil: there is none.
func (m *Machine) findJob(name string) *job {
	for _, j := range slices.Backward(m.jobs) { // the youngest of a name
		if j.record.Spec.Name == name {
			return j
		}
	}
	return nil
}

// activeJobs are the jobs of the device that are planned for.
func (d *domain) activeJobs() []*job {
	return slices.DeleteFunc(slices.Collect(d.jobs()), func(j *job) bool { return !j.isActive() })
}

// emitChanges emits what has changed: records first, so that a controller that dies in between knows at least as much
// as its executors.
func (m *Machine) emitChanges() {
	m.emitRecords()
	for _, d := range m.domains {
		d.updateLease()
	}
	for _, x := range m.executors.Sorted() {
		if !x.IsGone() {
			m.sendOrders(x)
		}
	}
}

// emitRecords emits the records that have changed.
func (m *Machine) emitRecords() {
	for _, j := range m.jobs {
		if j.batch != nil {
			continue // the job may yet be refused
		}
		m.fillClaim(j, &j.record)
		now := j.record
		now.Iteration = j.stored.Iteration // progress alone is not worth a write
		if !reflect.DeepEqual(now, j.stored) {
			j.stored = j.record
			stored := j.record
			m.emit(Output{Record: &stored})
		}
	}
}

// fillClaim fills in a record what the job claims.
func (m *Machine) fillClaim(j *job, r *wire.Record) {
	if j.domain == nil || j.damage != "" {
		return // the job has no memory, or the amount that is stored
	}
	c, config := j.claim(), &j.domain.config
	r.Claim, r.Host, r.Sharing, r.Base = c.Arena, j.hostClaim(), config.MemorySharing, 0
	if config.sharesMemory() {
		r.Base = c.Base
	}
}

// linkOf is the rate that the copies of an executor's jobs may take together.
func (m *Machine) linkOf(x *fleet.Executor) (sum wire.Rates) {
	for j := range m.domainByRecord(x.Device).jobs() {
		if j.record.Executor == x.Name && j.isActive() {
			sum.Out, sum.In = sum.Out+j.record.Link.Out, sum.In+j.record.Link.In
		}
	}
	return sum
}

// sendOrders emits the orders of an executor if they have changed. Orders are for one process, so that two with the
// same credentials never train one job: nothing is sent before the executor has joined.
func (m *Machine) sendOrders(x *fleet.Executor) {
	if x.Life == "" {
		return
	}
	d := m.domainByRecord(x.Device)
	orders := wire.Orders{Executor: x.Name, On: x.Device, Jobs: []wire.Assignment{}, Life: x.Life,
		Refused: x.Refusal}
	var weights map[*job]int
	if m.hasTenants() {
		weights = m.tenantWeights(d.activeJobs())
	}
	away := x.IsRefused(x.Life)
	for _, j := range m.jobs {
		if j.record.Executor == x.Name && j.hasExecutor() && !away {
			spec := j.orderedSpec()
			spec.Priority = cmp.Or(weights[j], spec.Priority)
			a := wire.Assignment{Spec: spec, Incarnation: j.record.Incarnation,
				From: j.record.From, Epoch: j.record.Granted, Stop: j.record.State == wire.JobStopping,
				Park: j.record.Park, Copies: j.wantsReport, Trace: j.trace, Unplanned: j.record.Unplanned}
			if j.isReplica() {
				m.orderRest(j, &a)
			}
			orders.Jobs = append(orders.Jobs, a)
		}
	}
	for _, j := range m.jobs {
		for _, h := range j.record.Held {
			if h.Executor == x.Name && h.Life == x.Life {
				orders.Elsewhere = append(orders.Elsewhere, h.ID)
			}
		}
	}
	if orders.Link = m.linkOf(x); d.config.sharesMemory() {
		lease := d.lease
		orders.Lease = &lease
	}
	orders.Leave = x.Kind != fleet.ByHand && len(orders.Jobs) == 0
	if orders.Number = x.Orders.Number; x.Orders.Number > 0 && reflect.DeepEqual(orders, x.Orders) {
		return
	}
	orders.Number++
	x.Orders = orders
	m.emit(Output{Orders: &orders})
}
