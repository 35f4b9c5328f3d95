package live

import (
	"cmp"

	"tensile/controller"
	"tensile/graph"
	"tensile/wire"
)

// Names of what uses memory beside jobs, whose names have no slash.
const (
	SharedPart      = "/shared"      // what jobs that share memory take in turns
	ProcessesPart   = "/processes"   // what processes take by having the device open
	UnreachablePart = "/unreachable" // what executors may have that cannot be reached
)

// Use is what all jobs of a controller have, and how many there are.
type Use struct {
	Used        graph.Bytes            `json:"used_bytes"` // of the budget: the sum of Parts
	Unreachable graph.Bytes            `json:"unreachable_bytes"`
	HostUsed    graph.Bytes            `json:"host_used_bytes"`
	Parts       map[string]graph.Bytes `json:"parts"` // by job, and by the names above; those of 0 bytes are left out
	Running     int                    `json:"running"`
	Waiting     int                    `json:"waiting"`
	Parked      int                    `json:"parked"`
	Need        graph.Bytes            `json:"need_bytes"` // of the first that waits; 0: that is not known
}

// UseOf adds up an answer to the verb jobs.
func UseOf(a *wire.Answer) Use {
	u := Use{Parts: make(map[string]graph.Bytes)}
	u.Used, u.HostUsed = controller.Used(a)
	turns := u.Used - a.Contexts.Sum()
	for i := range a.Jobs {
		r := &a.Jobs[i]
		base := controller.ClaimOf(r).Base
		turns -= base
		u.part(r.Spec.Name, base)
		for _, h := range r.Held {
			u.Unreachable += h.Bytes
		}
		switch {
		case r.State == wire.Parked:
			u.Parked++
		case r.State == wire.Queued:
			u.Waiting++
			u.Need = cmp.Or(u.Need, r.Need)
		case !r.State.Over():
			u.Running++
		}
	}
	u.part(SharedPart, turns-u.Unreachable)
	u.part(ProcessesPart, a.Contexts.Sum())
	u.part(UnreachablePart, u.Unreachable)
	return u
}

func (u *Use) part(name string, bytes graph.Bytes) {
	if bytes > 0 {
		u.Parts[name] = bytes
	}
}
