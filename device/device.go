package device

import (
	"context"
	"fmt"
	"time"

	"tensile/cost"
	"tensile/graph"
	"tensile/program"
)

// Device runs jobs. Its methods, and those of its jobs, are called by one goroutine.
type Device interface {
	Name() string

	// Identity tells all that decides which bits come out: two devices of one identity train a job to the same bits.
	Identity() string

	Facts() cost.Facts                                // the rates to plan with before anything was measured
	Align() graph.Bytes                               // offsets in an arena, and its size, are multiples of it
	Variants(g *graph.Graph, op graph.OpID) []Variant // none: it cannot execute the op
	Open(g *graph.Graph, o JobOptions) (Job, error)

	// Now is the device's clock.
	Now() time.Duration

	// Next waits until something has ended, and returns that in the order in which it ended. An event may wait for later
	// ones of its lane, at most until the section's part of the lane has ended or the lane has to wait. Next returns no
	// events when wake is signalled first, and an error when ctx is done or the device failed.
	Next(ctx context.Context, wake <-chan struct{}) ([]Event, error)
	Close() error
}

// LinkSharer is a device whose copies can be slowed down while they go on, because executors of other processes use the
// same link. Any goroutine may call it.
type LinkSharer interface {
	ShareLink(out, in cost.BytesPerSecond) // 0: no limit but the device's own
}

// Variant is one way of the device to execute an op. The first of an op's variants is the default.
type Variant struct {
	Name    string
	Scratch graph.Bytes
	Bits    string // variants of one op with equal Bits give equal results to the bit
}

// JobOptions is what a job brings along.
type JobOptions struct {
	Name string
	Seed uint64 // of the keyed generators of the job's ops

	// Input fills an input storage for an iteration, Output takes an output storage of one. They run on the job's host
	// lane; a device without data calls neither.
	Input  func(iteration int, s graph.StorageID, to Memory)
	Output func(iteration int, s graph.StorageID, from []float32)
}

// Job is a job's place on a device.
type Job interface {
	// Reserve makes the arena this large, a multiple of Align; its content is lost. Everything issued must have ended.
	Reserve(arena graph.Bytes) error

	// Issue hands over a section to be executed in an iteration, after what was issued before. With drain, it begins
	// only when all of that has ended, and its waits on a previous run of the section are reached.
	Issue(s *program.Section, iteration int, drain bool)

	// Host returns the host slot of a persistent storage, nil on a device without data. It may be used while nothing is issued.
	Host(s graph.StorageID) []float32

	// Touched is the end of the highest range of the arena that a command has used since the last Reserve.
	Touched() graph.Bytes

	Close() error
}

// Event tells that a command has ended. Times are of the device's clock.
type Event struct {
	Job       Job
	Section   *program.Section
	Iteration int
	Index     int           // in the section
	Ready     time.Duration // when its lane was free and its waits were reached
	Start     time.Duration // after a hold
	End       time.Duration
}

// Reach returns the end of the highest range of the arena that a command uses.
func Reach(g *graph.Graph, c *program.Command) graph.Bytes {
	var end graph.Bytes
	reach := func(a program.Address, size graph.Bytes) {
		if a.Region == program.Arena && a != program.Nowhere {
			end = max(end, a.Offset+size)
		}
	}
	switch c.Kind {
	case program.Kernel:
		op := &g.Ops[c.Op]
		for i, t := range op.Inputs {
			reach(c.Inputs[i], g.Tensors[t].Bytes())
		}
		for i, t := range op.Outputs {
			reach(c.Outputs[i], g.Tensors[t].Bytes())
		}
		if c.ScratchBytes > 0 {
			reach(c.Scratch, c.ScratchBytes)
		}
	case program.Out, program.In, program.Poison:
		reach(c.Device, c.Bytes)
	}
	return end
}

// Supports returns an error unless a device can execute every op of a graph.
func Supports(d Device, g *graph.Graph) error {
	for _, op := range g.Ops {
		if len(d.Variants(g, op.ID)) == 0 {
			return fmt.Errorf("device %s cannot execute op %s of %s, which is of kind %s or works on another type than float32: use --device sim:a6000",
				d.Name(), op.Name, g.Name, op.Kind)
		}
	}
	return nil
}

// Find returns an op's variant by name, "" being the first, and whether there is one.
func Find(variants []Variant, name string) (Variant, bool) {
	for _, v := range variants {
		if name == "" || v.Name == name {
			return v, true
		}
	}
	return Variant{}, false
}
