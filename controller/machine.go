package controller

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"tensile/graph"
	"tensile/planner"
	"tensile/predictor/correct"
	"tensile/scheduler"
	"tensile/wire"
)

// Config says what a controller plans for, and how.
type Config struct {
	planner.Device             // executors of another are sent away
	Budget         graph.Bytes // for the arenas of all jobs together; 0: no limit
	Policy         string
	Options        scheduler.Options
	Share          bool        // one executor for all jobs; otherwise one each
	Limited        bool        // the link is no faster than Out and In: executors are told their part
	Stop           func() bool // asked while planning; once it is true, no plan is made any more, and what a step says then is worth nothing. nil: never
	Keep           int         // so many jobs that are over are remembered; 0: all

	Alpha     float64 // weight of a new latency in the moving average; 0: 0.3
	Threshold float64 // change of a job's latency that has all jobs planned again; 0: 0.1
	Settle    int     // reports after a new plan before another change counts; 0: 5
	Horizon   int     // iterations over which a better plan has to repay the change to it; 0: 100
}

// Input is what a machine is told; one field is set.
type Input struct {
	Submit []Submission // all are taken, or none
	Stop   string       // the name of a job
	Status *wire.Status
	Report *wire.Report
	Gone   *Gone
}

// Submission is a new job.
type Submission struct {
	Spec  wire.Spec
	Graph *graph.Graph
	At    time.Duration // since the Unix epoch
}

// Gone tells that an executor will never be heard of again.
type Gone struct{ Executor, Why string }

// Output is what a machine wants done; one field is set. Outputs are to be carried out in their order.
type Output struct {
	Answer *wire.Answer // to a Submit or Stop
	Record *wire.Record // to be stored under the name of its job
	Graph  *Delivery    // to be stored where an executor finds it
	Layout *Delivery
	Orders *wire.Orders // to an executor
	Launch string       // an executor is to be started by this name
	Forget string       // an executor has left: what is stored for it is of no use any more
	Drop   *Drop        // of a job that is over and not remembered any more
	Line   string       // for the log
}

// Delivery is an object for an executor.
type Delivery struct {
	Executor string
	Job      string
	Graph    *graph.Graph
	Layout   *wire.Layout
}

// Machine decides for all jobs of one device.
type Machine struct {
	config    Config
	jobs      []*job // in the order of their submission
	executors map[string]*executor
	last      int64                  // the order of the youngest job
	line      correct.Line           // by which profiles are wrong on the device, as the jobs so far have shown
	changed   bool                   // in this step: something that others are to know
	answer    func() wire.Answer     // in this step, given last: what it says is stored then
	stored    map[string]wire.Orders // of a controller before this one
	out       []Output
	noPlans   string // why there were no new plans, as it was logged last
}

// executor is a process that trains jobs, or is about to be started.
type executor struct {
	name    string
	life    string // of its process; "": not known yet
	host    string // where that runs
	since   int64  // when it began: since the Unix epoch, in nanoseconds
	seen    int64  // number of its newest status
	joined  bool   // it was heard of
	own     bool   // it was started for certain jobs and is to leave when they are over
	gone    bool
	orders  wire.Orders   // the newest
	rival   *wire.Status  // of another process of that name, until it is known whether the first one lives
	refused *wire.Refusal // of the last such process
}

// NewMachine returns the machine of a controller without jobs.
func NewMachine(c Config) *Machine {
	c.Alpha = cmp.Or(c.Alpha, 0.3)
	c.Threshold = cmp.Or(c.Threshold, 0.1)
	c.Settle = cmp.Or(c.Settle, 5)
	c.Horizon = cmp.Or(c.Horizon, 100)
	return &Machine{config: c, executors: make(map[string]*executor)}
}

// Step takes one input and returns what is to be done, in order.
func (m *Machine) Step(in Input) []Output {
	m.out, m.changed, m.answer = nil, false, nil
	switch {
	case in.Submit != nil:
		m.submit(in.Submit)
		for _, s := range in.Submit {
			m.dropGraph(s.Spec.Graph) // it was refused
		}
	case in.Stop != "":
		m.stop(in.Stop)
	case in.Status != nil:
		m.status(in.Status)
	case in.Report != nil:
		m.report(in.Report)
	case in.Gone != nil:
		m.gone(in.Gone)
	}
	if m.changed { // most reports and statuses change nothing
		m.grant()
		m.place()
		m.write()
		m.retire()
	}
	if m.answer != nil {
		a := m.answer()
		m.say(Output{Answer: &a})
	}
	return m.out
}

// Records are those of all jobs, in the order of their submission.
func (m *Machine) Records() []wire.Record {
	records := make([]wire.Record, len(m.jobs))
	for i, j := range m.jobs {
		records[i] = j.record
		records[i].Claim = j.claim()
		records[i].Pace, records[i].Loss = j.pace, j.heard.last
	}
	return records
}

func (m *Machine) say(o Output) { m.out = append(m.out, o) }

func (m *Machine) log(format string, values ...any) {
	m.say(Output{Line: fmt.Sprintf(format, values...)})
}

func (m *Machine) find(name string) *job {
	for _, j := range slices.Backward(m.jobs) { // the youngest of a name
		if j.record.Spec.Name == name {
			return j
		}
	}
	return nil
}

// active are the jobs that are planned for.
func (m *Machine) active() []*job {
	return slices.DeleteFunc(slices.Clone(m.jobs), func(j *job) bool { return j.record.Phase == wire.Queued || j.record.Phase.Over() })
}

// write says what has changed: records first, so that a controller that dies in between knows at least as much as its
// executors.
func (m *Machine) write() {
	for _, j := range m.jobs {
		j.record.Claim = j.claim()
		now := j.record
		now.Iteration = j.written.Iteration // not worth a write of its own
		if !reflect.DeepEqual(now, j.written) {
			j.written = j.record
			stored := j.record
			m.say(Output{Record: &stored})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.executors)) {
		if x := m.executors[name]; !x.gone {
			m.order(x)
		}
	}
}

// linkOf is what the copies of an executor's jobs may take.
func (m *Machine) linkOf(x *executor) (sum wire.Rates) {
	for _, j := range m.active() {
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
	orders := wire.Orders{Executor: x.name, Jobs: []wire.Order{}, Life: x.life, Refused: x.refused}
	for _, j := range m.jobs {
		if j.record.Executor != x.name || j.record.Phase.Over() || j.record.Phase == wire.Queued {
			continue
		}
		orders.Jobs = append(orders.Jobs, wire.Order{Spec: j.record.Spec, Epoch: j.record.Granted, Stop: j.record.Phase == wire.Ending})
	}
	orders.Link = m.linkOf(x)
	orders.Leave = x.own && len(orders.Jobs) == 0
	if orders.Number = x.orders.Number; x.orders.Number > 0 && reflect.DeepEqual(orders, x.orders) {
		return
	}
	orders.Number++
	x.orders = orders
	m.say(Output{Orders: &orders})
}
