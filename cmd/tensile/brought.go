package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// noDevice is the --device of a controller that has none of its own.
const noDevice = "none"

// deviceName is what a device is called among those of a controller unless --name says otherwise: by host and device.
func deviceName(device string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	name := []rune(host + "-" + device)
	return string(name[:min(len(name), wire.MaxDeviceName)])
}

// bringFlags say what an executor brings.
type bringFlags struct {
	name   string
	budget string
	host   hostMemoryFlag
}

func (f *bringFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "name", "",
		"device name at the controller; executors with the same name share its memory (default: host and device)")
	c.Flags().StringVar(&f.budget, "budget", "",
		"device memory for all jobs on it: a size such as 8GiB (default: all of its memory, if known); ignored on "+
			"the controller's own device")
	f.host.register(c)
}

// check finds out before the device is opened whether the flags make sense.
func (f *bringFlags) check() error {
	if f.name != "" {
		if err := wire.CheckDevice(f.name); err != nil {
			return fmt.Errorf("--name: %w", err)
		}
	}
	if f.budget == "" {
		return nil
	}
	budget, err := parseBytes("--budget", f.budget)
	if err == nil && budget < graph.KiB {
		err = fmt.Errorf("--budget %s: %d bytes are enough for no job: give a unit, such as 8GiB", f.budget,
			int64(budget))
	}
	return err
}

// brings describes the device of an executor to its controller.
func (f *bringFlags) brings(d device.Device, p *planFlags, link linkRate) (*wire.Device, error) {
	host, err := f.host.limit(p.simulated())
	if err != nil {
		return nil, err
	}
	on := planner.Describe(d, planner.Roofline(d.Facts()))
	b := &wire.Device{Name: cmp.Or(f.name, deviceName(p.device)), Model: p.device, Identity: d.Identity(),
		Align: on.Align, Page: on.Page, Context: p.context, Budget: d.Facts().Memory,
		HostMemory: host, Facts: d.Facts(), Limited: link.rate > 0}
	if b.Host, err = os.Hostname(); err != nil {
		return nil, err
	}
	if f.budget != "" {
		if b.Budget, err = parseBytes("--budget", f.budget); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// describer describes devices of other machines for plans, by a device of their kind that is opened here. The methods
// may be called by several goroutines.
type describer struct {
	own device.Device // The controller's own device; nil: it has none.

	mu  sync.Mutex
	cpu device.Device // opened to describe others; nil: none has been
}

// close closes what was opened to describe others.
func (s *describer) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cpu != nil {
		s.cpu.Close()
	}
	s.cpu = nil
}

// describe is what plans have to know of a device. Its latencies are those of the roofline until they are measured.
func (s *describer) describe(b *wire.Device) (planner.Device, error) {
	like, err := s.standIn(b)
	if err != nil {
		return planner.Device{}, err
	}
	on := planner.Describe(like, planner.Roofline(b.Facts))
	on.Page = b.Page
	return on, nil
}

// standIn is a device here with the operators of one elsewhere.
func (s *describer) standIn(b *wire.Device) (device.Device, error) {
	described := elsewhere{facts: b.Facts, identity: b.Identity, align: b.Align}
	kind, _, _ := strings.Cut(b.Model, ":")
	switch {
	case s.own != nil && s.own.Identity() == b.Identity:
		described.Device = s.own
		return described, nil
	case kind == "sim":
		described.Device = sim.New(b.Facts, sim.Options{})
		return described, nil
	case kind != "cpu":
		return nil, fmt.Errorf("this controller cannot plan for %s: start it on a machine with such a device, with "+
			"--device %s", b.Identity, kind)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cpu == nil {
		d, err := cpu.New(cpu.Options{})
		if err != nil {
			return nil, err
		}
		s.cpu = d
	}
	described.Device = s.cpu
	described.first = described.Device.Identity() != b.Identity
	return described, nil
}

// elsewhere is a device of another machine as one here executes it.
type elsewhere struct {
	device.Device
	facts    cost.Facts
	identity string
	align    graph.Bytes
	first    bool // the library of matrix products is another: only the first variant is sure to be there
}

func (d elsewhere) Facts() cost.Facts  { return d.facts }
func (d elsewhere) Identity() string   { return d.identity }
func (d elsewhere) Align() graph.Bytes { return d.align }

func (d elsewhere) Variants(g *graph.Graph, op graph.OpID) device.Variants {
	all := d.Device.Variants(g, op)
	if d.first && len(all) > 1 {
		return all[:1]
	}
	return all
}

// errNoDevice is returned for what a controller without a device of its own cannot be told.
var errNoDevice = errors.New("with --device none the controller has no device: give it to tensile executor")
