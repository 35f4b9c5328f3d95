package memory

import (
	"slices"

	"tensile/graph"
	"tensile/wire"
)

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
