package device

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// Device runs jobs. Its methods, and those of its jobs, are called by one goroutine.
type Device interface {
	// Name is what people and predictor files call the device. It begins with "sim:" if the device has virtual time and
	// no data: nothing is loaded, saved or measured there.
	Name() string

	// Identity tells all that decides which bits come out: two devices of one identity train a job to the same bits.
	Identity() string

	Facts() cost.Facts                               // the rates to plan with before anything was measured
	Align() graph.Bytes                              // offsets in an arena, and its size, are multiples of it
	Variants(g *graph.Graph, op graph.OpID) Variants // none: it cannot execute the op

	// Open makes a place for a job. g says what the job keeps on the host; IDs of storages are those of g wherever the
	// job is concerned. Its programs may be of other graphs that program.Match accepts.
	Open(g *graph.Graph, o JobOptions) (Job, error)

	// Now is the device's clock.
	Now() time.Duration

	// Next waits until something has ended, and returns that in the order in which it ended. An event may wait for
	// later ones of its lane, at most until the last command of that lane has ended which was issued with it. Next
	// returns no events when wake is signalled first, and an error when ctx is done or the device failed.
	Next(ctx context.Context, wake <-chan struct{}) ([]Event, error)
	Close() error
}

// LinkSharer is a device whose copies can be slowed down while they go on, because executors of other processes use the
// same link. Any goroutine may call it.
type LinkSharer interface {
	ShareLink(out, in cost.BytesPerSecond) // 0: no limit but the device's own
}

// Variant is one way of the device to execute an op.
type Variant struct {
	Name    string
	Scratch graph.Bytes
	Bits    string // variants of one op with equal Bits give equal results to the bit
	Share   int    // Time relative to the first variant, in thousandths; 0: the same.
}

// Takes returns how long the variant takes, given the time of the first variant of the op.
func (v Variant) Takes(first time.Duration) time.Duration {
	if v.Share == 0 {
		return first
	}
	share := time.Duration(v.Share)
	return first/1000*share + first%1000*share/1000
}

// Variants are the ways of a device to execute an op, the default first.
type Variants []Variant

// Find returns a variant by its name, "" being the first, and whether there is one.
func (v Variants) Find(name string) (Variant, bool) {
	for _, variant := range v {
		if name == "" || variant.Name == name {
			return variant, true
		}
	}
	return Variant{}, false
}

// JobOptions is what a job brings along.
type JobOptions struct {
	Name string
	Seed uint64 // Seed of the keyed random generators of the job's ops.

	// Input fills an input storage for an iteration, Output takes an output storage of one. They run on the job's host
	// lane; a device without data calls neither.
	Input  func(iteration int, s graph.StorageID, to Memory)
	Output func(iteration int, s graph.StorageID, from []float32)

	// Mean replaces a gradient by its mean over the replicas of the job, for the all-reduce of a name. It runs on a
	// lane of the network, waits for the other replicas, and ends early when ctx is done: the job's Close sees to that.
	// A device without data never calls it. nil: the job has no replicas.
	Mean func(ctx context.Context, iteration int, name string, gradient []float32)
}

// Job is a job's place on a device.
type Job interface {
	// Load binds a program to the job: its streams to lanes, its regions to the job's arena and host slots. The job
	// must be in Home, with everything issued ended. It stays bound to the program before if there is an error: that of
	// program.Match or of Runnable, or that the host has no memory for its slots.
	Load(p proof.Proven) error

	// Reserve makes the arena this large, a multiple of Align; its content is lost. Everything issued must have ended.
	// With 0 the job is in Home, and gives back too what the host has of the loaded program beside the slots of what
	// lives on the host: a program is loaded before anything is issued again.
	// A device whose memory others use too returns an *OutOfMemoryError when they have left it too little.
	Reserve(arena graph.Bytes) error

	// Issue hands over commands [from, to) of a section of the loaded program, for which the arena must be large
	// enough, to be executed in an iteration, after what was issued before. The first part of a section is from 0; each
	// further one goes on where that before it ended, until the section is whole. With drain, the section begins only
	// when all before it has ended, and its waits on a previous run of the section are reached; in further parts
	// iteration and drain are those of the first.
	Issue(s *program.Section, from, to, iteration int, drain bool)

	// Snapshot reserves host memory for the state of the job, and binds the snapshot region of what is issued from now
	// on to it. Nothing that was issued may use that region any more. It fails if the host has no memory for it.
	Snapshot() (Snapshot, error)

	// Host returns the host slot of a storage that lives on the host, nil of others and on a device without data. It
	// may be used while nothing is issued.
	Host(s graph.StorageID) []float32

	// Touched is the end of the highest range of the arena that a command has used since the last Reserve.
	Touched() graph.Bytes

	Close() error
}

// OutOfMemoryError tells that a device has no room for an arena now.
type OutOfMemoryError struct {
	Job, Device string
	Arena       graph.Bytes
	Free, Total graph.Bytes // Memory of the device; other programs may hold what is not free.
	Err         error       // Error of the device's driver; nil if there is none.
}

func (e *OutOfMemoryError) Error() string {
	return fmt.Sprintf("job %s: no room for an arena of %s: %s of the %s of %s are free: end other programs there or "+
		"give a smaller budget: %v", e.Job, e.Arena, e.Free, e.Total, e.Device, e.Err)
}

func (e *OutOfMemoryError) Unwrap() error { return e.Err }

// Snapshot is memory on the host for the state of a job. It belongs to whoever asked for it until Release, also when
// the job or the device is closed before. Any goroutine may call its methods.
type Snapshot interface {
	// Content returns the place of a persistent storage, nil of others and on a device without data. What the snapshot
	// section of a program copies there is there when all of the section has ended.
	Content(s graph.StorageID) []float32

	Release() // a second call does nothing
}

// Event tells that a command has ended. Times are of the device's clock.
type Event struct {
	Job       Job
	Section   *program.Section
	Iteration int
	Index     int           // Index of the command in its section.
	Ready     time.Duration // When its lane was free and all its waits were satisfied.
	Start     time.Duration // after a hold
	End       time.Duration
}

// Runnable returns an error unless a device can execute a program: an arena that it can have, and for every step a
// variant with no more scratch than the plan grants. The zero Proven is refused.
func Runnable(d Device, proven proof.Proven) error {
	p := proven.Program()
	if p == nil {
		return errors.New("its program was not proven")
	}
	if align := d.Align(); p.Arena%align != 0 {
		return fmt.Errorf("its plan needs an arena of %d bytes, the device has multiples of %d", p.Arena, align)
	} else if p.Align%align != 0 {
		return fmt.Errorf("its plan aligns to %d bytes, the device wants %d", p.Align, align)
	}
	for slot, step := range p.Plan.Steps {
		variant, ok := d.Variants(p.Graph, step.Op).Find(step.Variant)
		if name := p.Graph.Ops[step.Op].Name; !ok {
			return fmt.Errorf("step %d: the device has no variant %q of %s", slot, step.Variant, name)
		} else if step.Scratch < variant.Scratch {
			return fmt.Errorf("step %d: %s needs %s of scratch, the plan grants %s", slot, name, variant.Scratch,
				step.Scratch)
		}
	}
	return nil
}

// Supports returns an error unless a device can execute every op of a graph.
func Supports(d Device, g *graph.Graph) error {
	for _, op := range g.Ops {
		if len(d.Variants(g, op.ID)) == 0 {
			return fmt.Errorf(
				"device %s cannot execute op %s of %s, which is of kind %s, works on another type than float32 or is "+
					"too large for its kernels: use --device sim:a6000", d.Name(), op.Name, g.Name, op.Kind)
		}
	}
	return nil
}
