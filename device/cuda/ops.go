package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"

	"tensile/device"
	"tensile/device/cuda/kernels"
	"tensile/graph"
)

// Step is an op that was carried out.
type Step struct {
	Iteration int
	Op        graph.OpID
	Kernels   []string // Launched kernels, in their order.
	Digest    uint32   // Digest of what they have written, as in kernels.OpDigests.
}

// Ops carries out a graph for some iterations, one op after the other, with all of its storages on the device and
// without a program, and has see look at each op. init fills what is persistent, o.Input the rest; o.Output is not
// called. No job may be open.
func (d *Device) Ops(g *graph.Graph, o device.JobOptions, iterations int, init func(graph.Storage, []float32),
	see func(Step)) (err error) {
	defer d.enter()()
	a := alone{d: d, g: g, o: o, storages: make([]Address, len(g.Storages))}
	defer func() { err = errors.Join(err, a.close()) }()
	if err := a.open(init); err != nil {
		return fmt.Errorf("%s: %w", o.Name, err)
	}
	for i := range iterations {
		if err := a.begin(i); err != nil {
			return fmt.Errorf("%s, iteration %d: %w", o.Name, i, err)
		}
		for op := range g.Ops {
			step, err := a.step(graph.OpID(op))
			if err != nil {
				return fmt.Errorf("%s, iteration %d: op %s: %w", o.Name, i, g.Ops[op].Name, err)
			}
			step.Iteration = i
			see(step)
		}
	}
	return nil
}

// alone is a graph that is carried out without a program.
type alone struct {
	d             *Device
	g             *graph.Graph
	o             device.JobOptions
	stream        Stream
	storages      []Address
	host          *pinned // As large as the largest storage.
	scratch, word Address
}

// open gets memory for the graph and fills what is persistent.
func (a *alone) open(init func(graph.Storage, []float32)) (err error) {
	need := graph.Bytes(8)
	for i := range a.g.Ops {
		all := a.d.Variants(a.g, graph.OpID(i))
		if len(all) == 0 {
			op := &a.g.Ops[i]
			return fmt.Errorf("op %s: there is no kernel for %s of these types and shapes", op.Name, op.Kind)
		}
		need = max(need, all[0].Scratch)
	}
	largest := align // that of the iteration's number at least
	for _, s := range a.g.Storages {
		largest = max(largest, s.Bytes)
	}
	if a.stream, err = a.d.driver.NewStream(); err != nil {
		return err
	}
	if a.host, err = a.d.memory.get(largest); err != nil {
		return err
	}
	if a.scratch, err = a.d.driver.Alloc(need); err != nil {
		return err
	}
	if a.word, err = a.d.driver.Alloc(align); err != nil {
		return err
	}
	for i, s := range a.g.Storages {
		if a.storages[i], err = a.d.driver.Alloc(s.Bytes); err != nil {
			return fmt.Errorf("all storages of the graph are on the device at once: %w", err)
		}
		if !s.Role.Persistent() {
			continue
		}
		if err := a.put(s.ID, func(to device.Memory) { init(s, to.Float32()) }); err != nil {
			return err
		}
	}
	return nil
}

// put fills a storage.
func (a *alone) put(s graph.StorageID, fill func(to device.Memory)) error {
	memory := a.host.slice(0, a.g.Storages[s].Bytes)
	fill(memory)
	return errors.Join(a.d.driver.CopyIn(a.stream, a.storages[s], memory), a.d.driver.Synchronize())
}

// begin begins an iteration.
func (a *alone) begin(iteration int) error {
	number := a.host.slice(0, 8)
	binary.LittleEndian.PutUint64(number, uint64(iteration))
	if err := errors.Join(a.d.driver.CopyIn(a.stream, a.word, number), a.d.driver.Synchronize()); err != nil {
		return err
	}
	for _, s := range a.g.Storages {
		if s.Role != graph.Input {
			continue
		}
		if err := a.put(s.ID, func(to device.Memory) { a.o.Input(iteration, s.ID, to) }); err != nil {
			return err
		}
	}
	return nil
}

// step carries out an op and looks at what it has written.
func (a *alone) step(id graph.OpID) (step Step, err error) {
	op := &a.g.Ops[id]
	call := kernels.Call{Kind: op.Kind, Attrs: op.Attrs, InShapes: a.g.Shapes(op.Inputs),
		OutShapes: a.g.Shapes(op.Outputs), Scratch: uint64(a.scratch), Seed: a.o.Seed, Iteration: uint64(a.word)}
	for _, t := range op.Inputs {
		call.In = append(call.In, uint64(a.storages[a.g.Tensors[t].Storage]))
	}
	for _, t := range op.Outputs {
		call.Out = append(call.Out, uint64(a.storages[a.g.Tensors[t].Storage]))
	}
	step.Op = id
	for _, l := range kernels.Launches(&call) {
		f, err := a.d.function(l.Kernel)
		if err != nil {
			return step, err
		}
		launch := Launch{Function: f, Op: op.Name, Grid: l.Grid, Block: l.Block, Args: l.Args}
		if err := a.d.driver.Launch(a.stream, launch); err != nil {
			return step, err
		}
		step.Kernels = append(step.Kernels, l.Kernel)
	}
	sum := fnv.New64a()
	for _, t := range op.Outputs {
		content := a.host.slice(0, a.g.Tensors[t].Bytes())
		from := a.storages[a.g.Tensors[t].Storage]
		if err := errors.Join(a.d.driver.CopyOut(a.stream, content, from), a.d.driver.Synchronize()); err != nil {
			return step, err
		}
		sum.Write(content)
	}
	step.Digest = kernels.Fold(sum.Sum64())
	return step, nil
}

// close gives back what open has got.
func (a *alone) close() error {
	var problems []error
	if a.stream != 0 {
		problems = append(problems, a.d.driver.DestroyStream(a.stream))
	}
	for _, at := range append(a.storages, a.scratch, a.word) {
		if at != 0 {
			problems = append(problems, a.d.driver.Release(at))
		}
	}
	return errors.Join(append(problems, a.d.memory.put(a.host))...)
}
