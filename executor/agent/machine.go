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
	process Process
	now     time.Duration // of the newest input

	jobs    []*job // in the order in which they were ordered
	ticket  Ticket // of the youngest
	orders  int64  // number of the newest
	link    wire.Rates
	lease   wire.Lease // zero: jobs share no memory
	waits   map[lease.Job]string
	leave   bool     // ordered
	sent    string   // away: why this process is refused
	drain   error    // the process was interrupted: jobs end, and none begins
	account []string // what has become of jobs since then, a line each
	left    bool

	online bool
	away   time.Duration // since when there is no connection
	alone  time.Duration // since when there is neither a connection nor work
	said   int64         // number of the newest status
	news   bool          // something is not in that status
	out    []Output
}

// Process is the process of an executor.
type Process struct {
	Executor string        `json:"executor"`
	Life     string        `json:"life"` // another for each process that is called so
	Dead     []string      `json:"dead,omitzero"`
	Device   string        `json:"device"`           // its identity
	Host     string        `json:"host"`             // the machine on which it runs
	Folder   string        `json:"folder,omitzero"`  // identity of its folder of checkpoints; "": it is not known
	Place    string        `json:"place,omitzero"`   // where leases of its host are
	Since    int64         `json:"since_ns"`         // when it began: since the Unix epoch
	Origin   time.Duration `json:"origin_ns"`        // of the device's clock, since the Unix epoch; 0: it is virtual
	Brings   *wire.Device  `json:"brings,omitempty"` // its device; nil: it is that of the controller
	// how long it waits without work for a controller that is away; 0: an hour
	Alone time.Duration `json:"alone_ns,omitzero"`
	// how long its jobs train without a controller before they leave with a checkpoint; 0: for ever
	Orphan time.Duration `json:"orphan_ns,omitzero"`
}

// NewMachine returns the machine of an executor without jobs.
func NewMachine(p Process) *Machine { return &Machine{process: p, news: true} }

// Step takes one input, which arrived at a time since the Unix epoch, and returns what is to be done, in order. After a
// Leave there is nothing more to do.
func (m *Machine) Step(now time.Duration, in Input) []Output {
	if m.now == 0 {
		m.away, m.alone = now, now
	}
	m.now = max(m.now, now)
	m.out = nil
	if m.left {
		if in.Closed {
			m.close()
		}
		return m.out
	}
	switch {
	case in.Orders != nil:
		m.order(in.Orders)
	case in.Prepared != nil:
		m.prepared(in.Prepared)
	case in.Met != nil:
		m.met(in.Met)
	case in.Fetched != nil:
		m.fetched(in.Fetched)
	case in.Event != nil:
		m.observed(in.Event, in.Loss)
	case in.Kept != nil:
		m.kept(in.Kept)
	case in.Stored != nil:
		m.stored(in.Stored)
	case in.Written != nil:
		m.written(in.Written)
	case in.Online != nil:
		m.connection(*in.Online)
	case in.Tick:
		m.news, m.waits = true, in.Waits
		m.retry()
	case in.Drain != nil:
		m.drain, m.news = in.Drain, true
	case in.Quit != nil:
		m.quit(in.Quit)
	}
	if m.online {
		m.away = m.now
	} else if o := m.process.Orphan; o > 0 && m.now-m.away > o && m.drain == nil {
		m.drain = fmt.Errorf("its executor has had no controller for %v", o)
	}
	m.advance()
	if m.online || !m.idle() {
		m.alone = m.now
	}
	if m.news && m.online {
		m.report()
	}
	longest := cmp.Or(m.process.Alone, longestAlone)
	drained := m.drain != nil && m.idle()
	released := m.leave && m.idle() && m.online // what the last jobs came to must have been said
	switch {
	case m.sent != "":
		m.left = true
		m.say(Output{Refused: m.sent})
	case in.Quit != nil || drained || released || m.now-m.alone > longest:
		m.left = true
		m.say(Output{Leave: true})
	}
	return m.out
}

// longestAlone is how long an executor without work waits for a controller that is away.
const longestAlone = time.Hour

// idle reports whether the host has nothing, no job is to begin, and no result is to be stored with a controller that
// is there.
func (m *Machine) idle() bool {
	return !slices.ContainsFunc(m.jobs, func(j *job) bool {
		return j.hosted || !j.status.State.Over() || j.taking == writing || j.result != nil && m.online
	})
}

func (m *Machine) say(o Output) { m.out = append(m.out, o) }

func (m *Machine) event(e Event) { m.say(Output{Event: &e}) }

// order takes orders that are newer than all before.
func (m *Machine) order(o *wire.Orders) {
	if r := o.Refused; r != nil && o.Executor == m.process.Executor && r.Life == m.process.Life {
		m.sent = r.Why
	}
	if o.Executor != m.process.Executor || o.Life != "" && o.Life != m.process.Life || o.Number <= m.orders ||
		m.drain != nil {
		return
	}
	if m.orders == 0 && m.sent == "" {
		m.event(Event{Kind: Joined, Executor: m.process.Executor})
	}
	m.orders, m.leave, m.news = o.Number, o.Leave, true
	if o.Link != m.link {
		m.link = o.Link
		m.say(Output{Link: &o.Link})
	}
	if lease := leaseOf(o); lease != m.lease {
		m.lease = lease
		m.say(Output{Lend: &lease})
	}
	for _, j := range m.jobs {
		i := slices.IndexFunc(o.Jobs, func(w wire.Assignment) bool { return w.Spec.Name == j.spec.Name })
		switch {
		case i < 0:
			j.named, j.next = false, nil
			j.elsewhere = j.elsewhere || slices.Contains(o.Elsewhere, j.spec.ID)
		case j.named && same(j.spec, o.Jobs[i].Spec) && j.number == o.Jobs[i].Incarnation:
			j.epoch, j.stop = max(j.epoch, o.Jobs[i].Epoch), j.stop || o.Jobs[i].Stop
			j.copies, j.park, j.unplanned = o.Jobs[i].Copies, o.Jobs[i].Park, o.Jobs[i].Unplanned
			if next := o.Jobs[i].Spec; next.Graph != j.spec.Graph {
				j.spec.Graph, j.spec.Held, j.spec.Least, j.stale = next.Graph, next.Held, next.Least, true
			}
			j.at, j.neighbour, j.from = o.Jobs[i].At, o.Jobs[i].Neighbour, max(j.from, o.Jobs[i].From)
			m.trace(j, o.Jobs[i].Trace)
			m.weigh(j, o.Jobs[i].Spec.Priority)
		default: // another of the name, or another incarnation
			j.named, j.next = false, &o.Jobs[i]
		}
	}
	for _, w := range o.Jobs {
		if m.find(w.Spec.Name) == nil {
			m.begin(w)
		}
	}
}

// leaseOf is how jobs get memory by some orders.
func leaseOf(o *wire.Orders) wire.Lease {
	if o.Lease == nil {
		return wire.Lease{}
	}
	return *o.Lease
}

// weigh takes down what a job is worth where that counts.
func (m *Machine) weigh(j *job, priority int) {
	if m.lease.Sharing == wire.NoSharing || priority == j.spec.Priority {
		return
	}
	if j.spec.Priority = priority; j.hosted {
		m.say(Output{Weigh: &Weigh{j.spec.Name, priority}})
	}
}

// trace has the host tell what a job does, once for each time that it is wanted.
func (m *Machine) trace(j *job, t wire.Trace) {
	if t.Number <= j.trace.Number {
		return
	}
	if j.trace = t; j.hosted {
		m.say(Output{Trace: &Trace{j.spec.Name, t.Iterations}})
	}
}

// begin takes a job up.
func (m *Machine) begin(w wire.Assignment) {
	m.ticket++
	m.jobs = append(m.jobs, &job{ticket: m.ticket, spec: w.Spec, number: w.Incarnation, named: true, epoch: w.Epoch,
		stop: w.Stop, copies: w.Copies, from: w.From, park: w.Park,
		trace: w.Trace, unplanned: w.Unplanned, at: w.At, neighbour: w.Neighbour,
		status: wire.JobStatus{Name: w.Spec.Name, ID: w.Spec.ID, Incarnation: w.Incarnation, State: wire.Waiting}})
	m.news = true
}

// forget drops a job that the host does not have, and takes up the one of its name that was to follow.
func (m *Machine) forget(j *job) {
	m.jobs = slices.DeleteFunc(m.jobs, func(other *job) bool { return other == j })
	m.news = true
	m.discard(j)
	if j.next != nil {
		m.begin(*j.next)
	}
}

// connection notes whether the controller can be reached. What has failed for want of it is tried again.
func (m *Machine) connection(online bool) {
	if online && !m.online {
		m.news = true
		m.retry()
	}
	m.online = online
}

func (m *Machine) retry() {
	for _, j := range m.jobs {
		j.again, j.tried.again = false, true
	}
}

// quit ends all jobs that are not over: those that take checkpoints can go on from the newest one elsewhere.
func (m *Machine) quit(why error) {
	for _, j := range m.jobs {
		switch j.hosted = false; {
		case j.status.State.Over():
		case j.takes() && !j.stop:
			j.status.Error = line(why)
			m.over(j, wire.Suspended, j.status.Error)
		default:
			m.fail(j, why)
		}
	}
	m.news = true
}

// close says last that the life of this process is over: its name and what its jobs had are free.
func (m *Machine) close() {
	if m.online && m.sent == "" {
		m.process.Dead = append(slices.Clone(m.process.Dead), m.process.Life)
		m.report()
	}
}

// report says all that is being done. What it says of a job that the newest orders name is about that very job: where
// one of its name is not gone yet, the new one waits.
func (m *Machine) report() {
	m.said, m.news = m.said+1, false
	p := &m.process
	s := &wire.Status{Executor: p.Executor, Number: m.said, Life: p.Life, Device: p.Device, Host: p.Host,
		Folder: p.Folder, Place: p.Place, Since: p.Since, Orders: m.orders, Dead: p.Dead, Leaves: m.drain != nil,
		Brings: p.Brings, Jobs: []wire.JobStatus{}}
	for _, j := range m.jobs {
		if j.next != nil {
			s.Jobs = append(s.Jobs, wire.JobStatus{Name: j.spec.Name, State: wire.Waiting, Arena: j.status.Arena})
		} else {
			said := j.said()
			if said.Error == "" && !said.State.Over() {
				said.Error = m.waits[lease.Job(j.spec.Name)]
			}
			s.Jobs = append(s.Jobs, said)
		}
	}
	m.say(Output{Status: s})
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
