package cpu

import (
	"context"
	"fmt"

	"tensile/device"
	"tensile/graph"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// loaded is a program as it is bound to a job.
type loaded struct {
	program *program.Program
	ids     []graph.StorageID // per storage of its graph: the job's, or -1
	inputs  [][]graph.Shape   // per op
	outputs [][]graph.Shape
	end     graph.Bytes // End of the host slots that the job keeps; later ones lie in spilled.
	spilled memory      // host slots of what the plan copies out within an iteration; pages appear when they are used
}

// Load implements device.Job.
func (j *job) Load(proven proof.Proven) error {
	if err := device.Runnable(j.device, proven); err != nil {
		return fmt.Errorf("load a program of job %s: %w", j.options.Name, err)
	}
	p := proven.Program()
	ids, err := program.Match(j.g, p.Graph)
	if err != nil {
		return fmt.Errorf("load a program of job %s: %w", j.options.Name, err)
	}
	j.mustRest("Load")
	return j.bind(p, ids)
}

// bind binds the regions of a program to the job's memory, and its streams to lanes.
func (j *job) bind(p *program.Program, ids []graph.StorageID) error {
	l := j.loaded
	if l == nil || l.program.Graph != p.Graph {
		l = j.prepare(p.Graph)
	}
	if err := j.spill(l, max(0, p.Host-l.end)); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	l.program, l.ids = p, ids
	j.entry.load(program.NewArrival(p, j.device.facts.In))
	j.loaded, j.lanes = l, program.NewLanes(p.Streams)
	for s := len(j.workers); s < len(p.Streams); s++ {
		w := newLane(j, program.Stream(s))
		ctx, leave := context.WithCancel(context.Background())
		j.workers, j.leave = append(j.workers, w), append(j.leave, leave)
		j.device.addLanes(1)
		j.running.Go(func() { w.run(ctx) })
	}
	return nil
}

// prepare makes what depends on the graph of a program, in place of what was there for the graph before.
func (j *job) prepare(g *graph.Graph) *loaded {
	if j.device.trace != nil {
		if j.recorder != nil {
			j.recorder.home()
		}
		j.recorder = newRecorder(j.options.Name, g, j.device.trace)
	}
	_, kept := program.HostSlots(g)
	l := &loaded{end: kept}
	for _, op := range g.Ops {
		l.inputs = append(l.inputs, g.Shapes(op.Inputs))
		l.outputs = append(l.outputs, g.Shapes(op.Outputs))
	}
	return l
}

// spill has a job's memory for what a program copies out within an iteration be of a size. What another program has
// left there is given back: in Home nobody reads it any more.
func (j *job) spill(l *loaded, size graph.Bytes) error {
	if j.loaded != nil && graph.Bytes(len(j.loaded.spilled.bytes)) == size {
		l.spilled = j.loaded.spilled
		return nil
	}
	spilled, err := reserve(size)
	if err != nil {
		return fmt.Errorf("job %s: %w", j.options.Name, err)
	}
	if j.loaded != nil {
		j.loaded.spilled.free()
	}
	l.spilled = spilled
	return nil
}

// bytes returns the memory of size bytes behind an address.
func (j *job) bytes(a program.Address, size graph.Bytes) device.Memory {
	switch l := j.loaded; {
	case l.program.Regions[a.Region] == program.Arena:
		return j.arena.slice(a.Offset, size)
	case l.program.Regions[a.Region] == program.SnapshotMemory:
		return j.snapshot.memory.slice(a.Offset, size)
	case a.Offset < l.end:
		return j.kept.slice(a.Offset, size)
	default:
		return l.spilled.slice(a.Offset-l.end, size)
	}
}

// elementsAt returns elements behind an address; nil for Nowhere.
func (j *job) elementsAt(a program.Address, elements int) []float32 {
	if a == program.Nowhere || elements == 0 {
		return nil
	}
	return j.bytes(a, graph.Bytes(elements)*graph.ElementBytes).Float32()
}
