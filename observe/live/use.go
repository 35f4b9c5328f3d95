package live

import (
	"cmp"

	"tensile/controller/memory"
	"tensile/graph"
	"tensile/wire"
)

// Names of what uses memory beside jobs, whose names have no slash.
const (
	sharedPart      = "/shared"      // what jobs that share memory take in turns
	processesPart   = "/processes"   // what processes take by having the device open
	unreachablePart = "/unreachable" // what executors may have that cannot be reached
)

// Use is what all jobs of a controller have on all devices, and how many there are.
type Use struct {
	Used     graph.Bytes `json:"used_bytes"` // bytes used of the budgets
	HostUsed graph.Bytes `json:"host_used_bytes"`
	Running  int         `json:"running"`
	Waiting  int         `json:"waiting"`
	Parked   int         `json:"parked"`
	Need     graph.Bytes `json:"need_bytes"` // what the first waiting job needs; 0: unknown
}

// useOf adds up an answer to the verb jobs.
func useOf(a *wire.Answer) (u Use) {
	u.Used, u.HostUsed = memory.Used(a)
	for i := range a.Jobs {
		switch r := &a.Jobs[i]; {
		case r.State == wire.JobParked:
			u.Parked++
		case r.State == wire.JobQueued:
			u.Waiting++
			u.Need = cmp.Or(u.Need, r.Wait.DeviceBytes())
		case !r.State.Over():
			u.Running++
		}
	}
	return u
}

// partsOf are what has how much of a device, by job and by the names above: they add up to what is used of it. Those of
// 0 bytes are left out.
func partsOf(a *wire.Answer, devices []wire.DeviceState, device int) map[string]graph.Bytes {
	parts := make(map[string]graph.Bytes)
	put := func(name string, bytes graph.Bytes) {
		if bytes > 0 {
			parts[name] = bytes
		}
	}
	claims, unreachable := memory.DeviceClaims(a, devices, device)
	turns := claims.Bytes()
	for i := range a.Jobs {
		if r := &a.Jobs[i]; memory.DeviceIndex(devices, r) == device {
			base := memory.ClaimOf(r).Base
			turns -= base
			put(r.Spec.Name, base)
		}
	}
	put(sharedPart, turns)
	put(processesPart, devices[device].Used-claims.Bytes()-unreachable)
	put(unreachablePart, unreachable)
	return parts
}
