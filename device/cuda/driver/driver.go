//go:build gpu

package driver

// #include <stdlib.h>
// #include <cuda.h>
import "C"

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"tensile/device/cuda"
	"tensile/graph"
)

// Driver is CUDA's driver. What is opened and not given back is listed, for Close.
type Driver struct {
	start   time.Time
	device  cu.Device
	context cu.CUContext
	open    bool

	memory map[cuda.Address]struct{}
	paging
	pinned  map[uintptr]struct{} // where it begins
	modules map[cuda.Module]struct{}
	events  map[cuda.Event]struct{}
	streams map[cuda.Stream]*waiter
	ended   *ended
}

var _ cuda.Driver = (*Driver)(nil)

// New returns the driver that [Load] has loaded.
func New() *Driver { return &Driver{start: time.Now()} }

// handles are those of cu: structs of one pointer of the driver's.
type handles interface {
	cu.Stream | cu.Event | cu.Module | cu.Function
}

func number[T handles](h T) uint64 { return *(*uint64)(unsafe.Pointer(&h)) }

func handle[T handles, N ~uint64](n N) T { return *(*T)(unsafe.Pointer(&n)) }

// A handle is as large as its number.
var _ = [1]struct{}{}[unsafe.Sizeof(cu.Stream{})+unsafe.Sizeof(cu.Event{})+unsafe.Sizeof(cu.Module{})+
	unsafe.Sizeof(cu.Function{})-4*unsafe.Sizeof(uint64(0))]

// Devices lists the devices in the order of the driver.
func (d *Driver) Devices() ([]cuda.Properties, error) {
	n, err := cu.NumDevices()
	if err != nil {
		return nil, wrap("cuDeviceGetCount", err)
	}
	all := make([]cuda.Properties, n)
	for i := range all {
		if all[i], err = properties(i); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func properties(i int) (cuda.Properties, error) {
	device, err := cu.GetDevice(i)
	if err != nil {
		return cuda.Properties{}, wrap("cuDeviceGet", err)
	}
	name, err := device.Name()
	if err != nil {
		return cuda.Properties{}, wrap("cuDeviceGetName", err)
	}
	uuid := "" // drivers before 396 do not say
	if id, err := device.UUID(); err == nil {
		uuid = "GPU-" + id.String()
	} else if codeOf(err) != int(cuda.NotFound) {
		return cuda.Properties{}, wrap("cuDeviceGetUuid", err)
	}
	total, err := device.TotalMem()
	if err != nil {
		return cuda.Properties{}, wrap("cuDeviceTotalMem", err)
	}
	var mode int
	p := cuda.Properties{Name: name, UUID: uuid, Memory: graph.Bytes(total)}
	if p.Bus, err = bus(device); err != nil {
		return cuda.Properties{}, err
	}
	for _, a := range []struct {
		to        *int
		attribute cu.DeviceAttribute
	}{
		{&p.Major, cu.ComputeCapabilityMajor},
		{&p.Minor, cu.ComputeCapabilityMinor},
		{&p.Processors, cu.MultiprocessorCount},
		{&p.Clock, cu.ClockRate},
		{&p.MemoryClock, cu.MemoryClockRate},
		{&p.BusWidth, cu.GlobalMemoryBusWidth},
		{&p.CopyEngines, cu.AsyncEngineCount},
		{&p.ThreadsPerBlock, cu.MaxThreadsPerBlock},
		{&mode, cu.ComputeMode},
	} {
		if *a.to, err = device.Attribute(a.attribute); err != nil {
			return cuda.Properties{}, wrap("cuDeviceGetAttribute", err)
		}
	}
	p.Exclusive = mode == C.CU_COMPUTEMODE_EXCLUSIVE_PROCESS
	p.Page, err = page(device)
	return p, err
}

// bus returns where a device is on PCI, as NVML writes it: the domain of eight digits, not four.
func bus(device cu.Device) (string, error) {
	const size = 32
	text := (*C.char)(C.calloc(size, 1))
	defer C.free(unsafe.Pointer(text))
	if code := C.cuDeviceGetPCIBusId(text, size, C.CUdevice(device)); code != C.CUDA_SUCCESS {
		return "", failed("cuDeviceGetPCIBusId", int(code))
	}
	var domain, number, slot, function int
	if _, err := fmt.Sscanf(C.GoString(text), "%x:%x:%x.%x", &domain, &number, &slot, &function); err != nil {
		return "", fmt.Errorf("cuDeviceGetPCIBusId: %q is no PCI bus id", C.GoString(text))
	}
	return fmt.Sprintf("%08X:%02X:%02X.%X", domain, number, slot, function), nil
}

// Open takes a device, with its primary context.
func (d *Driver) Open(i int) error {
	if d.open {
		panic("driver: opened twice")
	}
	device, err := cu.GetDevice(i)
	if err != nil {
		return wrap("cuDeviceGet", err)
	}
	context, err := device.RetainPrimaryCtx()
	if err != nil {
		return wrap("cuDevicePrimaryCtxRetain", err)
	}
	*d = Driver{start: d.start, device: device, context: context, open: true,
		memory: make(map[cuda.Address]struct{}), paging: newPaging(), pinned: make(map[uintptr]struct{}),
		modules: make(map[cuda.Module]struct{}), events: make(map[cuda.Event]struct{}),
		streams: make(map[cuda.Stream]*waiter), ended: newEnded()}
	return d.Enter()
}

// Enter makes the primary context the calling thread's.
func (d *Driver) Enter() error { return wrap("cuCtxSetCurrent", cu.SetCurrentContext(d.context)) }

// Close waits for what is on streams, watched and run, gives back all that is left, and then the context.
func (d *Driver) Close() error {
	if !d.open {
		return nil
	}
	d.open = false
	var all []error
	keep := func(err error) { all = append(all, err) }
	keep(d.Enter())
	keep(d.Synchronize())
	for _, s := range keys(d.streams) {
		keep(d.DestroyStream(s))
	}
	d.ended.running.Wait()
	for _, e := range keys(d.events) {
		keep(d.DestroyEvent(e))
	}
	for _, m := range keys(d.modules) {
		keep(d.Unload(m))
	}
	for _, a := range keys(d.memory) {
		keep(d.Release(a))
	}
	for _, a := range keys(d.mapped) {
		keep(d.Unmap(a, d.mapped[a]))
	}
	for _, m := range keys(d.created) {
		keep(d.ReleaseMemory(m))
	}
	for _, a := range keys(d.reserved) {
		keep(d.ReleaseAddresses(a, d.reserved[a]))
	}
	for _, p := range keys(d.pinned) {
		keep(d.unpin(p))
	}
	keep(wrap("cuCtxSetCurrent", cu.SetCurrentContext(cu.CUContext{})))
	keep(wrap("cuDevicePrimaryCtxRelease", d.device.ReleasePrimaryCtx()))
	// after an error of the device each call repeats it
	if i := slices.IndexFunc(all, func(err error) bool { return err != nil }); i >= 0 {
		return all[i]
	}
	return nil
}

func keys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// Now is the host's clock.
func (d *Driver) Now() time.Duration { return time.Since(d.start) }
