package cpu

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tensile/device"
	"tensile/device/cpu/crew"
	"tensile/device/cpu/gemm"
	"tensile/device/cpu/kernel"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/pool/trace"
	"tensile/plan/program"
)

// Options are the settings of the device; the zero value is the recommended one.
type Options struct {
	Threads int                 // that compute, of all jobs together; 0: one
	Link    cost.BytesPerSecond // limit of each copy direction, shared by all jobs; 0: none

	// in which arenas are backed in part, a multiple of the system's page; 0: 2 MiB, which the system backs fastest.
	// Smaller ones are for tests of small networks.
	Page graph.Bytes

	// Trace, if not nil, is told of every malloc, free, read and write that the jobs' commands come to, in the order in
	// which they are issued: a trace.Trace of what is trained. Blocks are called JOB/sN, N being the storage, and
	// JOB/scratch. The goroutine that calls the device's methods calls it.
	Trace func(trace.Event)
}

// Device implements device.Device.
type Device struct {
	engine *gemm.Engine
	facts  cost.Facts
	start  time.Time
	links  map[program.Kind]*link // Out and In
	lanes  int                    // Number of lanes of all jobs.
	enters *arrivals
	trace  func(trace.Event)
	page   graph.Bytes

	memory  graph.Bytes  // available when the device was opened; 0: unknown
	claimed atomic.Int64 // bytes, by arenas, host slots and snapshots of all jobs

	mu       sync.Mutex
	events   []device.Event
	happened chan struct{}
}

// align is one cache line and more: GEMM gives the same bits at any alignment, this keeps it fast.
const align graph.Bytes = 256

// New opens the device and measures, in a few ten milliseconds, the rates that Facts reports.
func New(o Options) (*Device, error) {
	d := &Device{start: time.Now(), memory: available(), happened: make(chan struct{}, 1), trace: o.Trace,
		enters: newArrivals(), page: o.Page}
	if d.page == 0 {
		d.page = largePage
	}
	if system := graph.Bytes(os.Getpagesize()); d.page < 0 || d.page%system != 0 {
		return nil, fmt.Errorf("open the cpu device with pages of %d bytes: not a multiple of the system's %d", d.page,
			system)
	}
	d.engine = gemm.New(crew.New(o.Threads))
	var err error
	if d.facts, err = measure(d.engine); err != nil {
		d.Close()
		return nil, fmt.Errorf("open the cpu device: %w", err)
	}
	d.facts.Memory = d.memory
	d.LimitLink(o.Link)
	return d, nil
}

// LimitLink sets the rate of each copy direction; 0 means no limit. Nothing may be issued.
func (d *Device) LimitLink(rate cost.BytesPerSecond) {
	d.links = map[program.Kind]*link{program.Out: newLink(rate), program.In: newLink(rate)}
	reached := d.facts.Bandwidth / 2 // a copy reads and writes every byte
	if rate > 0 {
		reached = min(rate, reached)
	}
	d.facts.Out.Rate, d.facts.In.Rate = reached, reached
}

// ShareLink implements device.LinkSharer.
func (d *Device) ShareLink(out, in cost.BytesPerSecond) {
	d.links[program.Out].setShare(out)
	d.links[program.In].setShare(in)
}

// Name names the device.
func (d *Device) Name() string { return "cpu" }

// Identity names the device with all that decides the bits of its kernels: what this program was compiled for, and a
// digest of what products and loops over floats come to.
func (d *Device) Identity() string {
	return fmt.Sprintf("cpu/%s/kernels=%s", architecture(), kernelsDigest())
}

func (d *Device) Facts() cost.Facts  { return d.facts }
func (d *Device) Align() graph.Bytes { return align }

// Variants returns the ways in which the device computes an op, none of one that is opaque or of float64. All have the
// same bits.
func (d *Device) Variants(g *graph.Graph, op graph.OpID) device.Variants {
	o := &g.Ops[op]
	isDouble := func(t graph.TensorID) bool { return g.Tensors[t].DType == graph.Float64 }
	if o.Kind == graph.Opaque || slices.ContainsFunc(o.Inputs, isDouble) || slices.ContainsFunc(o.Outputs, isDouble) {
		return nil
	}
	if o.Kind == graph.AllReduce {
		return device.Variants{{Name: string(o.Kind), Bits: string(o.Kind)}}
	}
	var all device.Variants
	for _, v := range kernel.Variants(o.Kind, o.Attrs, g.Shapes(o.Inputs), g.Shapes(o.Outputs)) {
		all = append(all, device.Variant{Name: v.Name, Scratch: graph.Bytes(v.Scratch) * graph.ElementBytes,
			Bits: "cpu", Share: v.Share})
	}
	return all
}

// Open makes a place for a job, with host memory for what it keeps there. It fails if the graph is of a replica and
// nothing leads to the others.
func (d *Device) Open(g *graph.Graph, o device.JobOptions) (device.Job, error) {
	if n := g.Replicas(); n > 1 && o.Mean == nil {
		return nil, fmt.Errorf("job %s: its graph is of one of %d replicas, which are trained together by "+
			"run --replicas", o.Name, n)
	}
	return newJob(d, g, o)
}

// addLanes makes room for more threads. A lane that computes keeps its processor for long; copies and the runner must
// not wait for it.
func (d *Device) addLanes(n int) {
	d.lanes += n
	if want := runtime.NumCPU() + d.lanes; runtime.GOMAXPROCS(0) < want {
		runtime.GOMAXPROCS(want)
	}
}

// Close ends the device; its jobs are closed before.
func (d *Device) Close() error {
	d.engine.Crew().Close()
	return nil
}

// Next implements device.Device.
func (d *Device) Next(ctx context.Context, wake <-chan struct{}) ([]device.Event, error) {
	for ctx.Err() == nil {
		d.mu.Lock()
		events := d.events
		d.events = nil
		d.mu.Unlock()
		if len(events) > 0 {
			return events, nil
		}
		select {
		case <-d.happened:
		case <-wake:
			return nil, nil
		case <-ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

// forget drops what a closed job has left to report.
func (d *Device) forget(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = slices.DeleteFunc(d.events, func(e device.Event) bool { return e.Job == j })
}

// Now is the time since the device was opened.
func (d *Device) Now() time.Duration { return time.Since(d.start) }

// record notes that a command has ended now. The caller holds the mutex of the event's job, so that is taken first.
func (d *Device) record(e device.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.End = d.Now()
	d.events = append(d.events, e)
}

// wakeNext lets Next return what was recorded.
func (d *Device) wakeNext() {
	select {
	case d.happened <- struct{}{}:
	default:
	}
}
