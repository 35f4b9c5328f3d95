package controller

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"tensile/controller/fleet"
	"tensile/controller/learn"
	"tensile/controller/queue"
	"tensile/graph"
	"tensile/predictor/correct"
	"tensile/wire"
)

// domain is a device and all that is planned for on it together: its facts and budget, what its jobs claim, the plan
// request that is being answered, and what was learnt of it. Times are since the Unix epoch.
type domain struct {
	// m is the machine that the domain belongs to.
	m *Machine
	// config is the machine's, with the facts of this device.
	config Config
	// registered is the device as executors have registered it. nil: it is the device of the controller's own process.
	registered *wire.Device

	// correction is by how much profiles are wrong on the device, as the jobs so far have shown. Its Factor is 0 as
	// long as none has.
	correction correct.Line
	// learnt has the latencies of ops that reports have taught.
	learnt *learn.Latencies
	// learntStoredAt is when that was stored last.
	learntStoredAt time.Duration
	// sharers are the Training jobs for which job.slowdown was computed last.
	sharers []*job

	// request is the plan request that is being answered. nil: there is none.
	request *openRequest
	// driftNotBefore is the end of the cool-down in which a drift of latencies causes no plan request. 0: there was
	// none.
	driftNotBefore time.Duration
	// pending is what plans are to be requested for as soon as no request is open.
	pending pendingPlans
	// lastNoPlan is the event, in words, that told last why there are no new plans; it is told once. "": the newest
	// request for better plans had some.
	lastNoPlan string
	// inSearch says that a placement search may ask the device for plans: requests that only look for better ones wait.
	inSearch bool
	// openContexts is how many processes had the device open, or were to, at the end of the newest step. It is 0 where
	// contexts take no memory.
	openContexts int

	// ledger is what tenants got of the device. It is empty while there are no tenants.
	ledger queue.Ledger
	// lease is the capacity that leases were told last. It is zero where jobs share no memory.
	lease wire.Lease
}

// ForDevice is the configuration for a device that executors register: they train all jobs of it.
func (c Config) ForDevice(d *wire.Device) Config {
	c.Device, c.Name, c.Align = d.Identity, d.Name, d.Align
	c.Out, c.In, c.Sharing = d.Facts.Out, d.Facts.In, d.Facts.Sharing()
	c.Budget, c.Context, c.HostMemory, c.Limited = d.Budget, d.Context, d.HostMemory, d.Limited
	if c.Page = d.Page; c.Page == 0 {
		c.MemorySharing = wire.NoSharing
	}
	if !c.sharesMemory() {
		c.Page, c.Lease = 0, ""
	} else if c.Lease != "" { // a host may have several devices
		c.Lease += "-" + d.Name
	}
	c.OneExecutor, c.NoDevice = true, false
	return c
}

// openDevice adds the domain of a device of which only the facts are known.
func (m *Machine) openDevice(c Config, brought *wire.Device) *domain {
	d := &domain{m: m, config: c, registered: brought, learnt: learn.Restore(c.Device, nil),
		learntStoredAt: -storeEvery, ledger: queue.Ledger{Turn: c.Turn}}
	m.domains = append(m.domains, d)
	slices.SortFunc(m.domains, func(a, b *domain) int { return cmp.Compare(a.recordName(), b.recordName()) })
	return d
}

// recordName is the name of the device in records. "": it is the device of the controller's process.
func (d *domain) recordName() string {
	if d == nil || d.registered == nil {
		return ""
	}
	return d.registered.Name
}

// domainByRecord is the domain of a device as records name it. nil: there is none.
func (m *Machine) domainByRecord(on string) *domain {
	if i := slices.IndexFunc(m.domains, func(d *domain) bool { return d.recordName() == on }); i >= 0 {
		return m.domains[i]
	}
	return nil
}

// domainByName is the domain of a device as people name it. nil: there is none.
func (m *Machine) domainByName(name string) *domain {
	if m.ownDomain != nil && name == m.ownDomain.config.Name {
		return m.ownDomain
	}
	if name == "" {
		return nil
	}
	return m.domainByRecord(name)
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

// executors are those that have the device open, or are to have it open.
func (d *domain) executors() iter.Seq[*fleet.Executor] { return d.m.executors.AtDevice(d.recordName()) }

// reservationsOf is what earlier incarnations of a job may still have of this device and on its host, in bytes,
// whichever device the job is on now.
func (d *domain) reservationsOf(j *job) (bytes, host graph.Bytes) {
	for _, h := range j.record.Held {
		if h.On == d.recordName() {
			bytes, host = bytes+h.Bytes, host+h.Host
		}
	}
	return bytes, host
}

// reservations is what earlier incarnations of all jobs may still have of this device and on its host, in bytes.
func (d *domain) reservations() (bytes, host graph.Bytes) {
	for _, j := range d.m.jobs {
		b, h := d.reservationsOf(j)
		bytes, host = bytes+b, host+h
	}
	return bytes, host
}

// retryAdmission has the queued jobs looked at again, because they may fit a device now. d is the device on which
// something has changed; nil: any.
func (m *Machine) retryAdmission(d *domain) {
	if d != nil {
		d.pending.admission = true
	}
	m.needsPlacement = true
	m.wakeMigrations()
	for _, j := range m.jobs {
		j.found = findings{}
	}
}

// domainOf returns the domain of an executor that was not started from here, or why there is none.
func (m *Machine) domainOf(s *wire.Status) (*domain, string) {
	b := s.Brings
	if b == nil || wire.Owned(s.Executor) || m.ownDomain != nil && b.Name == m.ownDomain.config.Name {
		switch {
		case m.ownDomain == nil:
			return nil, "it brings no device, and this controller has none: start one of the controller's release"
		case s.Device != m.ownDomain.config.Device:
			return nil, fmt.Sprintf("its device is %s, jobs here are planned for %s", s.Device,
				m.ownDomain.config.Device)
		}
		return m.ownDomain, ""
	}
	d := m.domainByRecord(b.Name)
	switch {
	// Simulated devices have no data, so the two kinds do not go together.
	case len(m.domains) > 0 && isSimulated(m.domains[0].config.Device) != isSimulated(s.Device):
		return nil, fmt.Sprintf("its device is %s, jobs here are planned for %s", s.Device, m.domains[0].config.Device)
	case b.Identity != s.Device:
		return nil, fmt.Sprintf("it brings a device %s, and has %s", b.Identity, s.Device)
	case d == nil:
		brought := *b
		d = m.openDevice(m.config.ForDevice(&brought), &brought)
		m.emit(Output{Device: &brought})
		m.emitEvent(Event{Kind: Opened, Device: b.Name, Host: b.Host, Reason: b.Identity,
			Amounts: Amounts{Budget: b.Budget}})
		m.retryAdmission(d)
	case d.config.Device != s.Device:
		return nil, fmt.Sprintf("device %s is %s, and its own is %s: give that another --name", b.Name,
			d.config.Device, s.Device)
	}
	return d, ""
}

// isSimulated reports whether a device has virtual time and no data.
func isSimulated(device string) bool { return strings.HasPrefix(device, "sim:") }

// applyRegisteredBudget takes the budget that an executor registers for its device, if no other executor has that
// device. The process may have been started again with another --budget, before the device was forgotten. The budget of
// a new process counts even if it is the registered one: the controller may have lowered it since, where the device was
// crowded.
func (d *domain) applyRegisteredBudget(x *fleet.Executor, brings *wire.Device, begins bool) {
	if d.registered == nil || brings == nil {
		return
	}
	was := d.registered.Budget
	if begins {
		was = d.config.Budget
	}
	if brings.Budget == was && brings.HostMemory == d.registered.HostMemory {
		return
	}
	for other := range d.executors() {
		if other != x {
			return // another executor shares the device, with the budget of the first
		}
	}
	stored := *d.registered
	stored.Budget, stored.HostMemory, stored.Limited = brings.Budget, brings.HostMemory, brings.Limited
	d.registered, d.m.changed = &stored, true
	d.config.Budget, d.config.HostMemory, d.config.Limited = stored.Budget, stored.HostMemory, stored.Limited
	d.m.emit(Output{Device: &stored})
	d.replanForMemory()
	d.m.unblock()
	d.m.retryAdmission(d)
}

// canStartJobs reports whether a job may begin on the device: the controller can start an executor of it, or an
// executor of it can be reached.
func (d *domain) canStartJobs() bool {
	if d.registered == nil {
		return true
	}
	here, _ := d.m.executors.Count(d.recordName())
	return here > 0
}

// closeDevice forgets a device when no executor of it is left and no job has anything of it. A drained device stays.
func (m *Machine) closeDevice(d *domain) {
	bytes, host := d.reservations()
	if d.registered == nil || d.registered.Drained || bytes > 0 || host > 0 {
		return
	}
	for range d.executors() {
		return // the executor may come back
	}
	for j := range d.jobs() {
		if j.isActive() || j.hasExecutor() {
			return
		}
	}
	if m.search != nil {
		m.abandonSearch()
	}
	if d.request != nil {
		m.emit(Output{PlanOutput: PlanOutput{Cancel: d.request.ticket}})
	}
	for j := range d.jobs() {
		if !j.record.State.Over() {
			m.unbindDevice(j)
		}
	}
	m.domains = slices.DeleteFunc(m.domains, func(o *domain) bool { return o == d })
	m.emit(Output{Drop: &Drop{Device: d.recordName()}})
	m.emitEvent(Event{Kind: Closed, Device: d.recordName()})
	m.changed = true
	m.retryAdmission(nil)
}

// describe is what people are told of the device.
func (d *domain) describe() wire.DeviceState {
	s := wire.DeviceState{Own: d.registered == nil, Used: d.takenBytes(), HostUsed: d.totalHostClaims()}
	if s.Own {
		s.Device = wire.Device{Name: d.config.Name, Identity: d.config.Device, Budget: d.config.Budget,
			HostMemory: d.config.HostMemory, Align: d.config.Align, Page: d.config.Page, Context: d.config.Context}
	} else {
		s.Device = *d.registered
		s.Device.Budget = d.config.Budget // it may be less than the registered one, where other programs use the device
	}
	s.Facts.Out, s.Facts.In = d.config.Out, d.config.In
	for j := range d.jobs() {
		if j.isActive() || j.hasExecutor() {
			s.Jobs++
		}
	}
	s.Executors, s.Silent = d.m.executors.Count(d.recordName())
	return s
}

// Devices describes those that jobs are planned for, that of this process first.
func (m *Machine) Devices() []wire.DeviceState {
	states := make([]wire.DeviceState, len(m.domains))
	for i, d := range m.domains {
		states[i] = d.describe()
	}
	return states
}

// drain has a device take no more jobs, and its jobs leave with a checkpoint. Or it lets the device take jobs again. It
// returns the jobs that leave, and those that cannot.
func (m *Machine) drain(q *wire.Request) (moved []*job, err error) {
	d := m.domainByName(q.Device)
	switch {
	case d == nil:
		return nil, fmt.Errorf("there is no device %s: tensile devices lists them", q.Device)
	case d.registered == nil:
		return nil, fmt.Errorf("device %s is that of the controller itself: park its jobs, or start the controller "+
			"with --device none and an executor beside it", q.Device)
	}
	stored := *d.registered
	stored.Drained = !q.Undo
	d.registered, m.changed = &stored, true
	m.emit(Output{Device: &stored})
	m.retryAdmission(d)
	if q.Undo {
		m.unblock() // replicas may fit on two devices that do not fit on one
		return nil, nil
	}
	for _, j := range m.jobsWithPeersOn(d) {
		if moved = append(moved, j); !m.vacateDevice(j) {
			j.record.Reason = fmt.Sprintf("stays on device %s, which is drained, to its end: it takes no checkpoints",
				d.recordName())
		}
	}
	return moved, nil
}

// jobsWithPeersOn are the jobs that executors of a device have, and the peers of these.
func (m *Machine) jobsWithPeersOn(d *domain) (list []*job) {
	for _, j := range m.jobs {
		there := func(o *job) bool {
			return o.domain == d && !o.record.State.Over() && o.batch == nil && o.record.Executor != ""
		}
		if slices.ContainsFunc(m.gangOrSelf(j), there) && !j.record.State.Over() {
			list = append(list, j)
		}
	}
	return list
}

// vacateDevice has a job leave its device with a checkpoint and wait for another device, and reports whether it can.
func (m *Machine) vacateDevice(j *job) bool {
	switch {
	case j.record.State == wire.JobStopping || j.record.State == wire.JobUnknown:
		return true // it gives its memory back anyway, or cannot be reached
	case j.record.Spec.Checkpoint == wire.Interval{} && !(j.claim().IsZero() && j.hostClaim() == 0):
		return false
	}
	if rests := j.record.State == wire.JobParked || j.record.State == wire.JobParking; !rests {
		j.record.Preempted = true // it is queued again when it has left
	}
	m.sendGangHome(j, wire.OnDisk)
	return true
}
