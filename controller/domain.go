package controller

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"tensile/graph"
	"tensile/predictor/correct"
	"tensile/wire"
)

// domain is a device and all that is planned for on it together: its facts and budget, what its jobs claim, the plans
// that are being made, and what was learnt of it.
type domain struct {
	m       *Machine
	config  Config       // the machine's, with the facts of this device
	brought *wire.Device // by executors; nil: it is the device of the controller's process

	line     correct.Line // by which profiles are wrong on the device, as the jobs so far have shown
	learnt   learnt
	training []*job // those whose stretches are worked out

	errand *errand       // the plans that are being made; nil: none
	rest   time.Duration // until when no drift of latencies has plans made
	want   wants
	noPlan string // that and why there were no new plans, as it was said last; "": there were some
	sought bool   // a job is to be tried on it: what is only better waits
	opened int    // processes that had the device open, or were to, at the end of the last step

	ledger ledger     // what tenants got of it
	lease  wire.Lease // what leases have to give; zero where jobs share no memory
}

// For is the configuration for a device that executors bring: they train all jobs of it.
func (c Config) For(d *wire.Device) Config {
	c.Device, c.Name, c.Align = d.Identity, d.Name, d.Align
	c.Out, c.In, c.Sharing = d.Facts.Out, d.Facts.In, d.Facts.Sharing()
	c.Budget, c.Context, c.HostMemory, c.Limited = d.Budget, d.Context, d.HostMemory, d.Limited
	if c.Page = d.Page; c.Page == 0 {
		c.MemorySharing = wire.NoSharing
	}
	if !c.shares() {
		c.Page, c.Lease = 0, ""
	} else if c.Lease != "" { // a host may have several devices
		c.Lease += "-" + d.Name
	}
	c.Share, c.NoDevice = true, false
	return c
}

// open returns the domain of a device of which nothing is known yet but its facts.
func (m *Machine) open(c Config, brought *wire.Device) *domain {
	d := &domain{m: m, config: c, brought: brought, learnt: restoreLearnt(c.Device, nil)}
	m.domains = append(m.domains, d)
	slices.SortFunc(m.domains, func(a, b *domain) int { return cmp.Compare(a.on(), b.on()) })
	return d
}

// on is the name of the device in records: "" is that of the controller's process.
func (d *domain) on() string {
	if d == nil || d.brought == nil {
		return ""
	}
	return d.brought.Name
}

// named is the domain of a device as records name it; nil: there is none.
func (m *Machine) named(on string) *domain {
	if i := slices.IndexFunc(m.domains, func(d *domain) bool { return d.on() == on }); i >= 0 {
		return m.domains[i]
	}
	return nil
}

// device is the domain of a device as people name it; nil: there is none.
func (m *Machine) device(name string) *domain {
	if m.own != nil && name == m.own.config.Name {
		return m.own
	}
	if name == "" {
		return nil
	}
	return m.named(name)
}

// jobs are those of the device, in the order of their submission, also those that are over.
func (d *domain) jobs() iter.Seq[*job] {
	return func(yield func(*job) bool) {
		for _, j := range d.m.jobs {
			if j.domain == d && !yield(j) {
				return
			}
		}
	}
}

// executors are those that have the device open, or are to.
func (d *domain) executors() iter.Seq[*executor] {
	return func(yield func(*executor) bool) {
		for _, x := range d.m.executors {
			if x.domain == d && !yield(x) {
				return
			}
		}
	}
}

// heldBy is what older incarnations of a job may still have of this device and on its host, whichever device the job is
// on now.
func (d *domain) heldBy(j *job) (bytes, host graph.Bytes) {
	for _, h := range j.record.Held {
		if h.On == d.on() {
			bytes, host = bytes+h.Bytes, host+h.Host
		}
	}
	return bytes, host
}

// held is that of all jobs.
func (d *domain) held() (bytes, host graph.Bytes) {
	for _, j := range d.m.jobs {
		b, h := d.heldBy(j)
		bytes, host = bytes+b, host+h
	}
	return bytes, host
}

// admit has the jobs looked at that wait, since they may fit a device now.
func (m *Machine) admit(d *domain) {
	if d != nil {
		d.want.admission = true
	}
	m.look = true
	m.stir()
	for _, j := range m.jobs {
		j.full, j.dense, j.passed = false, false, false
	}
}

// domainOf returns the domain of an executor that was not started from here, or why there is none.
func (m *Machine) domainOf(s *wire.Status) (*domain, string) {
	b := s.Brings
	if b == nil || wire.Owned(s.Executor) || m.own != nil && b.Name == m.own.config.Name {
		switch {
		case m.own == nil:
			return nil, "it brings no device, and this controller has none: start one of the controller's release"
		case s.Device != m.own.config.Device:
			return nil, fmt.Sprintf("its device is %s, jobs here are planned for %s", s.Device, m.own.config.Device)
		}
		return m.own, ""
	}
	d := m.named(b.Name)
	switch {
	case len(m.domains) > 0 && simulated(m.domains[0].config.Device) != simulated(s.Device): // which has no data
		return nil, fmt.Sprintf("its device is %s, jobs here are planned for %s", s.Device, m.domains[0].config.Device)
	case b.Identity != s.Device:
		return nil, fmt.Sprintf("it brings a device %s, and has %s", b.Identity, s.Device)
	case d == nil:
		brought := *b
		d = m.open(m.config.For(&brought), &brought)
		m.say(Output{Device: &brought})
		m.event(Event{Kind: Opened, Device: b.Name, Host: b.Host, Reason: b.Identity, Budget: b.Budget})
		m.admit(d)
	case d.config.Device != s.Device:
		return nil, fmt.Sprintf("device %s is %s, and its own is %s: give that another --name", b.Name,
			d.config.Device, s.Device)
	}
	return d, ""
}

// simulated reports whether a device has virtual time and no data.
func simulated(device string) bool { return strings.HasPrefix(device, "sim:") }

// budgeted takes what the executor that alone has a device says of the memory there: its process may have been started
// again with another --budget, before the device was forgotten. What a new one says counts even if it is what was
// said before: the device may have been crowded since.
func (d *domain) budgeted(x *executor, brings *wire.Device, begins bool) {
	if d.brought == nil || brings == nil {
		return
	}
	was := d.brought.Budget
	if begins {
		was = d.config.Budget
	}
	if brings.Budget == was && brings.HostMemory == d.brought.HostMemory {
		return
	}
	for other := range d.executors() {
		if other != x && !other.gone {
			return // they share it with the budget of the first
		}
	}
	stored := *d.brought
	stored.Budget, stored.HostMemory, stored.Limited = brings.Budget, brings.HostMemory, brings.Limited
	d.brought, d.m.changed = &stored, true
	d.config.Budget, d.config.HostMemory, d.config.Limited = stored.Budget, stored.HostMemory, stored.Limited
	d.m.say(Output{Device: &stored})
	d.refit()
	d.m.unstick()
	d.m.admit(d)
}

// alive reports whether a job may begin on the device: its own process can start an executor, or one is heard of.
func (d *domain) alive() bool {
	if d.brought == nil {
		return true
	}
	for x := range d.executors() {
		if x.joined && !x.gone && !x.silent {
			return true
		}
	}
	return false
}

// close forgets a device of which no executor is left when nobody has anything of it. One that is drained stays so.
func (m *Machine) close(d *domain) {
	bytes, host := d.held()
	if d.brought == nil || d.brought.Drained || bytes > 0 || host > 0 {
		return
	}
	for x := range d.executors() {
		if !x.gone {
			return // it may come back
		}
	}
	for j := range d.jobs() {
		if j.active() || j.placed() {
			return
		}
	}
	if m.trial != nil {
		m.abandon()
	}
	if d.errand != nil {
		m.say(Output{Cancel: d.errand.ticket})
	}
	for j := range d.jobs() {
		if !j.record.State.Over() {
			m.unplace(j)
		}
	}
	m.domains = slices.DeleteFunc(m.domains, func(o *domain) bool { return o == d })
	m.say(Output{Drop: &Drop{Device: d.on()}})
	m.event(Event{Kind: Closed, Device: d.on()})
	m.changed = true
	m.admit(nil)
}

// state is what people are told of the device.
func (d *domain) state() wire.DeviceState {
	s := wire.DeviceState{Own: d.brought == nil, Used: d.taken(), HostUsed: d.hostClaims()}
	if s.Own {
		s.Device = wire.Device{Name: d.config.Name, Identity: d.config.Device, Budget: d.config.Budget,
			HostMemory: d.config.HostMemory, Align: d.config.Align, Page: d.config.Page, Context: d.config.Context}
	} else {
		s.Device = *d.brought
		s.Device.Budget = d.config.Budget // which may be less, where the device is crowded
	}
	s.Facts.Out, s.Facts.In = d.config.Out, d.config.In
	for j := range d.jobs() {
		if j.active() || j.placed() {
			s.Jobs++
		}
	}
	for x := range d.executors() {
		switch {
		case x.gone:
		case x.silent:
			s.Silent++
		case x.joined:
			s.Executors++
		}
	}
	return s
}

// Devices are those that jobs are planned for on, that of this process first.
func (m *Machine) Devices() []wire.DeviceState {
	states := make([]wire.DeviceState, len(m.domains))
	for i, d := range m.domains {
		states[i] = d.state()
	}
	return states
}

// drain has a device take no jobs, and those that it has leave with a checkpoint; or lets it take jobs again.
func (m *Machine) drain(q *wire.Request) (moved []*job, err error) {
	d := m.device(q.Device)
	switch {
	case d == nil:
		return nil, fmt.Errorf("there is no device %s: tensile devices lists them", q.Device)
	case d.brought == nil:
		return nil, fmt.Errorf("device %s is that of the controller itself: park its jobs, or start the controller "+
			"with --device none and an executor beside it", q.Device)
	}
	stored := *d.brought
	stored.Drained = !q.Undo
	d.brought, m.changed = &stored, true
	m.say(Output{Device: &stored})
	m.admit(d)
	if q.Undo {
		m.unstick() // replicas may fit on two devices that do not fit on one
		return nil, nil
	}
	for _, j := range m.onAny(d) {
		if moved = append(moved, j); !m.vacate(j) {
			j.record.Reason = fmt.Sprintf("stays on device %s, which is drained, to its end: it takes no checkpoints",
				d.on())
		}
	}
	return moved, nil
}

// onAny are the jobs that executors of a device have, and the siblings of these.
func (m *Machine) onAny(d *domain) (list []*job) {
	for _, j := range m.jobs {
		there := func(o *job) bool {
			return o.domain == d && !o.record.State.Over() && o.batch == nil && o.record.Executor != ""
		}
		if slices.ContainsFunc(m.all(j), there) && !j.record.State.Over() {
			list = append(list, j)
		}
	}
	return list
}

// vacate has a job leave its device with a checkpoint and wait for another, and reports whether it can.
func (m *Machine) vacate(j *job) bool {
	switch {
	case j.record.State == wire.JobStopping || j.record.State == wire.JobUnknown:
		return true // it gives all back anyway, or cannot hear of it
	case j.record.Spec.Checkpoint == wire.Interval{} && !(j.claim().none() && j.hostClaim() == 0):
		return false
	}
	if rests := j.record.State == wire.JobParked || j.record.State == wire.JobParking; !rests {
		j.record.Preempted = true // it goes on when it has left
	}
	m.goHome(j, wire.OnDisk)
	return true
}
