package fakecuda

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tensile/device/cuda"
	"tensile/device/ptx"
)

// maxThreads is the number of threads that a block may have.
const maxThreads = 1024

type modules struct {
	moduleOf   map[cuda.Module]*module
	functionOf map[cuda.Function]*function
}

type module struct {
	code    *ptx.Module
	shadow  shadow // of one byte, which launches read and Unload writes
	refused bool
}

type function struct {
	name   string
	kernel *ptx.Kernel
	module *module
}

// parsed are the modules of texts that were parsed before: those of many drivers are the same.
var parsed sync.Map

func parse(text string) (*ptx.Module, error) {
	if code, ok := parsed.Load(text); ok {
		return code.(*ptx.Module), nil
	}
	code, err := ptx.Parse(text)
	if err == nil {
		parsed.Store(text, code)
	}
	return code, err
}

// Load implements cuda.Driver.
func (d *Driver) Load(text string) (cuda.Module, error) {
	const call = "cuModuleLoadDataEx"
	if err := d.enter(call); err != nil {
		return 0, err
	}
	code, err := parse(text)
	if err != nil {
		return 0, refuse(call, cuda.InvalidPTX, "%v", err)
	}
	if reason, ok := d.options.Refuse[code.Target]; ok {
		return 0, refuse(call, reason, "the driver compiles nothing for .target %s", code.Target)
	}
	d.handles++
	d.moduleOf[cuda.Module(d.handles)] = &module{code: code}
	return cuda.Module(d.handles), nil
}

// Unload implements cuda.Driver. It waits for all streams, and objects as Release does.
func (d *Driver) Unload(m cuda.Module) error {
	const call = "cuModuleUnload"
	err := d.enter(call)
	of := d.moduleOf[m]
	if of == nil {
		return cmp.Or(err, error(refuse(call, invalidHandle, "there is no module %d", m)))
	} else if err != nil {
		of.refused = true
		return err
	}
	d.runAll()
	d.use(&of.shadow, 0, ptx.Range{Begin: 0, End: 1}, d.byHost("its Unload"), true)
	delete(d.moduleOf, m)
	for handle, f := range d.functionOf {
		if f.module == of {
			delete(d.functionOf, handle)
		}
	}
	return d.settle(call)
}

// Function implements cuda.Driver.
func (d *Driver) Function(m cuda.Module, name string) (cuda.Function, error) {
	const call = "cuModuleGetFunction"
	if err := d.enter(call); err != nil {
		return 0, err
	}
	of := d.moduleOf[m]
	if of == nil {
		return 0, refuse(call, invalidHandle, "there is no module %d", m)
	}
	kernel := of.code.Kernel(name)
	if kernel == nil {
		return 0, refuse(call, cuda.NotFound, "the module has no kernel %q", name)
	}
	d.handles++
	d.functionOf[cuda.Function(d.handles)] = &function{name, kernel, of}
	return cuda.Function(d.handles), nil
}

// Params returns how many parameters a kernel has: a caller in C does not say. It is no call of the driver.
func (d *Driver) Params(f cuda.Function) int {
	of := d.functionOf[f]
	if of == nil {
		return 0
	}
	return len(of.kernel.Params)
}

// Launch implements cuda.Driver. Parameters that are not of eight bytes are an error.
func (d *Driver) Launch(s cuda.Stream, l cuda.Launch) error {
	const call = "cuLaunchKernel"
	if err := d.enter(call); err != nil {
		return err
	}
	of, err := d.stream(call, s)
	if err != nil {
		return err
	}
	f := d.functionOf[l.Function]
	if f == nil {
		return refuse(call, invalidHandle, "%s: there is no function %d", l.Op, l.Function)
	}
	if err := f.check(l); err != nil {
		return refuse(call, cuda.InvalidValue, "%s: kernel %s: %v", l.Op, f.name, err)
	}
	l.Args = slices.Clone(l.Args)
	n := &node{what: fmt.Sprintf("launch of %s (kernel %s)", l.Op, f.name), stream: s, unit: compute,
		run: func(n *node) { d.execute(n, f, l) },
		time: func(n *node) time.Duration {
			d.need(n)
			return d.roofline(n.instructions, n.touched)
		}}
	if latency := d.options.Latency; latency != nil {
		n.time = func(*node) time.Duration { return latency(l) }
	}
	d.put(of, n)
	return nil
}

// check returns what CUDA, or the fake, refuses of a launch.
func (f *function) check(l cuda.Launch) error {
	if len(l.Args) != len(f.kernel.Params) {
		return fmt.Errorf("%d arguments for %d parameters", len(l.Args), len(f.kernel.Params))
	}
	for i, size := range f.kernel.Params {
		if size != 8 {
			return fmt.Errorf("parameter %d has %d bytes, want 8", i, size)
		}
	}
	threads := uint64(1)
	for i := range 3 {
		if l.Grid[i] == 0 || l.Block[i] == 0 || l.Grid[i] >= 1<<31 || i > 0 && l.Grid[i] >= 1<<16 ||
			l.Block[i] > maxThreads {
			return fmt.Errorf("a grid of %v blocks of %v threads", l.Grid, l.Block)
		}
		threads *= uint64(l.Block[i])
	}
	if threads > maxThreads || l.Block[2] > 64 {
		return fmt.Errorf("blocks of %v threads", l.Block)
	}
	return nil
}

// execute carries out a launch.
func (d *Driver) execute(n *node, f *function, l cuda.Launch) {
	d.use(&f.module.shadow, 0, ptx.Range{Begin: 0, End: 1}, n, false)
	if d.options.Dry {
		return
	}
	did, err := f.kernel.Run(ptx.Launch{Grid: l.Grid, Block: l.Block, Args: l.Args, Seed: d.order.Uint64(), Memory: d})
	n.instructions = did.Instructions
	for _, r := range did.Reads {
		d.touch(n, r, false)
	}
	for _, r := range did.Writes {
		d.touch(n, r, true)
	}
	if err != nil { // after a race, which may be why
		d.found(codeOf(err), "%s: %v", n, err)
	}
}

// codeOf returns the code of a launch that went wrong. CUDA reports nothing but bad addresses.
func codeOf(err error) cuda.Code {
	switch fault, ok := errors.AsType[*ptx.Fault](err); {
	case ok && fault.Kind == ptx.BadAddress:
		return cuda.IllegalAddress
	case ok && fault.Kind == ptx.Misaligned:
		return misalignedAddress
	}
	return cuda.LaunchFailed
}

// touch notes a range that a kernel has used.
func (d *Driver) touch(n *node, r ptx.Range, writes bool) {
	n.touched += int64(r.End - r.Begin)
	a := d.allocationAt(r.Begin)
	d.use(a.shadow, a.begin, r, n, writes)
}
