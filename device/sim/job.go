package sim

import (
	"fmt"
	"slices"
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// job implements device.Job.
type job struct {
	device  *Device
	g       *graph.Graph // The graph that the job was opened with.
	name    string
	program *program.Program // The loaded program; nil before the first Load.
	latency []time.Duration  // per op of its graph

	arena, touched graph.Bytes
	has            graph.Bytes      // Device memory that the job holds.
	paged          bool             // the arena is backed in part
	held           program.Pages    // Pages that are backed, if the arena is paged.
	entry          *program.Arrival // Entry of the loaded program.
	lanes          *program.Lanes
	heads          []head // per stream
	pages          []page // Pages of an arena in unified memory.
	closed         bool
}

// head is the first command of a lane's queue.
type head struct {
	unit         program.Unit
	state        state
	ready, start time.Duration
	launch       time.Duration // Launch time that is left.
	left         int64         // work to do, or pages' time on the link, in grains
	work         time.Duration // Work of the command.
}

type state uint8

const (
	blocked  state = iota // the queue is empty, or a wait is not reached
	held                  // pauses
	faulting              // its pages come to the device
	launching
	running
)

// command returns the first command of a lane that has one.
func (j *job) command(s program.Stream) *program.Command {
	r, index := j.lanes.Head(s)
	return &r.Section.Commands[index]
}

// Load implements device.Job.
func (j *job) Load(proven proof.Proven) error {
	if err := device.Runnable(j.device, proven); err != nil {
		return fmt.Errorf("sim: load a program of job %q: %w", j.name, err)
	}
	p := proven.Program()
	if _, err := program.Match(j.g, p.Graph); err != nil {
		return fmt.Errorf("sim: load a program of job %q: %w", j.name, err)
	}
	j.mustRest("Load")
	j.bind(p)
	return nil
}

// bind makes lanes for the streams of a program.
func (j *job) bind(p *program.Program) {
	if j.program == nil || j.program.Graph != p.Graph {
		j.latency = j.device.latencies(p.Graph, j.name)
	}
	j.program, j.lanes, j.heads = p, program.NewLanes(p.Streams), make([]head, len(p.Streams))
	j.entry = program.NewArrival(p, j.device.facts.In)
	for s, u := range p.Streams {
		j.heads[s].unit = u
	}
}

// takes returns how long a kernel takes alone in its variant.
func (j *job) takes(c *program.Command) time.Duration {
	latency := j.latency[c.Op]
	if c.Variant == "" || c.Variant == implicit.Name {
		return latency
	}
	v, _ := j.device.Variants(j.program.Graph, c.Op).Find(c.Variant)
	return v.Takes(latency)
}

// Reserve implements device.Job. The arenas of all jobs must fit into the device's memory, if its size is known.
func (j *job) Reserve(arena graph.Bytes) error {
	j.mustRest("Reserve")
	if arena < 0 || arena%align != 0 {
		panic(fmt.Sprintf("sim: Reserve(%d) of job %q: not a multiple of %d", arena, j.name, align))
	}
	has := arena
	if j.paged {
		has, j.held = 0, nil
	}
	if err := j.setHeld(has); err != nil {
		return err
	}
	j.arena, j.touched = arena, 0
	j.device.reserve(j, arena)
	return nil
}

// mustRest panics unless everything issued has ended.
func (j *job) mustRest(what string) {
	for s := range j.heads {
		if n := j.lanes.Queued(program.Stream(s)); n > 0 {
			panic(fmt.Sprintf("sim: %s of job %q with %d commands in lane %s that have not ended",
				what, j.name, n, j.heads[s].unit))
		}
	}
	if j.closed {
		panic(fmt.Sprintf("sim: %s of job %q, which is closed", what, j.name))
	}
}

// Issue implements device.Job. It panics unless the section is of the loaded program, and the arena large enough.
func (j *job) Issue(s *program.Section, from, to, iteration int, drain bool) {
	switch p := j.program; {
	case j.closed:
		panic(fmt.Sprintf("sim: Issue to job %q, which is closed", j.name))
	case p == nil || !p.Has(s):
		panic(fmt.Sprintf("sim: Issue to job %q of a section that is not of the program that it has loaded", j.name))
	case p.Arena > j.arena:
		panic(fmt.Sprintf("sim: Issue to job %q: its program uses %d bytes of an arena of %d", j.name, p.Arena,
			j.arena))
	}
	j.mustHold(s.Commands[from:to])
	if from == 0 {
		j.device.entries.Issue(j.entry, s)
	}
	j.lanes.Issue(s, from, to, iteration, drain)
}

// Snapshot returns one without memory: there is no data.
func (j *job) Snapshot() (device.Snapshot, error) { return snapshot{}, nil }

// snapshot implements device.Snapshot.
type snapshot struct{}

func (snapshot) Content(graph.StorageID) []float32 { return nil }
func (snapshot) Release()                          {}

// Host returns nil: there is no data.
func (j *job) Host(graph.StorageID) []float32 { return nil }

// Touched implements device.Job.
func (j *job) Touched() graph.Bytes { return j.touched }

// Close takes the job from the device, its memory included. What has not ended is given up, and what has, and was not
// told yet, is never told.
func (j *job) Close() error {
	j.closed = true
	j.device.events = slices.DeleteFunc(j.device.events, func(e device.Event) bool { return e.Job == device.Job(j) })
	j.device.reserve(j, 0)
	j.device.entries.Close(j.entry)
	j.device.jobs = slices.DeleteFunc(j.device.jobs, func(other *job) bool { return other == j })
	return nil
}
