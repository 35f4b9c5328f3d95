package agent

import (
	"context"
	"time"

	"tensile/device"
	"tensile/device/lease"
	"tensile/executor"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/proof"
)

// Host trains jobs: an [executor.Host] with ops of ours, or a sidecar.Host with those of a script. Any goroutine may
// call what does not say otherwise; what becomes of it is told to an observer.
type Host interface {
	Submit(s executor.Spec, p proof.Proven)
	Change(job string, p proof.Proven)
	Stop(job string)
	Park(job string, number int64, at int)
	Resume(job string)
	Remove(job string)
	Checkpoint(job string, at int)
	Trace(job string, iterations int)

	// what its jobs have of memory that others use as well
	Share(s executor.Sharing)
	Capacity(size graph.Bytes, number int64)
	Answer(answers ...lease.Output)
	Weigh(job string, weight int)

	// Serve trains, on a goroutine of its own, until ctx is done or no job can go on. Close gives back what the jobs
	// have, when Serve has returned.
	Serve(ctx context.Context) error
	Close() error
}

// unplannable is a [Host] of scripts, which train on where there is no plan for what they do, and are told why.
type unplannable interface {
	Unplanned(job, why string)
}

// HostMaker returns what makes the host of a device, for [Options].
func HostMaker(d device.Device) func(observer func(executor.Event)) Host {
	return func(observer func(executor.Event)) Host { return executor.NewHost(d, observer) }
}

// Device is what an agent has to know of what its host trains on.
type Device interface {
	Name() string     // a name that begins with "sim:" has virtual time and no data
	Identity() string // a controller plans for devices of one identity
	Align() graph.Bytes
	Facts() cost.Facts
	Now() time.Duration // by its clock
}
