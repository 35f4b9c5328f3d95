package cpu

import (
	"testing"
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/plan"
	"tensile/plan/program"
)

// open opens a device and closes it when the test is over.
func open(t *testing.T) *Device {
	t.Helper()
	d, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// bed is a job whose host lane does what the test says, beside all that it reported.
type bed struct {
	*job
	t      *testing.T
	at     int            // host lane's commands so far, counted by that lane
	loads  map[int]func() // what the host lane's nth command does, by n; others do nothing
	events []device.Event
}

// storages of the graph that beds have: an input, a parameter and what an op makes of a part of it.
const (
	input graph.StorageID = iota
	parameter
	made
)

// elements is the number of elements of the input and of the parameter.
const elements = 1 << 16

func lay(t *testing.T, d *Device, loads map[int]func()) *bed {
	t.Helper()
	g := graph.NewBuilder("bed")
	g.Input("input", graph.Anything, graph.Float32, graph.Shape{elements})
	w := g.Persistent("parameter", graph.Parameter, graph.Shape{elements}, graph.Init{Kind: graph.InitZero})
	g.Op("made", graph.ReLU, graph.Attrs{}, g.View("view", w, 0, graph.Shape{64}))
	built, err := g.Graph()
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, loads: loads}
	place, err := d.Open(built, device.JobOptions{Name: "bed", Input: func(int, graph.StorageID, device.Memory) {
		if b.at++; b.loads[b.at] != nil {
			b.loads[b.at]()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	b.job = place.(*job)
	b.bind(built)
	return b
}

// bind binds a program without commands, for sections that no proof lets pass.
func (b *bed) bind(g *graph.Graph) {
	b.t.Helper()
	p := &program.Program{Graph: g, Plan: new(plan.Plan), Streams: []program.Unit{program.Compute,
		program.CopyOut, program.CopyIn,
		program.Host},
		Regions: []program.Memory{program.Arena, program.HostMemory}}
	ids, err := program.Match(g, g)
	if err == nil {
		err = b.job.bind(p, ids)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// issue issues a section that is of no program.
func (b *bed) issue(s *program.Section, iteration int, drain bool) {
	b.job.issue(s, 0, len(s.Commands), iteration, drain)
}

func (b *bed) reserve(arena graph.Bytes) {
	b.t.Helper()
	if err := b.Reserve(arena); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) close() {
	b.t.Helper()
	if err := b.Close(); err != nil {
		b.t.Error(err)
	}
}

// next takes events until n more of the beds on the device have ended.
func next(t *testing.T, d *Device, n int, beds ...*bed) {
	t.Helper()
	for n > 0 {
		events, err := d.Next(t.Context(), nil)
		if err != nil {
			t.Fatalf("with %d commands to end: %v", n, err)
		}
		for _, e := range events {
			for _, b := range beds {
				if e.Job == b.job {
					b.events = append(b.events, e)
					n--
				}
			}
		}
	}
}

// section makes a section of commands.
func section(commands ...program.Command) *program.Section {
	s := &program.Section{Commands: commands, Counts: make([]int, program.Units)}
	for i := range commands {
		c := &commands[i]
		c.Stream = program.Stream(c.Kind.Unit())
		s.Counts[c.Stream]++
	}
	return s
}

func load(waits ...program.Point) program.Command {
	return program.Command{Kind: program.Load, Slot: -1, Storage: input, Waits: waits}
}

// in copies the first bytes of a storage's host slot to the start of the arena, out copies them back.
func (b *bed) in(s graph.StorageID, size graph.Bytes, hold time.Duration, waits ...program.Point) program.Command {
	return program.Command{Kind: program.In, Storage: s, Bytes: size, Hold: hold, Waits: waits,
		Device: program.Address{}, Host: program.Address{Region: program.Region(program.HostMemory),
			Offset: b.slots[s]}}
}

func (b *bed) out(s graph.StorageID, size graph.Bytes, hold time.Duration, waits ...program.Point) program.Command {
	c := b.in(s, size, hold, waits...)
	c.Kind = program.Out
	return c
}
