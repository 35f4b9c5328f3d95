package cuda

import (
	"fmt"
	"slices"

	"tensile/device"
	"tensile/device/cuda/kernels"
	"tensile/graph"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// loaded is a program as it is bound to a job.
type loaded struct {
	program *program.Program
	ids     []graph.StorageID // per storage of its graph: the job's, or -1
	end     graph.Bytes       // End of the host slots that the job keeps; later ones lie in spilled.
	spilled *pinned           // host slots of what the plan copies out within an iteration
	arrival *program.Arrival
	awaited map[*program.Section][]bool // per command: one of the host lane waits for it
}

// Load implements device.Job.
func (j *job) Load(proven proof.Proven) error {
	d := j.device
	if err := device.Runnable(d, proven); err != nil {
		return fmt.Errorf("load a program of job %s: %w", j.options.Name, err)
	}
	p := proven.Program()
	ids, err := program.Match(j.g, p.Graph)
	if err != nil {
		return fmt.Errorf("load a program of job %s: %w", j.options.Name, err)
	}
	j.mustRest("Load")
	defer d.enter()()
	if d.err != nil {
		return d.failure()
	}
	return j.bind(p, ids)
}

// bind binds the regions of a program to the job's memory, and its streams to lanes.
func (j *job) bind(p *program.Program, ids []graph.StorageID) error {
	l := &loaded{program: p, ids: ids, arrival: program.NewArrival(p, j.device.facts.In), awaited: awaited(p)}
	_, l.end = program.HostSlots(p.Graph)
	lanes, spare, err := j.streams(p.Streams)
	if err != nil {
		return fmt.Errorf("load a program of job %s: %w", j.options.Name, err)
	}
	if l.spilled, err = j.spill(max(0, p.Host-l.end)); err != nil {
		return fmt.Errorf("load a program of job %s: %w", j.options.Name, err)
	}
	j.loaded, j.prepared, j.newest, j.rounds = l, nil, issue{}, make(map[*program.Run]*round)
	j.lanes, j.spare = lanes, spare
	for s, l := range lanes {
		l.stream, l.seen = program.Stream(s), make([]int, len(lanes))
	}
	j.put, j.ended = program.NewLanes(p.Streams), program.NewLanes(p.Streams)
	return nil
}

// awaited returns which commands those of the host lane wait for: in their own section, or, counted from its end, in
// the one before, which may be any.
func awaited(p *program.Program) map[*program.Section][]bool {
	all := make(map[*program.Section][]bool)
	places := make(map[*program.Section][][]int) // per stream: the commands
	for _, s := range p.Sections() {
		all[s], places[s] = make([]bool, len(s.Commands)), make([][]int, len(p.Streams))
		for i, c := range s.Commands {
			places[s][c.Stream] = append(places[s][c.Stream], i)
		}
	}
	mark := func(s *program.Section, of program.Stream, count int) {
		if count > 0 {
			all[s][places[s][of][count-1]] = true
		}
	}
	for _, s := range p.Sections() {
		for _, c := range s.Commands {
			if c.Kind.Unit() != program.Host {
				continue
			}
			for _, w := range c.Waits {
				if w.Count > 0 {
					mark(s, w.Stream, w.Count)
					continue
				}
				for before, of := range places {
					mark(before, w.Stream, len(of[w.Stream])+w.Count)
				}
			}
		}
	}
	return all
}

// spill gets memory for what a program copies out within an iteration. What another program has left there is given
// back: in Home nobody reads it any more.
func (j *job) spill(size graph.Bytes) (*pinned, error) {
	spilled, err := j.device.memory.get(size)
	if err != nil || j.loaded == nil {
		return spilled, err
	}
	return spilled, j.device.memory.put(j.loaded.spilled)
}

// streams returns a lane per stream of a program, each on a stream of the driver but those of the host, and the lanes
// of the job that are left.
func (j *job) streams(units []program.Unit) (lanes, spare []*lane, err error) {
	spare = slices.Concat(j.lanes, j.spare)
	for _, u := range units {
		i := slices.IndexFunc(spare, func(l *lane) bool { return l.unit == u })
		if i >= 0 {
			lanes, spare = append(lanes, spare[i]), slices.Delete(spare, i, i+1)
			continue
		}
		l := &lane{job: j, unit: u}
		if u != program.Host {
			if l.handle, err = j.device.driver.NewStream(); err != nil {
				return nil, nil, err
			}
		}
		j.spare, lanes = append(j.spare, l), append(lanes, l)
	}
	return lanes, spare, nil
}

// prepared is what a command launches.
type prepared []Launch

// prepare returns the launches of a section for the job's arena, those of the loaded program.
func (j *job) prepare(s *program.Section) ([]prepared, error) {
	if all, ok := j.prepared[s]; ok {
		return all, nil
	}
	all := make([]prepared, len(s.Commands))
	for i := range s.Commands {
		if c := &s.Commands[i]; c.Kind == program.Kernel {
			var err error
			if all[i], err = j.launches(c); err != nil {
				return nil, fmt.Errorf("job %s: %s: %w", j.options.Name, j.describe(c), err)
			}
		}
	}
	if j.prepared == nil {
		j.prepared = make(map[*program.Section][]prepared)
	}
	j.prepared[s] = all
	return all, nil
}

// launches returns those of an op.
func (j *job) launches(c *program.Command) (prepared, error) {
	g := j.loaded.program.Graph
	op := &g.Ops[c.Op]
	call := kernels.Call{Kind: op.Kind, Attrs: op.Attrs, InShapes: g.Shapes(op.Inputs),
		OutShapes: g.Shapes(op.Outputs), Scratch: uint64(j.addressOf(c.Scratch)), Seed: j.options.Seed,
		Iteration: uint64(j.word)}
	for _, a := range c.Inputs {
		call.In = append(call.In, uint64(j.addressOf(a)))
	}
	for _, a := range c.Outputs {
		call.Out = append(call.Out, uint64(j.addressOf(a)))
	}
	var all prepared
	for _, l := range kernels.Launches(&call) {
		f, err := j.device.function(l.Kernel)
		if err != nil {
			return nil, err
		}
		all = append(all, Launch{Function: f, Op: op.Name, Grid: l.Grid, Block: l.Block, Args: l.Args})
	}
	return all, nil
}

// addressOf returns the address of a place in the arena; 0 for Nowhere.
func (j *job) addressOf(a program.Address) Address {
	if a == program.Nowhere {
		return 0
	}
	if r := j.loaded.program.Regions[a.Region]; r != program.Arena {
		panic(fmt.Sprintf("cuda: job %q: a kernel or copy with the device's end in the %s memory", j.options.Name, r))
	}
	return j.arena + Address(a.Offset)
}

// bytes returns the memory of the host behind an address.
func (j *job) bytes(a program.Address, size graph.Bytes) device.Memory {
	l := j.loaded
	switch r := l.program.Regions[a.Region]; {
	case r == program.SnapshotMemory:
		return j.snapshot.memory.slice(a.Offset, size)
	case r != program.HostMemory:
		panic(fmt.Sprintf("cuda: job %q: a copy with the host's end in the %s memory", j.options.Name, r))
	case a.Offset < l.end:
		return j.kept.slice(a.Offset, size)
	}
	return l.spilled.slice(a.Offset-l.end, size)
}

// describe names a command for messages.
func (j *job) describe(c *program.Command) string {
	g := j.loaded.program.Graph
	if c.Kind == program.Kernel {
		return fmt.Sprintf("op %s", g.Ops[c.Op].Name)
	}
	return fmt.Sprintf("%s of %s", c.Kind, g.Storages[c.Storage].Name)
}
