package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/program"
)

// Options are the settings of the device; the zero value is the recommended one.
type Options struct {
	Noise float64 // share in [0, 1] by which a kernel's duration varies both ways; 0: none
	Seed  uint64  // Seed of noise and misprediction.

	// Mispredicted is by how much every op takes longer or shorter than Latency says, always by the same: latencies are
	// multiplied by two factors, one of the op's kind and one of its own, whose logarithms have this standard
	// deviation, up to 1. 0: ops take what Latency says.
	Mispredicted float64

	// Latency says how long an op takes alone on the device; nil: the roofline of the device's facts.
	Latency func(g *graph.Graph, op graph.OpID) time.Duration

	// Pace says how many times as long as alone a kernel takes that starts now: the load that others put on the device.
	// nil: once.
	Pace func(now time.Duration) float64

	// in which arenas are backed in part; 0: 2 MiB, as CUDA's devices have
	Page graph.Bytes

	// Fault is what a page costs beside its copy that a kernel uses and that is not on the device: arenas are unified
	// memory, which may be larger than that of the device. The copies and what they cost compete for the link; pages
	// that came first make room, at no cost to them. 0: arenas are on the device.
	Fault time.Duration
}

// Device implements device.Device.
type Device struct {
	facts   cost.Facts
	options Options
	now     time.Duration
	jobs    []*job // In the order in which they were opened.
	entries program.Arrivals
	events  []device.Event
	page    graph.Bytes
	most    graph.Bytes // The most memory that all jobs held at once.
	unified unified
	closed  bool
}

// align is that of the CUDA device.
const align graph.Bytes = 512

// New opens a device with the rates of f and the memory of f, if that is known. It panics if the options are out of
// range, or if there is neither a roofline nor a latency function.
func New(f cost.Facts, o Options) *Device {
	if !(o.Noise >= 0 && o.Noise <= 1) {
		panic(fmt.Sprintf("sim: New with a noise of %v, want 0 to 1", o.Noise))
	}
	if !(o.Mispredicted >= 0 && o.Mispredicted <= 1) {
		panic(fmt.Sprintf("sim: New with latencies mispredicted by %v, want 0 to 1", o.Mispredicted))
	}
	if o.Latency == nil {
		if !(f.Compute > 0 && f.Bandwidth > 0 && f.ComputeShare > 0 && f.BandwidthShare > 0) {
			panic(fmt.Sprintf("sim: New of %q without a latency function, and the facts have no rates: %+v", f.Name, f))
		}
		o.Latency = func(g *graph.Graph, op graph.OpID) time.Duration { return f.Roofline(g.Cost(op)) }
	}
	if o.Page < 0 {
		panic(fmt.Sprintf("sim: New with pages of %d bytes", o.Page))
	}
	d := &Device{facts: f, options: o, page: cmp.Or(o.Page, defaultPage)}
	d.unified.room = int(f.Memory / d.page)
	d.unified.last = page{&d.unified.last, &d.unified.last}
	if o.Fault < 0 || o.Fault > 0 && d.unified.room == 0 {
		panic(fmt.Sprintf("sim: New with a fault of %v and a memory of %s", o.Fault, f.Memory))
	}
	return d
}

// Name is that of the facts.
func (d *Device) Name() string { return "sim:" + d.facts.Name }

// Identity is the name: a device without data has no bits.
func (d *Device) Identity() string { return d.Name() }

// Facts returns what New was given.
func (d *Device) Facts() cost.Facts { return d.facts }

// Align implements device.Device.
func (d *Device) Align() graph.Bytes { return align }

// Now returns the virtual time, which is that of the last events that Next returned.
func (d *Device) Now() time.Duration { return d.now }

// Open implements device.Device. Names may repeat; jobs of one name have the same noise.
func (d *Device) Open(g *graph.Graph, o device.JobOptions) (device.Job, error) {
	if d.closed {
		return nil, fmt.Errorf("sim: open job %q on %s: the device is closed", o.Name, d.Name())
	}
	j := &job{device: d, g: g, name: o.Name}
	d.jobs = append(d.jobs, j)
	return j, nil
}

// latencies returns how long each op of a job's graph takes alone.
func (d *Device) latencies(g *graph.Graph, job string) []time.Duration {
	all := make([]time.Duration, len(g.Ops))
	for op := range g.Ops {
		if all[op] = d.options.Latency(g, graph.OpID(op)); all[op] < 0 {
			panic(fmt.Sprintf("sim: op %s of job %q has a latency of %v", g.Ops[op].Name, job, all[op]))
		}
		all[op] = d.mispredicted(g, graph.OpID(op), all[op])
	}
	return all
}

// Close ends the device. What its jobs have issued is given up.
func (d *Device) Close() error {
	d.closed, d.jobs = true, nil
	return nil
}

// Next moves virtual time to the next instant at which commands end and returns all that end then. With nothing issued
// it waits for wake or ctx; a wake that is signalled already is taken first. It fails when ctx is done, when the device
// is closed, and when what is issued can never run.
func (d *Device) Next(ctx context.Context, wake <-chan struct{}) ([]device.Event, error) {
	if d.closed {
		return nil, errors.New("sim: Next on a closed device")
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("sim: %w", context.Cause(ctx))
	}
	select {
	case <-wake:
		return nil, nil
	default:
	}
	for {
		d.settle()
		if len(d.events) > 0 {
			events := d.events
			d.events = nil
			return events, nil
		}
		pause, ok := d.pause()
		if !ok {
			break
		}
		d.advance(pause)
	}
	if err := d.stuck(); err != nil {
		return nil, err
	}
	select {
	case <-wake:
		return nil, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("sim: %w", context.Cause(ctx))
	}
}

// NextTime returns when Next returns at the earliest, unless something else is issued, and whether it does.
func (d *Device) NextTime() (time.Duration, bool) {
	d.settle()
	if len(d.events) > 0 {
		return d.now, true
	}
	pause, ok := d.pause()
	return d.now + pause, ok
}

// stuck explains the first lane that has something to do, given that nothing can run any more.
func (d *Device) stuck() error {
	for _, j := range d.jobs {
		for s := range j.heads {
			r, index := j.lanes.Head(program.Stream(s))
			if r == nil {
				continue
			}
			w, ended := j.lanes.Blocker(program.Stream(s))
			waits := j.heads[w.Stream].unit
			return fmt.Errorf("sim: job %q stands still in iteration %d: command %d of its section, in lane %s, "+
				"waits for "+
				"%s:%d and lane %s has ended %d there; check the program before it is issued",
				j.name, r.Iteration, index, j.heads[s].unit, waits, w.Count, waits, ended)
		}
	}
	return nil
}
