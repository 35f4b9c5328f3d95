package cuda_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// seat is a job on a dry device, with a program.
type seat struct {
	j device.Job
	p *program.Program
}

func sit(t *testing.T, d *cuda.Device, proven proof.Proven) seat {
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
		seats = append(seats, sit(t, d, devicetest.Build(t, d, g, devicetest.KeepAll(g), compile.Options{})))
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

// pass lets milliseconds pass in which no job is told of anything.
func pass(t *testing.T, driver *fakecuda.Driver) {
	t.Helper()
	const size = 4 * graph.GiB
	s, noStream := driver.NewStream()
	a, noMemory := driver.Alloc(size)
	if err := errors.Join(noStream, noMemory, driver.Fill(s, a, 0, int(size/4)), driver.Synchronize(),
		driver.Release(a), driver.DestroyStream(s)); err != nil {
		t.Fatal(err)
	}
}

// A part is issued when the lanes have stood still for a while, which the host was told of late: its ops take as long
// as they take the device.
func TestTimesOfParts(t *testing.T) {
	driver := fakecuda.New(fakecuda.Options{Dry: true,
		Latency: func(l cuda.Launch) time.Duration { return time.Millisecond }})
	d := open(t, driver)
	defer closed(t, d)
	g := sums(t, "first", 4)
	s := sit(t, d, devicetest.Build(t, d, g, devicetest.KeepAll(g), compile.Options{}))
	ended := past{}
	s.j.Issue(&s.p.Prologue, 0, len(s.p.Prologue.Commands), 0, true)
	ended.wait(t, d, s, &s.p.Prologue, 0)
	s.j.Issue(&s.p.Body, 0, 2, 0, false)
	if err := driver.Synchronize(); err != nil {
		t.Fatal(err)
	}
	pass(t, driver)
	issued := d.Now()
	s.j.Issue(&s.p.Body, 2, len(s.p.Body.Commands), 0, false)
	ended.wait(t, d, s, &s.p.Body, 0)
	for _, op := range []string{"first", "sum1", "sum2"} {
		if e := ended.kernel(s, 0, op); e.End-e.Start > 1020*time.Microsecond {
			t.Errorf("%s took %v, want a millisecond", op, e.End-e.Start)
		}
	}
	if before, after := ended.kernel(s, 0, "sum1"), ended.kernel(s, 0, "sum2"); before.End >= issued ||
		after.Start < issued {
		t.Errorf("the first part has ended at %v, the second is issued at %v and begins at %v", before.End, issued,
			after.Start)
	}
}

// atOnce is how late the host may learn of something in a dry driver.
const atOnce = 10 * time.Microsecond

// slow opens a dry device with a link on which a weight of devicetest.Tiny takes 120 microseconds, and ops that take
// one.
func slow(t *testing.T) *cuda.Device {
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	facts.Out.Rate, facts.In.Rate = 1e6, 1e6
	return open(t, fakecuda.New(fakecuda.Options{Facts: facts, Dry: true,
		Latency: func(cuda.Launch) time.Duration { return time.Microsecond }}))
}

// A body is issued in parts. What a lane has done of a part is told when it has done all of it, and copies of a
// prologue are told of at once.
func TestTold(t *testing.T) {
	d := slow(t)
	defer closed(t, d)
	s := sit(t, d, swapped(t, d))
	s.j.Issue(&s.p.Prologue, 0, len(s.p.Prologue.Commands), 0, true)
	ended := past{}
	ended.wait(t, d, s, &s.p.Prologue, 0)
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
	for i, to := range cuts[1:] {
		s.j.Issue(&s.p.Body, cuts[i], to, 0, false)
	}
	ended.wait(t, d, s, &s.p.Body, 0)
	for i, to := range cuts[1:] {
		last := make(map[program.Stream]time.Duration)
		for index := to - 1; index >= cuts[i]; index-- {
			lane, e := body[index].Stream, ended.of(s, 0, index)
			if _, ok := last[lane]; !ok {
				last[lane] = e.End
			}
			if e.at > last[lane]+atOnce {
				t.Errorf("part %d: what command %d has done is told at %v, and the last of its lane has ended at %v", i,
					index, e.at, last[lane])
			}
		}
	}
}

// A command of the host lane starts when what it waits for has ended, also where later copies of the same lane have
// not.
func TestHostLane(t *testing.T) {
	d := slow(t)
	defer closed(t, d)
	early := map[bool]int{} // that wait for a copy that is not its lane's last, of the same body or of the one before
	for plan := range uint64(8) {
		s := sit(t, d, randomTiny(t, d, plan))
		body := s.p.Body.Commands
		s.j.Issue(&s.p.Prologue, 0, len(s.p.Prologue.Commands), 0, true)
		for i := range 3 {
			s.j.Issue(&s.p.Body, 0, len(body), i, false)
		}
		ended := past{}
		for i := range 3 {
			ended.wait(t, d, s, &s.p.Body, i)
		}
		of := make([][]told, len(s.p.Streams)) // per stream
		for i := range 3 {
			for index, c := range body {
				e := ended.of(s, i, index)
				if c.Kind.Unit() == program.Host && i == 2 {
					free := of[c.Stream][len(of[c.Stream])-1].End
					for _, w := range c.Waits {
						before := 2*s.p.Body.Counts[w.Stream] + w.Count
						if w.Count%s.p.Body.Counts[w.Stream] != 0 {
							early[w.Count > 0]++
						}
						free = max(free, of[w.Stream][before-1].End)
					}
					if e.Start > free+atOnce {
						t.Errorf("plan %d: a %s may start at %v and starts at %v", plan, c.Kind, free, e.Start)
					}
				}
				of[c.Stream] = append(of[c.Stream], e)
			}
		}
		if err := s.j.Close(); err != nil {
			t.Error(err)
		}
	}
	if early[false] == 0 || early[true] == 0 {
		t.Errorf("nothing that is waited for is early: %v", early)
	}
}
