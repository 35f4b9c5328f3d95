package controller

import (
	"slices"

	"tensile/graph"
	"tensile/wire"
)

// Claim is what a job may have of the device: Base from when it leaves Home until it is back, and up to Arena within an
// iteration. Jobs take what lies between the two in turns where gates share memory; where nothing does, Base is Arena.
type Claim struct {
	Base  graph.Bytes `json:"base_bytes"`
	Arena graph.Bytes `json:"arena_bytes"`
}

// whole is the claim of what has an arena for itself.
func whole(arena graph.Bytes) Claim { return Claim{arena, arena} }

// ClaimOf is what a job claims by its record.
func ClaimOf(r *wire.Record) Claim {
	if r.Sharing == wire.NoSharing {
		return whole(r.Claim)
	}
	return Claim{r.Base, r.Claim}
}

// or is the claim of a job that has the one or the other: together with others it takes what the worse of the two
// would, whatever these claim.
func (c Claim) or(d Claim) Claim { return Claim{max(c.Base, d.Base), max(c.Arena, d.Arena)} }

// within reports whether a job that claims d may have c at once.
func (c Claim) within(d Claim) bool { return c.Base <= d.Base && c.Arena <= d.Arena }

func (c Claim) none() bool { return c == Claim{} }

func (c Claim) rest() graph.Bytes { return c.Arena - c.Base }

// Together adds claims: jobs that share a device take the sum of their bases, and the largest of the rests.
type Together struct {
	base          graph.Bytes
	largest, next graph.Bytes // rests
}

// With is the sum with one more claim.
func (t Together) With(c Claim) Together {
	t.base += c.Base
	switch rest := c.rest(); {
	case rest > t.largest:
		t.largest, t.next = rest, t.largest
	case rest > t.next:
		t.next = rest
	}
	return t
}

// Without is the sum without one of its claims. Another cannot be taken out of that.
func (t Together) Without(c Claim) Together {
	t.base -= c.Base
	if c.rest() == t.largest {
		t.largest = t.next
	}
	return t
}

// Used is what jobs, contexts and executors out of reach may have of all devices and of their hosts, by the answer to a
// request for all jobs.
func Used(a *wire.Answer) (device, host graph.Bytes) {
	if len(a.Devices) > 1 { // each has claims of its own
		for i := range a.Devices {
			device, host = device+a.Devices[i].Used, host+a.Devices[i].HostUsed
		}
		return device, host
	}
	var claims Together
	for i := range a.Jobs {
		r := &a.Jobs[i]
		claims, host = claims.With(ClaimOf(r)), host+r.Host
		for _, h := range r.Held {
			claims, host = claims.With(whole(h.Bytes)), host+h.Host
		}
	}
	return claims.Bytes() + a.Contexts.Sum(), host
}

// Devices are those of an answer to a request for all jobs: the controller's own first. Of a controller of the release
// before, which names none, it is the one of its process.
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

// On is which of the devices a job is planned for on; -1: none is known yet.
func On(devices []wire.DeviceState, r *wire.Record) int {
	if r.On != "" {
		return slices.IndexFunc(devices, func(d wire.DeviceState) bool { return !d.Own && d.Name == r.On })
	}
	if len(devices) == 0 || !devices[0].Own || len(devices) > 1 && r.Executor == "" {
		return -1
	}
	return 0
}

// ClaimsOn is what jobs claim of one of the devices together, and what executors out of reach may have of it. What is
// used beside these are processes, which have it open.
func ClaimsOn(a *wire.Answer, devices []wire.DeviceState, device int) (claims Together, held graph.Bytes) {
	d := &devices[device]
	for i := range a.Jobs {
		r := &a.Jobs[i]
		if On(devices, r) == device {
			claims = claims.With(ClaimOf(r))
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
func (t Together) Bytes() graph.Bytes { return t.base + t.largest }
