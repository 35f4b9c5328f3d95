package controller

import (
	"math"
	"time"

	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// Where jobs share memory a lease at the device says who may hold how much of it when, so that a controller that is
// away stops nobody. The controller says how much there is. That falls to a smaller budget only as fast as the plans in
// force do: each iteration that has begun was promised what its plan needs.

// shares reports whether jobs share memory.
func (c *Config) shares() bool { return c.MemorySharing != wire.NoSharing }

// Shared describes a device for jobs that share its memory as the configuration says, and takes down its page.
func (c *Config) Shared(d planner.Device) planner.Device {
	d.Gates, d.Turns = c.MemorySharing.Gated(), c.MemorySharing == wire.Slices
	if c.Page = d.Page; !c.shares() {
		c.Page, c.Lease = 0, ""
	}
	return d
}

// claimOf works out what a job counts with that trains with a proven program, from that alone; nil: with its arena. A
// replica counts with all of it, in whole pages.
func (c *Config) claimOf(p *program.Program) *Claim {
	if !c.shares() {
		return nil
	}
	claim := &Claim{Arena: (p.Arena + c.Page - 1) / c.Page * c.Page}
	switch {
	case p.Graph.Replicas() > 1:
		claim.Base = claim.Arena
	case c.MemorySharing.Gated():
		claim.Base = c.Page * graph.Bytes(compile.Divide(p, c.Page, max(p.Arena, c.Page)).Base.Count())
	}
	return claim
}

// lend says what leases have to give.
func (d *domain) lend() {
	if !d.config.shares() {
		return
	}
	l := wire.Lease{Sharing: d.config.MemorySharing, Number: d.lease.Number, Name: d.config.Lease,
		Page: d.config.Page}
	if d.config.Budget > 0 {
		before := d.lease.Capacity
		if before == 0 {
			before = math.MaxInt64
		}
		left := max(1, d.config.Budget-d.contexts().Sum()-d.toStart().Sum())
		l.Capacity = max(left, min(before, d.promised()))
	}
	if l != d.lease || l.Number == 0 {
		l.Number = max(l.Number+1, int64(d.m.now/time.Microsecond))
		d.lease = l
	}
}

// promised is what leases need for what all jobs were granted, and for what executors out of reach may have.
func (d *domain) promised() graph.Bytes {
	var sum Together
	for j := range d.jobs() {
		sum = sum.With(j.granted())
	}
	held, _ := d.held()
	return sum.With(whole(held)).Bytes()
}
