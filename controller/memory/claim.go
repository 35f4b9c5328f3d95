// Package memory counts what jobs may have of a device and of its host: claims and their sums, and what answers of a
// controller say of them.
package memory

import (
	"slices"

	"tensile/graph"
	"tensile/wire"
)

// Claim is what a job may have of the device: Base from when it leaves Home until it is back, and up to Arena within an
// iteration. Where gates share memory, jobs take turns in what lies between the two; elsewhere Base is Arena.
type Claim struct {
	Base  graph.Bytes `json:"base_bytes"`
	Arena graph.Bytes `json:"arena_bytes"`
}

// Exclusive is the claim of a job that has an arena for itself.
func Exclusive(arena graph.Bytes) Claim { return Claim{arena, arena} }

// ClaimOf is what a job claims by its record.
func ClaimOf(r *wire.Record) Claim {
	if r.Sharing == wire.NoSharing {
		return Exclusive(r.Claim)
	}
	return Claim{r.Base, r.Claim}
}

// WholePages is so many bytes in whole pages, as leases count. A page of 0 bytes: jobs share no memory, and the bytes
// count as they are.
func WholePages(bytes, page graph.Bytes) graph.Bytes {
	if page == 0 {
		return bytes
	}
	return (bytes + page - 1) / page * page
}

// Union is the claim of a job that has the one or the other. Beside other jobs it takes what the worse of the two
// would.
func (c Claim) Union(d Claim) Claim { return Claim{max(c.Base, d.Base), max(c.Arena, d.Arena)} }

// FitsIn reports whether a job that claims d may have c at once.
func (c Claim) FitsIn(d Claim) bool { return c.Base <= d.Base && c.Arena <= d.Arena }

// IsZero reports whether the job claims nothing.
func (c Claim) IsZero() bool { return c == Claim{} }

// headroom is what the job's largest group needs above the base.
func (c Claim) headroom() graph.Bytes { return c.Arena - c.Base }

// Sum adds claims. Jobs that share a device take the sum of their bases, and the largest headroom of one of them.
type Sum struct {
	base            graph.Bytes
	largest, second graph.Bytes // the two largest headrooms
}

// Add returns the sum with one more claim.
func (t Sum) Add(c Claim) Sum {
	t.base += c.Base
	switch rest := c.headroom(); {
	case rest > t.largest:
		t.largest, t.second = rest, t.largest
	case rest > t.second:
		t.second = rest
	}
	return t
}

// Remove returns the sum without one of its claims. No second claim can be removed from the result.
func (t Sum) Remove(c Claim) Sum {
	t.base -= c.Base
	if c.headroom() == t.largest {
		t.largest = t.second
	}
	return t
}

// Used is how many bytes jobs, contexts and executors out of reach may have of all devices and of their hosts, by
// the answer to a request for all jobs.
func Used(a *wire.Answer) (device, host graph.Bytes) {
	if len(a.Devices) > 1 { // each has claims of its own
		for i := range a.Devices {
			device, host = device+a.Devices[i].Used, host+a.Devices[i].HostUsed
		}
		return device, host
	}
	var claims Sum
	for i := range a.Jobs {
		r := &a.Jobs[i]
		claims, host = claims.Add(ClaimOf(r)), host+r.Host
		for _, h := range r.Held {
			claims, host = claims.Add(Exclusive(h.Bytes)), host+h.Host
		}
	}
	return claims.Bytes() + a.Contexts.Sum(), host
}

// Devices are those of an answer to a request for all jobs, the controller's own first. An answer that lists none is of
// the device of the controller's process.
func Devices(a *wire.Answer) []wire.DeviceState {
	if len(a.Devices) > 0 || a.Device == "" {
		return a.Devices
	}
	d := wire.DeviceState{Own: true, Device: wire.Device{Name: a.Device, Identity: a.Device, Budget: a.Budget,
		HostMemory: a.HostMemory, Context: a.Contexts.Each}}
	d.Facts.Out.Rate, d.Facts.In.Rate = a.Link.Out, a.Link.In
	d.Used, d.HostUsed = Used(a)
	return []wire.DeviceState{d}
}

// DeviceIndex is the index of the device that a job is planned for. -1: no device is chosen yet.
func DeviceIndex(devices []wire.DeviceState, r *wire.Record) int {
	if r.On != "" {
		return slices.IndexFunc(devices, func(d wire.DeviceState) bool { return !d.Own && d.Name == r.On })
	}
	if len(devices) == 0 || !devices[0].Own || len(devices) > 1 && r.Executor == "" {
		return -1
	}
	return 0
}

// DeviceClaims is what jobs claim together of one of the devices, and what executors out of reach may have of it.
// Contexts are not among these.
func DeviceClaims(a *wire.Answer, devices []wire.DeviceState, device int) (claims Sum, held graph.Bytes) {
	d := &devices[device]
	for i := range a.Jobs {
		r := &a.Jobs[i]
		if DeviceIndex(devices, r) == device {
			claims = claims.Add(ClaimOf(r))
		}
		for _, h := range r.Held {
			if d.Own && h.On == "" || !d.Own && h.On == d.Name {
				held += h.Bytes
			}
		}
	}
	return claims, held
}

// Bytes is what the claims take together.
func (t Sum) Bytes() graph.Bytes { return t.base + t.largest }
