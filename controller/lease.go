package controller

import (
	"math"
	"time"

	"tensile/controller/memory"
	"tensile/graph"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// Where jobs share memory, a lease at the device decides which job may have how much of it at which moment. So a
// controller that is down stops no job. The controller says how much memory there is. After the budget was made
// smaller, that amount falls only as fast as the plans in force: each iteration that has begun was promised what its
// plan needs.

// sharesMemory reports whether jobs share memory.
func (c *Config) sharesMemory() bool { return c.MemorySharing != wire.NoSharing }

// SharedDevice describes a device for jobs that share its memory as the configuration says, and records its page in the
// configuration.
func (c *Config) SharedDevice(d planner.Device) planner.Device {
	d.Gates, d.Turns = c.MemorySharing.Gated(), c.MemorySharing == wire.Slices
	if c.Page = d.Page; !c.sharesMemory() {
		c.Page, c.Lease = 0, ""
	}
	return d
}

// updateLease computes what leases have to give.
func (d *domain) updateLease() {
	if !d.config.sharesMemory() {
		return
	}
	l := wire.Lease{Sharing: d.config.MemorySharing, Number: d.lease.Number, Name: d.config.Lease,
		Page: d.config.Page}
	if d.config.Budget > 0 {
		before := d.lease.Capacity
		if before == 0 {
			before = math.MaxInt64
		}
		left := max(1, d.config.Budget-d.contexts().Sum()-d.startingContexts().Sum())
		l.Capacity = max(left, min(before, d.grantedBytes()))
	}
	if l != d.lease || l.Number == 0 {
		l.Number = max(l.Number+1, int64(d.m.now/time.Microsecond))
		d.lease = l
	}
}

// grantedBytes is what leases need for all that jobs were granted, and for what executors out of reach may have.
func (d *domain) grantedBytes() graph.Bytes {
	var sum memory.Sum
	for j := range d.jobs() {
		sum = sum.Add(j.grantedClaim())
	}
	held, _ := d.reservations()
	return sum.Add(memory.Exclusive(held)).Bytes()
}
