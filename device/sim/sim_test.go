package sim_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tensile/device"
	"tensile/device/devicetest"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
)

func TestDevice(t *testing.T) {
	facts, err := cost.Device("v100")
	if err != nil {
		t.Fatal(err)
	}
	for _, noise := range []float64{0, 0.3} {
		t.Run(fmt.Sprintf("noise=%v", noise), func(t *testing.T) {
			devicetest.Run(t, func(*testing.T) device.Device { return sim.New(facts, sim.Options{Noise: noise}) })
		})
	}
}

// plain is a device on which an op takes 10 ns per element that it makes, a copied byte 1 ns, and a copy 3 ns more.
func plain(memory graph.Bytes, o sim.Options) *sim.Device {
	link := cost.Link{Rate: 1e9, Latency: 3}
	o.Latency = func(g *graph.Graph, op graph.OpID) time.Duration {
		var n int
		for _, t := range g.Ops[op].Outputs {
			n += g.Tensors[t].Shape.Elements()
		}
		return time.Duration(10 * n)
	}
	return sim.New(cost.Facts{Name: "plain", Out: link, In: link, Memory: memory}, o)
}

// chain is y = relu(x), z = relu(y) over n elements; z is an output.
func chain(t testing.TB, n int) *graph.Graph {
	b := graph.NewBuilder("chain")
	x := b.Input("x", graph.Anything, graph.Float32, graph.Shape{n})
	y := b.Op("y", graph.ReLU, graph.Attrs{}, x)[0]
	b.Output(b.Op("z", graph.ReLU, graph.Attrs{}, y)[0])
	g, err := b.Graph()
	if err == nil {
		err = g.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// section makes a section of commands: kernels run op 0, copies move four bytes; addresses are as good as any.
func section(commands ...program.Command) *program.Section {
	s := &program.Section{Counts: make([]int, program.Units)}
	for _, c := range commands {
		c.Stream = program.Stream(c.Kind.Unit())
		switch c.Kind {
		case program.Kernel:
			if c.Inputs == nil {
				c.Inputs, c.Outputs = make([]program.Address, 1), make([]program.Address, 1)
			}
		case program.Out, program.In:
			c.Bytes = max(c.Bytes, 4)
		}
		s.Commands = append(s.Commands, c)
		s.Counts[c.Stream]++
	}
	return s
}

func kernel(waits ...program.Point) program.Command {
	return program.Command{Kind: program.Kernel, Waits: waits}
}

func copies(kind program.Kind, bytes graph.Bytes, hold time.Duration, waits ...program.Point) program.Command {
	return program.Command{Kind: kind, Bytes: bytes, Hold: hold, Waits: waits}
}

func read(waits ...program.Point) program.Command {
	return program.Command{Kind: program.Read, Waits: waits}
}

// at is a point of the stream that loose runs on a unit.
func at(u program.Unit, count int) program.Point {
	return program.Point{Stream: program.Stream(u), Count: count}
}

// loose returns a program of no commands for sections that are of none.
func loose(g *graph.Graph) *program.Program {
	return &program.Program{Graph: g, Plan: new(plan.Plan), Streams: []program.Unit{program.Compute,
		program.CopyOut, program.CopyIn,
		program.Host},
		Regions: []program.Memory{program.Arena, program.HostMemory}}
}

// open opens a job with an arena of 4 KiB and a loose program.
func open(t testing.TB, d *sim.Device, g *graph.Graph, name string) device.Job {
	t.Helper()
	j, err := d.Open(g, device.JobOptions{Name: name})
	if err == nil {
		err = j.Reserve(4096)
	}
	if err != nil {
		t.Fatal(err)
	}
	sim.Bind(j, loose(g))
	return j
}

// events takes n events.
func events(t testing.TB, d *sim.Device, n int) []device.Event {
	t.Helper()
	var all []device.Event
	for len(all) < n {
		some, err := d.Next(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	if len(all) != n {
		t.Fatalf("%d events, want %d", len(all), n)
	}
	return all
}

// trace prints a line per event; names gives the jobs'.
func trace(all []device.Event, names map[device.Job]string) string {
	var b strings.Builder
	for _, e := range all {
		c := e.Section.Commands[e.Index]
		fmt.Fprintf(&b, "%s %d.%d %-6s", names[e.Job], e.Iteration, e.Index, c.Kind)
		if e.Ready != e.Start {
			fmt.Fprintf(&b, " held %v", int64(e.Ready))
		}
		fmt.Fprintf(&b, " %d..%d\n", int64(e.Start), int64(e.End))
	}
	return b.String()
}

func TestNextReportsAnInstantAtOnce(t *testing.T) {
	d := plain(0, sim.Options{})
	g := chain(t, 1)
	s := section(program.Command{Kind: program.Load}, copies(program.In, 7, 0, at(program.Host, 1)), kernel(),
		copies(program.Out, 4, 0, at(program.Compute, 1)), read(at(program.CopyOut, 1)))
	sim.Issue(open(t, d, g, "a"), s, 0, false)
	sim.Issue(open(t, d, g, "b"), s, 0, false)
	var got []string
	for range 3 {
		some, err := d.Next(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprint(int64(d.Now()), ":")
		for _, e := range some {
			line += " " + e.Section.Commands[e.Index].Kind.String()
		}
		got = append(got, line)
	}
	// All is shared by two: the kernels end after 2*10 ns, the copies in after 2*10 ns as well, the copies out 2*7
	// later.
	want := "[0: load load 20: kernel in kernel in 34: out out read read]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestDeadlockNamesLaneAndWait(t *testing.T) {
	d := plain(0, sim.Options{})
	j := open(t, d, chain(t, 1), "a")
	sim.Issue(j, section(kernel(), copies(program.Out, 4, time.Hour, at(program.CopyIn, 1)),
		copies(program.In, 4, 0, at(program.CopyOut, 1))), 5, false)
	events(t, d, 1)
	_, err := d.Next(t.Context(), nil)
	want := `job "a" stands still in iteration 5: command 1 of its section, in lane out, waits for in:1 and lane in ` +
		`has ended 0 there`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	late := plain(0, sim.Options{})
	sim.Issue(open(t, late, chain(t, 1), "a"), section(kernel(at(program.CopyIn, 9))), 0, false)
	if _, err := late.Next(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "waits for in:9") {
		t.Errorf("a wait for a command that is not there: %v", err)
	}
}

func TestCancelWithWork(t *testing.T) {
	d := plain(0, sim.Options{})
	sim.Issue(open(t, d, chain(t, 1), "a"), section(kernel()), 0, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if some, err := d.Next(ctx, nil); len(some) > 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d events and error %v", len(some), err)
	}
	if events(t, d, 1)[0].End != 10 {
		t.Error("the work was lost")
	}
}

// Whoever looks ahead has the device find out what has ended. If that job is closed before it is told, it is not told.
func TestCloseAfterAhead(t *testing.T) {
	d := plain(0, sim.Options{})
	a, b := open(t, d, chain(t, 1), "a"), open(t, d, chain(t, 1), "b")
	for _, j := range []device.Job{a, b} {
		sim.Issue(j, section(read()), 0, false)
	}
	if at, ok := d.NextTime(); at > 0 || !ok {
		t.Fatalf("the device is ahead of %v, %v: its events are to wait for Next", at, ok)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if told, err := d.Next(t.Context(), nil); err != nil || len(told) != 1 || told[0].Job != b {
		t.Errorf("after job a is closed %d events are told, and error %v; want that of job b", len(told), err)
	}
}

func TestMemory(t *testing.T) {
	d := plain(8192, sim.Options{})
	a, err := d.Open(chain(t, 1), device.JobOptions{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, d, chain(t, 1), "b")
	if err := a.Reserve(4096); err != nil {
		t.Error(err)
	}
	err = a.Reserve(4608)
	want := `sim: reserve 4.5KiB for job "a": 4KiB of the 8KiB of sim:plain are free; give the job a smaller budget`
	if err == nil || err.Error() != want {
		t.Errorf("too much: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := a.Reserve(8192); err != nil {
		t.Errorf("after the other job is closed: %v", err)
	}
}

func TestPanics(t *testing.T) {
	g := chain(t, 1)
	for want, f := range map[string]func(d *sim.Device, j device.Job){
		"sim: Reserve of job \"a\" with 1 commands in lane compute": func(d *sim.Device, j device.Job) {
			sim.Issue(j, section(kernel()), 0, false)
			j.Reserve(512)
		},
		"sim: Reserve(100) of job \"a\": not a multiple of 512": func(d *sim.Device, j device.Job) { j.Reserve(100) },
		"sim: Reserve(-512)": func(d *sim.Device, j device.Job) { j.Reserve(-512) },
		"sim: Load of job \"a\" with 1 commands in lane compute": func(d *sim.Device, j device.Job) {
			sim.Issue(j, section(kernel()), 0, false)
			j.Load(proven(t, d, g))
		},
		"uses 5120 bytes of an arena of 4096": func(d *sim.Device, j device.Job) {
			p := loose(g)
			p.Arena = 5120
			sim.Bind(j, p)
			j.Issue(&p.Body, 0, len(p.Body.Commands), 0, false)
		},
		"a section that is not of the program": func(d *sim.Device, j device.Job) {
			j.Issue(section(kernel()), 0, 1, 0, false)
		},
		"sim: Issue to job \"a\", which is closed": func(d *sim.Device, j device.Job) {
			j.Close()
			j.Issue(section(kernel()), 0, 1, 0, false)
		},
		"sim: Reserve of job \"a\", which is closed": func(d *sim.Device, j device.Job) {
			j.Close()
			j.Reserve(512)
		},
		"sim: New with a noise of 2": func(*sim.Device, device.Job) {
			sim.New(cost.Facts{},
				sim.Options{Noise: 2})
		},
		"sim: New with latencies mispredicted by -1": func(*sim.Device, device.Job) {
			sim.New(cost.Facts{}, sim.Options{Mispredicted: -1})
		},
		"sim: New of \"\" without a latency": func(*sim.Device, device.Job) { sim.New(cost.Facts{}, sim.Options{}) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("got panic %q, want %q", got, want)
				}
			}()
			d := plain(0, sim.Options{})
			f(d, open(t, d, g, "a"))
		}()
	}
}

// proven is a program of a graph that keeps all on the device.
func proven(t testing.TB, d *sim.Device, g *graph.Graph) proof.Proven {
	return devicetest.Build(t, d, g, devicetest.KeepAll(g), compile.Options{})
}

func TestClosed(t *testing.T) {
	d := plain(0, sim.Options{})
	sim.Issue(open(t, d, chain(t, 1), "a"), section(kernel()), 0, false)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := d.Next(t.Context(), nil); err == nil {
		t.Error("Next works on a closed device")
	}
	if _, err := d.Open(chain(t, 1), device.JobOptions{}); err == nil {
		t.Error("Open works on a closed device")
	}
}
