package cpu

import (
	"fmt"
	"math"
	"sync"

	"tensile/device"
	"tensile/graph"
	"tensile/internal/invariants"
	"tensile/program"
)

// job implements device.Job.
type job struct {
	device   *Device
	g        *graph.Graph
	options  device.JobOptions
	slots    []graph.Bytes // host offsets
	resident graph.Bytes   // of the host slots that every plan uses
	inputs   [][]graph.Shape
	outputs  [][]graph.Shape
	recorder *recorder // nil: nothing is recorded

	regions    [program.Regions]memory
	lanes      [program.Lanes]*lane
	running    sync.WaitGroup
	populating sync.WaitGroup // the arena

	mu      sync.Mutex
	issued  [program.Lanes]int
	floor   [program.Lanes]int // issued when a section with drain came last
	done    [program.Lanes]int
	urgent  [program.Lanes]int // counts that another lane is waiting for
	touched graph.Bytes
	closed  bool
}

func newJob(d *Device, g *graph.Graph, o device.JobOptions) (*job, error) {
	j := &job{device: d, g: g, options: o}
	if d.trace != nil {
		j.recorder = newRecorder(o.Name, g, d.trace)
	}
	for _, op := range g.Ops {
		j.inputs = append(j.inputs, g.Shapes(op.Inputs))
		j.outputs = append(j.outputs, g.Shapes(op.Outputs))
	}
	for _, s := range g.Storages {
		if s.Role.FromHost() || s.Role == graph.Output {
			j.resident += s.Bytes
		}
	}
	if err := d.claim(o.Name, "host memory", j.resident); err != nil {
		return nil, err
	}
	var size graph.Bytes
	var err error
	j.slots, size = program.HostSlots(g)
	if j.regions[program.HostMemory], err = reserve(size); err != nil {
		d.claimed -= j.resident
		return nil, fmt.Errorf("job %s: %w", o.Name, err)
	}
	return j, nil
}

func (j *job) run() {
	for l := range program.Lanes {
		j.lanes[l] = newLane(j, l)
	}
	for _, l := range j.lanes {
		j.running.Go(l.run)
	}
}

// Reserve implements device.Job. With the invariants tag the new arena is full of NaN.
func (j *job) Reserve(arena graph.Bytes) error {
	j.mustRest("Reserve")
	if arena < 0 || arena%align != 0 {
		panic(fmt.Sprintf("cpu: Reserve(%d): not a multiple of %d", arena, align))
	}
	j.drop()
	if err := j.device.claim(j.options.Name, "an arena", arena); err != nil {
		return err
	}
	var err error
	if j.regions[program.Arena], err = reserve(arena); err != nil {
		j.device.claimed -= arena
		return fmt.Errorf("job %s: %w", j.options.Name, err)
	}
	j.populating.Go(func() { populate(j.regions[program.Arena]) }) // beside the prologue's copies
	if invariants.Enabled {
		poison(j.regions[program.Arena].floats(0, int(arena/graph.ElementBytes)))
	}
	return nil
}

// drop gives the arena back.
func (j *job) drop() {
	if j.recorder != nil {
		j.recorder.home()
	}
	j.populating.Wait()
	j.device.claimed -= graph.Bytes(len(j.regions[program.Arena].bytes))
	j.regions[program.Arena].free()
	j.touched = 0
}

func poison(f []float32) {
	for i := range f {
		f[i] = float32(math.NaN())
	}
}

func (j *job) mustRest(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.done != j.issued {
		panic(fmt.Sprintf("cpu: %s of job %q with %v commands issued and %v done", what, j.options.Name, j.issued, j.done))
	}
}

// Issue implements device.Job.
func (j *job) Issue(s *program.Section, iteration int, drain bool) {
	if j.recorder != nil {
		j.recorder.section(s)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	origin := j.issued
	if drain {
		j.floor = origin
	}
	for i := range s.Commands {
		c := &s.Commands[i]
		j.issued[c.Lane]++
		j.lanes[c.Lane].queue = append(j.lanes[c.Lane].queue, issued{section: s, command: c, index: i, iteration: iteration,
			last: j.issued[c.Lane]-origin[c.Lane] == s.Counts[c.Lane], origin: origin, floor: j.floor})
	}
	j.wakeLanes()
}

func (j *job) wakeLanes() {
	for _, l := range j.lanes {
		l.wake.Signal()
	}
}

// Host implements device.Job.
func (j *job) Host(s graph.StorageID) []float32 {
	j.mustRest("Host")
	return j.host(s)
}

func (j *job) host(s graph.StorageID) []float32 {
	return j.regions[program.HostMemory].floats(j.slots[s], int(j.g.Storages[s].Bytes/graph.ElementBytes))
}

// Touched implements device.Job.
func (j *job) Touched() graph.Bytes {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.touched
}

// Close ends the lanes, also in the middle of what was issued, and gives all memory back.
func (j *job) Close() error {
	j.mu.Lock()
	j.closed = true
	j.wakeLanes()
	j.mu.Unlock()
	j.running.Wait()
	j.device.forget(j)
	j.drop()
	j.regions[program.HostMemory].free()
	j.device.claimed -= j.resident
	j.device.jobs--
	return nil
}

// at returns memory behind an address; nil for Nowhere.
func (j *job) at(a program.Address, elements int) []float32 {
	if a == program.Nowhere {
		return nil
	}
	return j.regions[a.Region].floats(a.Offset, elements)
}
