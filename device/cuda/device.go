package cuda

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"tensile/device"
	"tensile/device/cuda/kernels"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/program"
)

// Options are the settings of the device; the zero value is the recommended one.
type Options struct {
	Index  int         // Index of the device in Driver.Devices.
	Pinned graph.Bytes // limit of the host memory that is pinned, by all jobs; 0: no limit
}

// Device implements device.Device.
type Device struct {
	driver     Driver
	isOpen     bool
	properties Properties
	facts      cost.Facts
	identity   string

	modules   []Module
	moduleOf  map[string]Module // The module of each kernel, by its name.
	functions map[string]Function

	clock    Stream // Carries only the events against which times are measured.
	events   eventPool
	memory   *pinnedPool
	arrivals program.Arrivals

	jobs   []*job
	tokens map[uint64]*sent // Pending notifications. Each means that a command, and all before it on its lane, ended.
	token  uint64           // The newest key of tokens.
	stale  int              // How many of tokens belong to commands that are already known to have ended.
	ended  []device.Event   // Events that Next has not returned yet.
	err    error            // First error of the driver; after it the device does nothing more.
	told   bool             // A caller has received err.
}

// LeastCapability is the major number of the compute capability that the kernels need.
const LeastCapability = 6

// align is that of Driver.Alloc.
const align graph.Bytes = 256

// New opens a device of the driver, which it closes in the end, loads the kernels, and measures the rates of the link
// in some milliseconds. If that fails the driver is closed.
func New(driver Driver, o Options) (*Device, error) {
	d := &Device{driver: driver, functions: make(map[string]Function), tokens: make(map[uint64]*sent),
		events: eventPool{driver: driver}, memory: &pinnedPool{driver: driver, limit: o.Pinned}}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.open(o.Index); err != nil {
		return nil, errors.Join(fmt.Errorf("open the cuda device: %w", Remedied(err)), d.release())
	}
	return d, nil
}

func (d *Device) open(index int) error {
	all, err := d.driver.Devices()
	if err != nil {
		return err
	}
	if index < 0 || index >= len(all) {
		return fmt.Errorf("there is no device %d: the driver has %d; tensile devices lists them", index, len(all))
	}
	d.properties = all[index]
	if p := d.properties; p.Major < LeastCapability {
		return fmt.Errorf("%s has compute capability %d.%d, the kernels need %d.0: give another GPU", p.Name, p.Major,
			p.Minor, LeastCapability)
	}
	if err := d.driver.Open(index); err != nil {
		return err
	}
	d.isOpen = true
	if err := d.driver.Enter(); err != nil {
		return err
	}
	if err := d.load(kernels.Texts()); err != nil {
		return err
	}
	if d.clock, err = d.driver.NewStream(); err != nil {
		return err
	}
	d.facts, err = d.measure()
	return err
}

// enter prepares the calling thread for calls of the driver. What it returns ends that.
func (d *Device) enter() (leave func()) {
	runtime.LockOSThread()
	if err := d.driver.Enter(); err != nil {
		d.fail(err)
	}
	return runtime.UnlockOSThread
}

// fail notes the first error of the driver, after which nothing more is put on streams.
func (d *Device) fail(err error) {
	if d.err == nil && err != nil {
		d.err = fmt.Errorf("cuda: %w", err)
	}
}

// failure returns the first error of the driver, to somebody who gets to see it.
func (d *Device) failure() error {
	d.told = d.told || d.err != nil
	return d.err
}

// untold is failure if nobody has got that error yet.
func (d *Device) untold() error {
	if d.told {
		return nil
	}
	return d.failure()
}

// Name is what the driver calls the device.
func (d *Device) Name() string { return "cuda (" + d.properties.Name + ")" }

// Identity is a digest of the kernels' text: their bits are those of any GPU.
func (d *Device) Identity() string { return d.identity }

// digest identifies the text of kernels.
func digest(texts []kernels.Text) string {
	sum := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(sum, "%s %d\n%s", t.Name, len(t.PTX), t.PTX)
	}
	return "cuda/ptx/" + hex.EncodeToString(sum.Sum(nil)[:8])
}

// Bus is where the GPU is on PCI, as NVML writes it: 00000000:65:00.0.
func (d *Device) Bus() string { return d.properties.Bus }

func (d *Device) Facts() cost.Facts  { return d.facts }
func (d *Device) Align() graph.Bytes { return align }

// Variants returns the one way in which the device computes an op, none of one that is opaque, of float64 or too large
// for the kernels.
func (d *Device) Variants(g *graph.Graph, op graph.OpID) device.Variants {
	o := &g.Ops[op]
	isDouble := func(t graph.TensorID) bool { return g.Tensors[t].DType == graph.Float64 }
	if slices.ContainsFunc(o.Inputs, isDouble) || slices.ContainsFunc(o.Outputs, isDouble) {
		return nil
	}
	in, out := g.Shapes(o.Inputs), g.Shapes(o.Outputs)
	if kernels.Fit(o.Kind, o.Attrs, in, out) != nil {
		return nil
	}
	scratch := kernels.Scratch(o.Kind, o.Attrs, in, out)
	return device.Variants{{Name: "ptx", Scratch: scratch, Bits: "ptx"}}
}

// Now is the driver's clock.
func (d *Device) Now() time.Duration { return d.driver.Now() }

// Next implements device.Device. It fails with the first error of the driver that there was.
func (d *Device) Next(ctx context.Context, wake <-chan struct{}) ([]device.Event, error) {
	defer d.enter()()
	for d.err == nil {
		if len(d.ended) > 0 && d.stale == 0 { // else tokens would pile up
			events := d.ended
			d.ended = nil
			return events, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if len(d.tokens) == 0 {
			if d.fail(d.stuck()); d.err != nil {
				break
			}
			select {
			case <-wake:
				return nil, nil
			case <-ctx.Done():
				continue
			}
		}
		switch token, ok, err := d.driver.Next(ctx, wake); {
		case err != nil:
			d.fail(fmt.Errorf("wait for the device: %w", err))
		case ok:
			d.take(token)
			d.advance()
		case ctx.Err() == nil:
			return nil, nil
		}
	}
	return nil, d.failure()
}

// stuck returns an error if a job has something to do, given that nothing is under way.
func (d *Device) stuck() error {
	for _, j := range d.jobs {
		if !j.rests() {
			return fmt.Errorf("job %s stands still: nothing of it is under way, and what is left of it waits for that",
				j.options.Name)
		}
	}
	return nil
}

// expect returns a new token.
func (d *Device) expect(s *sent) uint64 {
	d.token++
	d.tokens[d.token] = s
	return d.token
}

// take takes note of what a token tells, which may be known already, since another lane has waited for that. An event
// that was watched may be used again only now.
func (d *Device) take(token uint64) {
	s := d.tokens[token]
	delete(d.tokens, token)
	d.fail(s.reach())
	if s.watched {
		d.stale--
		d.events.put(s.end)
	}
}

// advance puts all that can be put on streams, and starts what can start on host lanes.
func (d *Device) advance() {
	for _, j := range d.jobs {
		if d.err == nil {
			d.fail(j.advance())
		}
	}
}

// Close ends the device, and jobs that were not closed. An error of the driver that nobody has got yet is one of Close.
func (d *Device) Close() error {
	defer d.enter()()
	var problems []error
	for len(d.jobs) > 0 {
		problems = append(problems, d.jobs[0].Close())
	}
	return errors.Join(append(problems, d.untold(), d.release())...)
}

// release gives back all that the device has, and closes the driver.
func (d *Device) release() error {
	if !d.isOpen {
		return nil
	}
	problems := []error{d.driver.Synchronize(), d.events.close(), d.memory.close()}
	for _, m := range d.modules {
		problems = append(problems, d.driver.Unload(m))
	}
	if d.clock != 0 {
		problems = append(problems, d.driver.DestroyStream(d.clock))
	}
	if err := errors.Join(append(problems, d.driver.Close())...); err != nil {
		return fmt.Errorf("close the cuda device: %w", err)
	}
	return nil
}
