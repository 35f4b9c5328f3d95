package fakecuda

import (
	"cmp"

	"tensile/device/cuda"
	"tensile/internal/ptx"
)

// maxThreads is the number of threads that a block may have.
const maxThreads = 1024

type modules struct {
	moduleOf   map[cuda.Module]*module
	functionOf map[cuda.Function]*function
}

type module struct {
	shadow  shadow // of one byte, which launches read and Unload writes
	refused bool
}

type function struct {
	name   string
	module *module
}

// Load implements cuda.Driver.
func (d *Driver) Load(text string) (cuda.Module, error) {
	const call = "cuModuleLoadDataEx"
	if err := d.enter(call); err != nil {
		return 0, err
	}
	return 0, refuse(call, cuda.InvalidPTX, "not yet")
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
	if d.moduleOf[m] == nil {
		return 0, refuse(call, invalidHandle, "there is no module %d", m)
	}
	return 0, refuse(call, cuda.NotFound, "the module has no kernel %q", name)
}

// Launch implements cuda.Driver.
func (d *Driver) Launch(s cuda.Stream, l cuda.Launch) error {
	const call = "cuLaunchKernel"
	if err := d.enter(call); err != nil {
		return err
	}
	return refuse(call, invalidHandle, "there is no function %d", l.Function)
}
