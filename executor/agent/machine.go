package agent

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tensile/device/lease"
	"tensile/wire"
)

// Machine decides for all jobs of one executor.
type Machine struct {
	// process is the process that the machine decides for.
	process Process
	// now is the time of the newest input.
	now time.Duration

	// jobs are the executor's jobs, in the order in which they were ordered.
	jobs []*job
	// ticket is that of the youngest job; 0: there was none.
	ticket Ticket
	// orders is the Number of the newest orders; 0: none have come.
	orders int64
	// link limits the copies of all jobs together.
	link wire.Rates
	// lease is how the jobs share memory; zero: each has an arena of its own.
	lease wire.Lease
	// waits are, by job, what it has waited for long at the lease, as of the last heartbeat.
	waits map[lease.Job]string
	// leaveOrdered says that the orders have the process end when its jobs are gone.
	leaveOrdered bool
	// refusal is why the controller does not want this process; "": it does.
	refusal string
	// interruption is why the process was interrupted; nil: it was not. Since then jobs end and none begins.
	interruption error
	// account is what has become of jobs since the interruption, a line each.
	account []string
	// hasLeft says that the process was told to end. Nothing but Closed counts since then.
	hasLeft bool

	// online says that there is a connection to the controller.
	online bool
	// offlineSince is the time since when there is no connection. It counts while online is false.
	offlineSince time.Duration
	// idleSince is the time since when there is neither a connection nor work.
	idleSince time.Duration
	// statusNumber is the Number of the newest status.
	statusNumber int64
	// changed says that something has happened that the newest status does not say.
	changed bool
	// out are the outputs of the present Step.
	out []Output
}

// Process is the process of an executor.
type Process struct {
	// Executor is the executor's name.
	Executor string `json:"executor"`
	// Life names the process: each process of that name has another.
	Life string `json:"life"`
	// Dead are the lives of that name that are known to have ended.
	Dead []string `json:"dead,omitzero"`
	// Device is the identity of the device.
	Device string `json:"device"`
	// Host is the name of the machine on which the process runs.
	Host string `json:"host"`
	// Folder is the identity of its folder of checkpoints; "": unknown.
	Folder string `json:"folder,omitzero"`
	// Place is where the leases of its host are.
	Place string `json:"place,omitzero"`
	// Since is when the process began, in nanoseconds since the Unix epoch.
	Since int64 `json:"since_ns"`
	// Origin is the zero of the device's clock, since the Unix epoch; 0: the clock is virtual.
	Origin time.Duration `json:"origin_ns"`
	// Brings describes the device that it brings; nil: it trains on that of the controller's process.
	Brings *wire.Device `json:"brings,omitempty"`
	// Alone is how long the process waits without work for a controller that is away; 0: an hour.
	Alone time.Duration `json:"alone_ns,omitzero"`
	// Orphan is how long its jobs train without a controller before they leave with a checkpoint; 0: for ever.
	Orphan time.Duration `json:"orphan_ns,omitzero"`
}

// NewMachine returns the machine of an executor without jobs.
func NewMachine(p Process) *Machine { return &Machine{process: p, changed: true} }

// Step takes one input, which arrived at a time since the Unix epoch, and returns what is to be done, in order. After a
// Leave there is nothing more to do.
func (m *Machine) Step(now time.Duration, in Input) []Output {
	if m.now == 0 {
		m.offlineSince, m.idleSince = now, now
	}
	m.now = max(m.now, now)
	m.out = nil
	if m.hasLeft {
		if in.Closed {
			m.close()
		}
		return m.out
	}
	switch {
	case in.Orders != nil:
		m.handleOrders(in.Orders)
	case in.Prepared != nil:
		m.handlePrepared(in.Prepared)
	case in.Met != nil:
		m.handleMet(in.Met)
	case in.Fetched != nil:
		m.handleFetched(in.Fetched)
	case in.Event != nil:
		m.handleHostEvent(in.Event, in.Loss)
	case in.Kept != nil:
		m.handleKept(in.Kept)
	case in.Stored != nil:
		m.handleStored(in.Stored)
	case in.Written != nil:
		m.handleWritten(in.Written)
	case in.Online != nil:
		m.setOnline(*in.Online)
	case in.Tick:
		m.changed, m.waits = true, in.Waits
		m.retry()
	case in.Drain != nil:
		m.interruption, m.changed = in.Drain, true
	case in.Quit != nil:
		m.quit(in.Quit)
	}
	if m.online {
		m.offlineSince = m.now
	} else if o := m.process.Orphan; o > 0 && m.now-m.offlineSince > o && m.interruption == nil {
		m.interruption = fmt.Errorf("its executor has had no controller for %v", o)
	}
	m.advance()
	if m.online || !m.isIdle() {
		m.idleSince = m.now
	}
	if m.changed && m.online {
		m.reportStatus()
	}
	longest := cmp.Or(m.process.Alone, longestAlone)
	drained := m.interruption != nil && m.isIdle()
	released := m.leaveOrdered && m.isIdle() && m.online // what the last jobs came to must have been said
	switch {
	case m.refusal != "":
		m.hasLeft = true
		m.emit(Output{Refused: m.refusal})
	case in.Quit != nil || drained || released || m.now-m.idleSince > longest:
		m.hasLeft = true
		m.emit(Output{Leave: true})
	}
	return m.out
}

// longestAlone is how long an executor without work waits for a controller that is away.
const longestAlone = time.Hour

// isIdle reports whether the host has nothing, no job is to begin, and no result is to be stored with a controller that
// is there.
func (m *Machine) isIdle() bool {
	return !slices.ContainsFunc(m.jobs, func(j *job) bool {
		return j.hosted || !j.status.State.Over() || j.checkpointing == writing || j.result != nil && m.online
	})
}

func (m *Machine) emit(o Output) { m.out = append(m.out, o) }

func (m *Machine) emitEvent(e Event) { m.emit(Output{Event: &e}) }

// handleOrders follows orders that are newer than all before.
func (m *Machine) handleOrders(o *wire.Orders) {
	if r := o.Refused; r != nil && o.Executor == m.process.Executor && r.Life == m.process.Life {
		m.refusal = r.Reason
	}
	if o.Executor != m.process.Executor || o.Life != "" && o.Life != m.process.Life || o.Number <= m.orders ||
		m.interruption != nil {
		return
	}
	if m.orders == 0 && m.refusal == "" {
		m.emitEvent(Event{Kind: Joined, Executor: m.process.Executor})
	}
	m.orders, m.leaveOrdered, m.changed = o.Number, o.Leave, true
	if o.Link != m.link {
		m.link = o.Link
		m.emit(Output{Link: &o.Link})
	}
	if lease := leaseOf(o); lease != m.lease {
		m.lease = lease
		m.emit(Output{Lend: &lease})
	}
	for _, j := range m.jobs {
		i := slices.IndexFunc(o.Jobs, func(w wire.Assignment) bool { return w.Spec.Name == j.spec.Name })
		switch {
		case i < 0:
			j.ordered, j.successor = false, nil
			j.continuesElsewhere = j.continuesElsewhere || slices.Contains(o.Elsewhere, j.spec.ID)
		case j.ordered && isSameJob(j.spec, o.Jobs[i].Spec) && j.incarnation == o.Jobs[i].Incarnation:
			j.epoch, j.stop = max(j.epoch, o.Jobs[i].Epoch), j.stop || o.Jobs[i].Stop
			j.wantsCopies, j.park, j.unplanned = o.Jobs[i].Copies, o.Jobs[i].Park, o.Jobs[i].Unplanned
			if next := o.Jobs[i].Spec; next.Graph != j.spec.Graph {
				j.spec.Graph, j.spec.Held, j.spec.Least, j.stale = next.Graph, next.Held, next.Least, true
			}
			j.actAt, j.neighbour, j.knownCheckpoint = o.Jobs[i].At, o.Jobs[i].Neighbour, max(j.knownCheckpoint,
				o.Jobs[i].From)
			m.trace(j, o.Jobs[i].Trace)
			m.weigh(j, o.Jobs[i].Spec.Priority)
		default: // another of the name, or another incarnation
			j.ordered, j.successor = false, &o.Jobs[i]
		}
	}
	for _, w := range o.Jobs {
		if m.find(w.Spec.Name) == nil {
			m.addJob(w)
		}
	}
}

// leaseOf returns how orders have the jobs share memory.
func leaseOf(o *wire.Orders) wire.Lease {
	if o.Lease == nil {
		return wire.Lease{}
	}
	return *o.Lease
}

// weigh records what a job is worth, where jobs share memory.
func (m *Machine) weigh(j *job, priority int) {
	if m.lease.Sharing == wire.NoSharing || priority == j.spec.Priority {
		return
	}
	if j.spec.Priority = priority; j.hosted {
		m.emit(Output{Weigh: &Weigh{j.spec.Name, priority}})
	}
}

// trace tells the host to trace a job, once for each time that the orders ask for it.
func (m *Machine) trace(j *job, t wire.Trace) {
	if t.Number <= j.trace.Number {
		return
	}
	if j.trace = t; j.hosted {
		m.emit(Output{Trace: &Trace{j.spec.Name, t.Iterations}})
	}
}

// addJob adds the job of an assignment.
func (m *Machine) addJob(w wire.Assignment) {
	m.ticket++
	m.jobs = append(m.jobs, &job{ticket: m.ticket, spec: w.Spec, incarnation: w.Incarnation, ordered: true,
		epoch: w.Epoch,
		stop:  w.Stop, wantsCopies: w.Copies, knownCheckpoint: w.From, park: w.Park,
		trace: w.Trace, unplanned: w.Unplanned, actAt: w.At, neighbour: w.Neighbour,
		status: wire.JobStatus{Name: w.Spec.Name, ID: w.Spec.ID, Incarnation: w.Incarnation, State: wire.Waiting}})
	m.changed = true
}

// dropJob removes a job that the host does not have, and adds its successor.
func (m *Machine) dropJob(j *job) {
	m.jobs = slices.DeleteFunc(m.jobs, func(other *job) bool { return other == j })
	m.changed = true
	m.discard(j)
	if j.successor != nil {
		m.addJob(*j.successor)
	}
}

// setOnline records whether the controller can be reached. What has failed without a connection is tried again.
func (m *Machine) setOnline(online bool) {
	if online && !m.online {
		m.changed = true
		m.retry()
	}
	m.online = online
}

func (m *Machine) retry() {
	for _, j := range m.jobs {
		j.retryDue, j.lastTry.retryDue = false, true
	}
}

// quit ends all jobs that are not over: those that take checkpoints can go on from the newest one elsewhere.
func (m *Machine) quit(why error) {
	for _, j := range m.jobs {
		switch j.hosted = false; {
		case j.status.State.Over():
		case j.takesCheckpoints() && !j.stop:
			j.status.Error = errorLine(why)
			m.endJob(j, wire.Suspended, j.status.Error)
		default:
			m.fail(j, why)
		}
	}
	m.changed = true
}

// close publishes a last status, which says that the life of this process is over: its name and the memory of its jobs
// are free.
func (m *Machine) close() {
	if m.online && m.refusal == "" {
		m.process.Dead = append(slices.Clone(m.process.Dead), m.process.Life)
		m.reportStatus()
	}
}

// reportStatus publishes a status. If a job of the newest orders waits until another of its name is gone, the status is
// about the waiting one.
func (m *Machine) reportStatus() {
	m.statusNumber, m.changed = m.statusNumber+1, false
	p := &m.process
	s := &wire.Status{Executor: p.Executor, Number: m.statusNumber, Life: p.Life, Device: p.Device, Host: p.Host,
		Folder: p.Folder, Place: p.Place, Since: p.Since, Orders: m.orders, Dead: p.Dead, Leaves: m.interruption != nil,
		Brings: p.Brings, Jobs: []wire.JobStatus{}}
	for _, j := range m.jobs {
		if j.successor != nil {
			s.Jobs = append(s.Jobs, wire.JobStatus{Name: j.spec.Name, State: wire.Waiting, Arena: j.status.Arena})
		} else {
			said := j.reportedStatus()
			if said.Error == "" && !said.State.Over() {
				said.Error = m.waits[lease.Job(j.spec.Name)]
			}
			s.Jobs = append(s.Jobs, said)
		}
	}
	m.emit(Output{Status: s})
}

func (m *Machine) find(name string) *job {
	return m.findBy(func(j *job) bool { return j.spec.Name == name })
}

func (m *Machine) findBy(is func(*job) bool) *job {
	if i := slices.IndexFunc(m.jobs, is); i >= 0 {
		return m.jobs[i]
	}
	return nil
}
