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
	config    Config
	domains   []*domain     // one per device
	own       *domain       // that of the device of this process; nil: it has none
	trial     *trial        // a job that is tried on several; nil: none is
	look      bool          // jobs are to be looked at that may be tried
	moves     moves         // of jobs that train
	now       time.Duration // of the newest input
	ticked    time.Duration // when the newest tick came
	jobs      []*job        // in the order of their submission
	executors map[string]*executor
	kinds     map[kind]*known // of graphs on devices that executors bring
	last      int64           // Record.Order of the youngest job
	ticket    int64           // of the newest errand

	tallies map[string]*Tally // by owner
	reports int64             // of iterations that were counted
	missing int64             // that were lost between these

	given    graph.Bytes    // the budget with which this controller was started; 0: none
	settings *wire.Settings // that were set while a controller ran; nil: none
	shares   map[string]int // of tenants; none: there are no tenants
	debts    *wire.Tenants  // as they were stored last; nil: never by this controller

	stored  map[string]wire.Orders // of a controller before this one
	changed bool                   // in this step: something that others are to know
	replies []reply                // of this step, given last: what they say is stored then
	forgets []string               // executors that have left in this step
	drops   []Output               // of this step
	out     []Output
}

// executor is a process that trains jobs, or is about to be started.
type executor struct {
	domain   *domain // of its device
	name     string
	life     string        // of its process; "": not known yet
	host     string        // where that runs
	folder   string        // identity of its folder of checkpoints; "": it is not known
	place    string        // where its leases are
	since    int64         // when it began: since the Unix epoch, in nanoseconds
	seen     int64         // number of its newest status
	heard    time.Duration // when it was last heard of
	launched bool          // this controller had it started
	killed   bool          // it was told to end at once
	joined   bool          // it was heard of
	own      bool          // it was started for certain jobs and is to leave when they are over
	gone     bool
	dead     bool          // it is gone, and its process has ended for sure
	silent   bool          // it cannot be reached
	leaving  bool          // it was interrupted: it takes no job any more
	script   bool          // it is that of a script, and takes no other job
	orders   wire.Orders   // the newest
	rivals   []string      // lives of other processes of that name, as it was said
	rival    *wire.Status  // of another process of that name, until it is known whether the first one lives
	refused  *wire.Refusal // of the last such process
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
	m := &Machine{config: c, given: c.Budget, executors: make(map[string]*executor), tallies: make(map[string]*Tally),
		kinds: make(map[kind]*known), moves: moves{pause: c.Pause, futile: make(map[string]futile)}}
	if !c.NoDevice {
		m.own = m.open(c, nil)
	}
	return m
}

// Step takes one input, which arrived at a time since the Unix epoch, and returns what is to be done, in order. It
// never plans: that is an errand, which Output.Plan asks for and Input.Planned brings back.
func (m *Machine) Step(now time.Duration, in Input) []Output {
	m.begin(now)
	switch {
	case in.Submit != nil:
		m.submit(in.From, in.By, in.Submit)
	case in.Request != nil:
		m.request(in.From, in.By, in.Request, in.To)
	case in.Status != nil:
		m.status(in.Status)
	case in.Report != nil:
		m.report(in.Report)
	case in.Gone != nil:
		m.ended(in.Gone)
	case in.Planned != nil:
		m.planned(in.Planned)
	case in.Tick != nil:
		m.tick(in.Tick)
	}
	return m.end()
}

func (m *Machine) begin(now time.Duration) {
	m.now = max(m.now, now)
	m.out, m.forgets, m.drops, m.changed, m.replies = nil, nil, nil, false, nil
}

// end returns what a step wants done.
func (m *Machine) end() []Output {
	if len(m.forgets) > 0 {
		m.writeRecords() // that name them no more: a controller that dies in between finds no job at one that is gone
	}
	for _, name := range m.forgets {
		m.say(Output{Forget: name}) // before anything is stored for another process of its name
	}
	m.assign()
	m.try()
	m.retreat()
	m.shift()
	for _, d := range m.domains {
		d.repay()
		d.preempt()
		d.unload()
	}
	if m.changed { // most reports and statuses change nothing
		m.enter()
		for _, d := range m.domains {
			d.grant()
			d.place()
		}
		for _, j := range m.jobs {
			m.queue(j)
		}
		m.write()
		m.retire()
		for _, d := range m.domains {
			d.recount()
		}
	}
	m.out = append(m.out, m.drops...) // after the records that do not need them any more
	for _, d := range m.domains {
		d.ask()
	}
	for _, r := range m.replies {
		a := Answer{To: r.to}
		if r.err != nil {
			a.Error = r.err.Error()
		}
		for _, j := range r.jobs {
			a.Jobs = append(a.Jobs, j.record)
		}
		m.say(Output{Answer: &a})
	}
	return m.out
}

// Records are those of all jobs, in the order of their submission. A job that is not taken yet hides an older one of
// its name, which is forgotten when it is.
func (m *Machine) Records() []wire.Record {
	records := make([]wire.Record, 0, len(m.jobs))
	for _, j := range m.jobs {
		if m.find(j.record.Spec.Name) != j {
			continue
		}
		r := j.record
		m.claimed(j, &r)
		r.Pace, r.Gate, r.Loss, r.Measured = j.pace, j.gate, j.heard.last, j.slowdown()
		if j.hurt != "" && !r.State.Over() {
			r.Reason = j.hurt
		}
		if r.Reason == "" && r.Unplanned != "" {
			r.Reason = "has no plan: " + r.Unplanned
		}
		records = append(records, r)
	}
	return records
}

// Trouble says why nothing else begins, in one line; "": it does.
func (m *Machine) Trouble() string {
	for _, d := range m.domains {
		if held := d.taken(); d.config.Budget > 0 && held > d.config.Budget && d.noPlan != "" {
			return fmt.Sprintf("jobs hold %s of %s%s, and cannot shrink that far: nothing else begins until some "+
				"have ended or are parked", held, d.config.Budget, with(d.contexts()))
		}
	}
	return ""
}

// Budget is what the arenas of all jobs, and contexts, may take together of the device of this process; 0: there is no
// limit, or no such device.
func (m *Machine) Budget() graph.Bytes {
	if m.own == nil {
		return 0
	}
	return m.own.config.Budget
}

// Contexts are what this process and all executors that may live take of that by having the device open.
func (m *Machine) Contexts() wire.Contexts {
	if m.own == nil {
		return wire.Contexts{}
	}
	return m.own.contexts()
}

// ByHand reports whether executors that were not started here take jobs.
func (m *Machine) ByHand() bool {
	for _, x := range m.executors {
		if x.joined && !x.own && !x.gone && !x.leaving {
			return true
		}
	}
	return false
}

func (m *Machine) say(o Output) { m.out = append(m.out, o) }

func (m *Machine) event(e Event) { m.say(Output{Event: &e}) }

func (m *Machine) find(name string) *job {
	for _, j := range slices.Backward(m.jobs) { // the youngest of a name
		if j.record.Spec.Name == name {
			return j
		}
	}
	return nil
}

// active are the jobs that are planned for.
func (d *domain) active() []*job {
	return slices.DeleteFunc(slices.Collect(d.jobs()), func(j *job) bool { return !j.active() })
}

// write says what has changed: records first, so that a controller that dies in between knows at least as much as its
// executors.
func (m *Machine) write() {
	m.writeRecords()
	for _, d := range m.domains {
		d.lend()
	}
	for _, name := range slices.Sorted(maps.Keys(m.executors)) {
		if x := m.executors[name]; !x.gone {
			m.order(x)
		}
	}
}

// writeRecords says which records have changed.
func (m *Machine) writeRecords() {
	for _, j := range m.jobs {
		if j.batch != nil {
			continue // it may yet be refused
		}
		m.claimed(j, &j.record)
		now := j.record
		now.Iteration = j.written.Iteration // not worth a write of its own
		if !reflect.DeepEqual(now, j.written) {
			j.written = j.record
			stored := j.record
			m.say(Output{Record: &stored})
		}
	}
}

// claimed says in a record what a job counts with.
func (m *Machine) claimed(j *job, r *wire.Record) {
	if j.domain == nil || j.hurt != "" {
		return // it has nothing of any, or what it was stored with
	}
	c, config := j.claim(), &j.domain.config
	r.Claim, r.Host, r.Sharing, r.Base = c.Arena, j.hostClaim(), config.MemorySharing, 0
	if config.shares() {
		r.Base = c.Base
	}
}

// linkOf is what the copies of an executor's jobs may take.
func (m *Machine) linkOf(x *executor) (sum wire.Rates) {
	for _, j := range x.domain.active() {
		if j.record.Executor == x.name {
			sum.Out, sum.In = sum.Out+j.record.Link.Out, sum.In+j.record.Link.In
		}
	}
	return sum
}

// order tells an executor what it is to do if that has changed. Orders are for one process, so that two with the same
// credentials never train one job: before it has joined it hears nothing.
func (m *Machine) order(x *executor) {
	if x.life == "" {
		return
	}
	orders := wire.Orders{Executor: x.name, On: x.domain.on(), Jobs: []wire.Assignment{}, Life: x.life,
		Refused: x.refused}
	var weights map[*job]int
	if m.tenanted() {
		weights = m.weights(x.domain.active())
	}
	away := x.refused != nil && x.refused.Life == x.life
	for _, j := range m.jobs {
		if j.record.Executor == x.name && j.placed() && !away {
			spec := j.ordered()
			if w := weights[j]; w > 0 {
				spec.Priority = w
			}
			a := wire.Assignment{Spec: spec, Incarnation: j.record.Incarnation,
				From: j.record.From, Epoch: j.record.Granted, Stop: j.record.State == wire.JobStopping,
				Park:   j.record.Park,
				Copies: j.follow, Trace: j.trace, Unplanned: j.record.Unplanned}
			if j.replica() {
				m.ordersRest(j, &a)
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
	if orders.Link = m.linkOf(x); x.domain.config.shares() {
		lease := x.domain.lease
		orders.Lease = &lease
	}
	orders.Leave = x.own && len(orders.Jobs) == 0
	if orders.Number = x.orders.Number; x.orders.Number > 0 && reflect.DeepEqual(orders, x.orders) {
		return
	}
	orders.Number++
	x.orders = orders
	m.say(Output{Orders: &orders})
}
