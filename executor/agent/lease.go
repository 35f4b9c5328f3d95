package agent

import (
	"cmp"
	"fmt"

	"tensile/device/lease"
	"tensile/executor"
	"tensile/graph"
	"tensile/wire"
)

// HostLease is a lease of a device's host, which other processes ask as well.
type HostLease interface {
	executor.Lease
	// Waits is what jobs wait for that have waited long, in words.
	Waits() map[lease.Job]string
	Close() error
}

// ShareMemory tells a host to share memory as orders say, by a lease. Jobs that the host has stay as they are: the
// controller changes the way of sharing only while there are none.
func ShareMemory(h Host, l *wire.Lease, by executor.Lease) {
	if l.Sharing == wire.NoSharing {
		h.Share(executor.Sharing{})
		return
	}
	capacity := l.Capacity
	if capacity == 0 {
		capacity = graph.MaxTotal
	}
	h.Share(executor.Sharing{Lease: by, Turns: l.Sharing == wire.Slices, Method: l.Sharing.Method(),
		Page: cmp.Or(l.Page, executor.Unpaged)})
	h.Capacity(capacity, l.Number)
}

// own is a lease of this process.
type own struct{ *lease.Machine }

func (own) Close() error                { return nil }
func (own) Waits() map[lease.Job]string { return nil }

// lend has the jobs share memory as orders say. Without the lease of the device's host the process must end: its jobs
// would use what others have.
func (r *runner) lend(l *wire.Lease) {
	var err error
	switch {
	case r.lease != nil || l.Sharing == wire.NoSharing:
	case r.Lease == nil:
		r.lease = own{lease.NewMachine(lease.Options{})}
	default:
		r.lease, err = r.Lease(l, r.host.Answer)
	}
	if err != nil {
		r.cancel(fmt.Errorf("the lease of this device's memory: %w", err))
		return
	}
	ShareMemory(r.host, l, r.lease)
}
