package fakecuda

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"tensile/device/cuda"
	"tensile/graph"
	"tensile/graph/cost"
)

// Options are the settings of a driver; the zero value is the recommended one.
type Options struct {
	Seed  uint64     // Seed of the order in which operations are executed.
	Facts cost.Facts // the card that is simulated, and the size of its memory; zero: the a6000 of package cost

	// Latency says how long a kernel takes; nil: the roofline of Facts over the instructions that the kernel executed
	// and the bytes that it touched.
	Latency func(cuda.Launch) time.Duration

	// Dry leaves kernels and copies out and only tells their times, for which it needs Latency. Memory has no bytes
	// then, so that networks fit that would not fit into the memory of this machine.
	Dry bool

	// Page is the unit in which memory is mapped, a multiple of 256; 0: 2 MiB. NoPages is a device that maps none.
	Page    graph.Bytes
	NoPages bool

	Context   graph.Bytes // Device memory that the driver takes while it is open.
	Exclusive bool        // one process alone may open the device

	Fail   Failure              // a call that fails; zero: none
	Refuse map[string]cuda.Code // the code with which Load refuses a text, by the text's .target
}

// Driver implements cuda.Driver.
type Driver struct {
	options Options
	facts   cost.Facts
	page    graph.Bytes // 0: no memory is mapped

	isOpen, isEntered, isClosed bool
	failing                     // counts of calls, and what has failed
	memory
	paging
	modules
	streams
	timeline
	tokens
}

var _ cuda.Driver = (*Driver)(nil)

// New returns a driver with one device. It panics if o is dry without latencies.
func New(o Options) *Driver {
	if o.Dry && o.Latency == nil {
		panic("fakecuda: New: a dry driver needs latencies")
	}
	d := &Driver{options: o, facts: o.Facts}
	if d.facts.Name == "" {
		facts, err := cost.Device("a6000")
		if err != nil {
			panic(err)
		}
		d.facts = facts
	}
	if !o.NoPages {
		d.page = cmp.Or(o.Page, defaultPage)
	}
	d.calls = make(map[string]int)
	d.memoryOf = make(map[cuda.Memory]*physical)
	d.order = rand.New(rand.NewPCG(o.Seed, 1))
	d.late = rand.New(rand.NewPCG(o.Seed, 2))
	d.next = firstAddress
	d.host = clock{0}
	d.streamOf = make(map[cuda.Stream]*stream)
	d.eventOf = make(map[cuda.Event]*event)
	d.moduleOf = make(map[cuda.Module]*module)
	d.functionOf = make(map[cuda.Function]*function)
	return d
}

// Bus is the PCI bus id of the device.
const Bus = "00000000:65:00.0"

// cards are the properties of the devices of package cost. Their rates are those of cost.Facts: clock x processors x
// cores x 2, and memory clock x bus width x 2.
var cards = map[string]cuda.Properties{
	"a6000": {Major: 8, Minor: 6, Processors: 84, Clock: 1800000,
		MemoryClock: 8001000, BusWidth: 384, CopyEngines: 2},
	"v100": {Major: 7, Minor: 0, Processors: 80, Clock: 1530000,
		MemoryClock: 877000, BusWidth: 4096, CopyEngines: 6},
	"h200": {Major: 9, Minor: 0, Processors: 132, Clock: 1980000,
		MemoryClock: 3125000, BusWidth: 6144, CopyEngines: 3},
	"k40": {Major: 3, Minor: 5, Processors: 15, Clock: 745000,
		MemoryClock: 3004000, BusWidth: 384, CopyEngines: 2},
	"p100": {Major: 6, Minor: 0, Processors: 56, Clock: 1303000,
		MemoryClock: 715000, BusWidth: 4096, CopyEngines: 2},
	"rtx2080ti": {Major: 7, Minor: 5, Processors: 68, Clock: 1545000,
		MemoryClock: 7000000, BusWidth: 352, CopyEngines: 3},
	"gtx1080ti": {Major: 6, Minor: 1, Processors: 28, Clock: 1582000,
		MemoryClock: 5505000, BusWidth: 352, CopyEngines: 2},
}

// Devices implements cuda.Driver: there is one. Of a card that package cost does not know, all but name and memory is
// that of the a6000.
func (d *Driver) Devices() ([]cuda.Properties, error) {
	if err := d.begin("cuDeviceGet"); err != nil {
		return nil, err
	}
	p, ok := cards[d.facts.Name]
	if !ok {
		p = cards["a6000"]
	}
	p.Name, p.Memory = "fake "+d.facts.Name, d.facts.Memory
	p.UUID, p.Bus = "GPU-00000000-0000-0000-0000-00000000fa4e", Bus
	p.ThreadsPerBlock, p.Page, p.Exclusive = maxThreads, d.page, d.options.Exclusive
	return []cuda.Properties{p}, nil
}

// Open implements cuda.Driver.
func (d *Driver) Open(device int) error {
	const call = "cuDevicePrimaryCtxRetain"
	switch err := d.begin(call); {
	case err != nil:
		return err
	case device != 0:
		return refuse(call, cuda.InvalidDevice, "there is no device %d, only device 0", device)
	case d.isOpen || d.isClosed:
		return refuse(call, cuda.InvalidValue, "the driver has been opened already")
	}
	if d.options.Context > d.facts.Memory {
		return refuse(call, cuda.OutOfMemory, "out of memory: a context takes %d bytes of %d", d.options.Context,
			d.facts.Memory)
	}
	d.isOpen, d.used = true, d.options.Context
	return nil
}

// Enter implements cuda.Driver.
func (d *Driver) Enter() error {
	const call = "cuCtxSetCurrent"
	switch err := d.begin(call); {
	case err != nil:
		return err
	case !d.isOpen:
		return refuse(call, cuda.InvalidContext, "Open comes before Enter")
	}
	d.isEntered = true
	return nil
}

// Close carries out what is on streams and gives all back. The error names what has failed before, or what was still
// held and had not been refused to be given back.
func (d *Driver) Close() error {
	const call = "cuDevicePrimaryCtxRelease"
	switch err := d.begin(call); {
	case d.dead == nil && err != nil:
		return err
	case !d.isOpen:
		return refuse(call, cuda.InvalidContext, "the driver is not open")
	}
	d.runAll()
	left := d.listHeld()
	d.isOpen, d.isEntered, d.isClosed = false, false, true
	d.used -= d.options.Context
	switch err := d.settle(call); {
	case err != nil:
		return err
	case len(left) > 0:
		return refuse(call, cuda.InvalidValue, "left at Close: %s", strings.Join(left, ", "))
	}
	return nil
}

// listHeld lists what is held, in the order in which it was made.
func (d *Driver) listHeld() []string {
	var left []string
	for _, a := range d.allocations {
		if !a.refused && a.within == nil {
			left = append(left, fmt.Sprintf("%s at %#x", graph.Bytes(a.size), a.begin))
		}
	}
	for _, p := range d.pins {
		if !p.refused {
			left = append(left, fmt.Sprintf("%s of pinned memory", graph.Bytes(p.end-p.begin)))
		}
	}
	left = append(left, d.leftPages()...)
	type handle struct {
		number uint64
		name   string
	}
	var handles []handle
	for h, s := range d.streamOf {
		if !s.refused {
			handles = append(handles, handle{uint64(h), fmt.Sprintf("stream %d", h)})
		}
	}
	for h, e := range d.eventOf {
		if !e.refused {
			handles = append(handles, handle{uint64(h), fmt.Sprintf("event %d", h)})
		}
	}
	for h, m := range d.moduleOf {
		if !m.refused {
			handles = append(handles, handle{uint64(h), fmt.Sprintf("module %d", h)})
		}
	}
	for h, m := range d.memoryOf {
		if !m.refused {
			handles = append(handles, handle{uint64(h), fmt.Sprintf("memory %d", h)})
		}
	}
	slices.SortFunc(handles, func(a, b handle) int { return int(a.number) - int(b.number) })
	for _, h := range handles {
		left = append(left, h.name)
	}
	return left
}
