package sim

import (
	"fmt"
	"slices"
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/program"
)

// job implements device.Job.
type job struct {
	device  *Device
	g       *graph.Graph
	name    string
	latency []time.Duration // per op

	arena, touched graph.Bytes
	lanes          [program.Lanes]lane
	gate           [program.Lanes]int // counts at the last drain
	closed         bool
}

// lane is a queue of commands of which the first is in some state.
type lane struct {
	queue   []queued // issued and not ended
	ended   int      // how many have ended since the job was opened
	hurried int      // commands up to this count do not pause

	state        state
	ready, start time.Duration
	left         int64 // work to do, in grains
}

type state uint8

const (
	blocked state = iota // the queue is empty, or a wait is not reached
	held                 // pauses
	running
)

// run is a section that was issued. Its points are counted from origin, and nothing of it begins before gate.
type run struct {
	section      *program.Section
	iteration    int
	origin, gate [program.Lanes]int
}

type queued struct {
	run   *run
	index int
}

func (q queued) command() *program.Command { return &q.run.section.Commands[q.index] }

// hold returns the pause before a copy.
func (q queued) hold() time.Duration {
	if c := q.command(); c.Kind == program.Out || c.Kind == program.In {
		return c.Hold
	}
	return 0
}

// Reserve implements device.Job. The arenas of all jobs must fit into the device's memory, if its size is known.
func (j *job) Reserve(arena graph.Bytes) error {
	j.mustRest("Reserve")
	if arena < 0 || arena%align != 0 {
		panic(fmt.Sprintf("sim: Reserve(%d) of job %q: not a multiple of %d", arena, j.name, align))
	}
	free := j.device.facts.Memory
	for _, other := range j.device.jobs {
		if other != j {
			free -= other.arena
		}
	}
	if memory := j.device.facts.Memory; memory > 0 && arena > free {
		return fmt.Errorf("sim: reserve %s for job %q: %s of the %s of %s are free; give the job a smaller budget",
			arena, j.name, free, memory, j.device.Name())
	}
	j.arena, j.touched = arena, 0
	return nil
}

// mustRest panics unless everything issued has ended.
func (j *job) mustRest(what string) {
	for l := range program.Lanes {
		if n := len(j.lanes[l].queue); n > 0 || j.closed {
			panic(fmt.Sprintf("sim: %s of job %q (closed: %t) with %d commands in lane %s that have not ended",
				what, j.name, j.closed, n, l))
		}
	}
}

// Issue implements device.Job. It panics if a command uses bytes outside of the arena or an unknown variant.
func (j *job) Issue(s *program.Section, iteration int, drain bool) {
	r := &run{section: s, iteration: iteration}
	for l := range j.lanes {
		r.origin[l] = j.lanes[l].ended + len(j.lanes[l].queue)
	}
	if drain {
		j.gate = r.origin
	}
	r.gate = j.gate
	for i := range s.Commands {
		j.mustFit(&s.Commands[i], i)
		lane := &j.lanes[s.Commands[i].Lane]
		lane.queue = append(lane.queue, queued{r, i})
	}
}

func (j *job) mustFit(c *program.Command, index int) {
	if reach := device.Reach(j.g, c); reach > j.arena || j.closed {
		panic(fmt.Sprintf("sim: command %d issued to job %q (closed: %t) uses %d bytes of an arena of %d",
			index, j.name, j.closed, reach, j.arena))
	}
	if c.Kind == program.Kernel {
		if _, ok := device.Find(j.device.Variants(j.g, c.Op), c.Variant); !ok {
			panic(fmt.Sprintf("sim: op %s of job %q has no variant %q", j.g.Ops[c.Op].Name, j.name, c.Variant))
		}
	}
}

// Host returns nil: there is no data.
func (j *job) Host(graph.StorageID) []float32 { return nil }

// Touched implements device.Job.
func (j *job) Touched() graph.Bytes { return j.touched }

func (j *job) touch(c *program.Command) { j.touched = max(j.touched, device.Reach(j.g, c)) }

// Close takes the job from the device, its memory included. What has not ended is given up.
func (j *job) Close() error {
	j.closed = true
	j.device.jobs = slices.DeleteFunc(j.device.jobs, func(other *job) bool { return other == j })
	return nil
}
