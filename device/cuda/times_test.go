package cuda_test

import (
	"slices"
	"testing"
	"time"

	"tensile/cost"
	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/internal/fakecuda"
	"tensile/program"
)

// seat is a job on a dry device, with a program.
type seat struct {
	j device.Job
	p *program.Program
}

func sit(t *testing.T, d *cuda.Device, proven program.Proven) seat {
	t.Helper()
	p := proven.Program()
	j, err := d.Open(p.Graph, device.JobOptions{Name: "job", Input: func(int, graph.StorageID, device.Memory) {},
		Output: func(int, graph.StorageID, []float32) {}})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Load(proven); err != nil {
		t.Fatal(err)
	}
	if err := j.Reserve(p.Arena); err != nil {
		t.Fatal(err)
	}
	return seat{j, p}
}

// told is an event, and when the host got it.
type told struct {
	device.Event
	at time.Duration
}

// past is what has ended, by job, section, iteration and index.
type past map[device.Event]told

// wait waits until an iteration of a section has ended.
func (p past) wait(t *testing.T, d *cuda.Device, s seat, section *program.Section, iteration int) {
	t.Helper()
	for {
		ended := 0
		for e := range p {
			if e.Job == s.j && e.Section == section && e.Iteration == iteration {
				ended++
			}
		}
		if ended == len(section.Commands) {
			return
		}
		events, err := d.Next(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			p[device.Event{Job: e.Job, Section: e.Section, Iteration: e.Iteration, Index: e.Index}] = told{e, d.Now()}
		}
	}
}

// of returns the event of a command of a body.
func (p past) of(s seat, iteration, index int) told {
	return p[device.Event{Job: s.j, Section: &s.p.Body, Iteration: iteration, Index: index}]
}

// kernel returns the event of an op in a body.
func (p past) kernel(s seat, iteration int, op string) told {
	return p.of(s, iteration, slices.IndexFunc(s.p.Body.Commands, func(c program.Command) bool {
		return c.Kind == program.Kernel && s.p.Graph.Ops[c.Op].Name == op
	}))
}

// An op of a lane that stood still starts when it is put on its stream, and takes as long as it takes the device.
func TestTimes(t *testing.T) {
	d := open(t, fakecuda.New(fakecuda.Options{Dry: true,
		Latency: func(l cuda.Launch) time.Duration { return time.Millisecond }}))
	defer closed(t, d)
	var seats []seat
	for _, weights := range []int{12, 2} {
		g := sums(t, "first", weights)
		seats = append(seats, sit(t, d, devicetest.Build(t, d, g, devicetest.KeepAll(g), program.Options{})))
	}
	long, short := seats[0], seats[1]
	ended := past{}
	short.j.Issue(&short.p.Prologue, 0, len(short.p.Prologue.Commands), 0, true)
	ended.wait(t, d, short, &short.p.Prologue, 0)
	long.j.Issue(&long.p.Prologue, 0, len(long.p.Prologue.Commands), 0, true) // 48 ms
	short.j.Issue(&short.p.Body, 0, len(short.p.Body.Commands), 0, false)
	ended.wait(t, d, short, &short.p.Body, 0)
	ended.wait(t, d, long, &long.p.Prologue, 0)
	now := d.Now()
	short.j.Issue(&short.p.Body, 0, len(short.p.Body.Commands), 1, false)
	ended.wait(t, d, short, &short.p.Body, 1)
	for _, op := range []string{"first", "sum1"} {
		e := ended.kernel(short, 1, op)
		if got := e.End - e.Start; got < 1000*time.Microsecond || got > 1020*time.Microsecond {
			t.Errorf("%s took %v, want a millisecond", op, got)
		}
	}
	last, first := ended.kernel(short, 0, "end"), ended.kernel(short, 1, "first")
	if last.End > now-30*time.Millisecond {
		t.Fatalf("the first body has ended at %v, the other job's prologue at %v", last.End, now)
	}
	if first.Ready != last.End || first.Start < now {
		t.Errorf("an op that is issued at %v, on a lane that was free from %v on, was ready at %v and starts at %v",
			now,
			last.End, first.Ready, first.Start)
	}
}

// A body is issued in parts. What a lane has done of a part is told when it has done all of it. Copies of a prologue,
// and what the host lane waits for, are told at once.
func TestTold(t *testing.T) {
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	facts.Out.Rate, facts.In.Rate = 1e6, 1e6 // a weight takes 120 microseconds
	d := open(t, fakecuda.New(fakecuda.Options{Facts: facts, Dry: true,
		Latency: func(cuda.Launch) time.Duration { return time.Microsecond }}))
	defer closed(t, d)
	g := devicetest.Tiny()
	s := sit(t, d, devicetest.Build(t, d, g, devicetest.Swapped(g), program.Options{}))
	s.j.Issue(&s.p.Prologue, 0, len(s.p.Prologue.Commands), 0, true)
	ended := past{}
	ended.wait(t, d, s, &s.p.Prologue, 0)
	const atOnce = 10 * time.Microsecond
	for e, told := range ended {
		if late := told.at - told.End; late > atOnce {
			t.Errorf("copy %d of the prologue has ended at %v and is told at %v", e.Index, told.End, told.at)
		}
	}
	if len(ended) < 2 {
		t.Errorf("a prologue of %d copies", len(ended))
	}
	body := s.p.Body.Commands
	cuts := []int{0, len(body) / 3, 2 * len(body) / 3, len(body)}
	for i := range cuts[1:] {
		s.j.Issue(&s.p.Body, cuts[i], cuts[i+1], 0, false)
	}
	ended.wait(t, d, s, &s.p.Body, 0)
	read := 0
	for i, to := range cuts[1:] {
		last := make(map[program.Stream]told)
		for index, c := range slices.Backward(body[:to]) {
			if index < cuts[i] {
				break
			}
			e := ended.of(s, 0, index)
			if _, ok := last[c.Stream]; !ok {
				last[c.Stream] = e
			}
			if end := last[c.Stream].End; e.at > end+atOnce {
				t.Errorf("part %d: what command %d has done is told at %v, and its lane's last has ended at %v", i, index,
					e.at, end)
			}
			if c.Kind == program.Out && g.Storages[c.Storage].Role == graph.Output {
				read++
				if late := e.at - e.End; late > atOnce {
					t.Errorf("the host can read %s at %v and is told at %v", g.Storages[c.Storage].Name, e.End, e.at)
				}
			}
		}
	}
	if read == 0 {
		t.Error("no outputs are read")
	}
}
