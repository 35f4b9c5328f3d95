package executor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tensile/device"
	"tensile/device/lease"
	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// Lease decides when jobs may use how much of a device's memory: a lease.Machine of this process, or one in another
// process, whose answers come by Host.Answer. One with the method Wake of lease.Machine is told the time when it wants
// to know it.
type Lease interface {
	Step(in lease.Input) []lease.Output
}

type sleeper interface {
	Wake() (at time.Duration, ok bool)
}

// Sharing is how the jobs of a host use memory that others use as well.
type Sharing struct {
	Lease Lease

	// Turns has a job hold all of its arena from when it leaves Home until the lease wants it back: jobs take turns of
	// whole iterations. Without, a job holds what its groups need, on a device that is a device.Pager.
	Turns bool

	// Every is by how much memory grows or shrinks within a group; 0: as compile.Divide recommends. Smaller groups
	// leave more of the memory to others, and ask the lease more often.
	Every graph.Bytes

	// Page is the unit in which the lease counts, for a host that has no device of its own to ask.
	Page graph.Bytes

	// Method is a word of lease.Options.Methods, which Capacity tells the Lease. Joins say then what the groups of a
	// job are expected to need. "": the lease grants what its rule allows.
	Method string
}

// Unpaged is the unit in which a lease counts the memory of a device that has no pages.
const Unpaged = 2 * graph.MiB

// Share puts the jobs of a host under a lease, or, without a Lease, no longer. It is for those that are submitted after
// it: the caller sees to it that there are no others. Any goroutine may call it.
func (h *Host) Share(s Sharing) {
	h.command("", func() error {
		h.sharing = s
		return nil
	})
}

// Weigh says what a job is worth under a lease, when it leaves Home next. Any goroutine may call it.
func (h *Host) Weigh(name string, weight int) {
	h.command(name, func() error {
		if j := h.find(name); j != nil { // it may have ended
			j.machine.weight = weight
		}
		return nil
	})
}

// Answer hands over what a lease in another process says. Any goroutine may call it.
func (h *Host) Answer(answers ...lease.Output) {
	h.command("", func() error {
		h.answers = append(h.answers, answers...)
		return h.carryOutGrants()
	})
}

// Capacity tells the host's lease how much memory the jobs may hold together. Of two, also of different hosts, that of
// the larger number counts. Any goroutine may call it.
func (h *Host) Capacity(size graph.Bytes, number int64) {
	h.command("", func() error {
		pages := min(int(size/h.leasePage()), lease.MaxPages)
		h.stepLease(lease.Input{Capacity: &lease.Capacity{Pages: pages, Number: number, Method: h.sharing.Method}})
		return h.carryOutGrants()
	})
}

// leasePage is the unit in which the host's lease counts.
func (h *Host) leasePage() graph.Bytes {
	if p, ok := h.device.(device.Pager); ok {
		return p.Page()
	}
	return Unpaged
}

// pages reports whether jobs hold parts of their arenas.
func (h *Host) pages() bool {
	_, ok := h.device.(device.Pager)
	return ok && h.sharing.Lease != nil && !h.sharing.Turns
}

// divide returns the groups of a program under the host's lease, nil without one. A replica has all of its arena: it
// does not wait for memory while others wait for it.
func (h *Host) divide(p proof.Proven) (*program.Groups, error) {
	switch {
	case h.sharing.Lease == nil:
		return nil, nil
	case !h.pages(), p.Program().Graph.Replicas() > 1:
		return wholeGroups(p.Program(), h.leasePage()), nil
	}
	d, err := compile.ProveGroups(p, h.leasePage(), h.sharing.Every)
	return d.Groups(), err
}

// stepLease steps the lease. What it answers is carried out by settle, when the machine that spoke has said all.
func (h *Host) stepLease(in lease.Input) {
	in.Now = h.device.Now()
	h.answers = append(h.answers, h.sharing.Lease.Step(in)...)
}

// wakeLease tells the lease the time if it wants to know it now.
func (h *Host) wakeLease() error {
	if l, ok := h.sharing.Lease.(sleeper); ok {
		if at, ok := l.Wake(); ok && at <= h.device.Now() {
			h.stepLease(lease.Input{})
		}
	}
	return h.carryOutGrants()
}

// waitEvents waits for the device, or until the lease wants to know the time. Virtual time does not pass while nothing
// ends.
func (h *Host) waitEvents(ctx context.Context) ([]device.Event, error) {
	l, ok := h.sharing.Lease.(sleeper)
	if !ok || strings.HasPrefix(h.device.Name(), "sim:") {
		return h.device.Next(ctx, h.wake)
	}
	at, ok := l.Wake()
	if !ok {
		return h.device.Next(ctx, h.wake)
	}
	until, cancel := context.WithTimeout(ctx, at-h.device.Now())
	defer cancel()
	events, err := h.device.Next(until, h.wake)
	if until.Err() != nil && ctx.Err() == nil {
		err = nil
	}
	return events, err
}

// carryOutGrants carries out what the lease has answered.
func (h *Host) carryOutGrants() error {
	for len(h.answers) > 0 {
		a := h.answers[0]
		h.answers = h.answers[1:]
		j := h.find(string(a.Job))
		switch {
		case a.Kind == lease.Refuse && a.Job == "":
			panic("executor: the lease refuses what the host said: " + a.Why)
		case j == nil: // it was removed meanwhile
		case a.Kind == lease.Refuse:
			if !j.machine.joined {
				j.machine.joinGates = nil // what the lease has under this name is not this job
			}
			h.fail(j, fmt.Errorf("job %s: the lease of the device's memory refuses it: %s", j.name, a.Why))
		case a.Kind == lease.Grant:
			if err := h.carryOut(j, Input{Granted: a.Ask}); err != nil {
				return err
			}
		case a.Kind == lease.Drain:
			if err := h.carryOut(j, Input{Drain: true}); err != nil {
				return err
			}
		}
	}
	return nil
}
