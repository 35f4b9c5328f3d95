package devicetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// crew runs jobs on a device and judges what it reports.
type crew struct {
	t     testing.TB
	d     device.Device
	seats []*seat
}

// seat is a job with what was issued to it and what has ended.
type seat struct {
	device.Job
	c      *crew
	g      *graph.Graph
	feed   *feed
	issued []issue
	left   int // commands that have not ended
	events []device.Event
}

type issue struct {
	program   *program.Program
	section   *program.Section
	iteration int
	drain     bool
}

// open opens a job whose host slots, if there are any, hold the first content of the persistent storages.
func (c *crew) open(g *graph.Graph) *seat {
	c.t.Helper()
	name := fmt.Sprintf("%s.%d", g.Name, len(c.seats))
	f := &feed{g: g, types: g.DTypes(), inputs: map[delivery]int{}, outputs: map[delivery][][]float32{}}
	j, err := c.d.Open(g, device.JobOptions{Name: name, Seed: 11, Input: f.input, Output: f.output})
	if err != nil {
		c.t.Fatalf("open %s: %v", name, err)
	}
	s := &seat{Job: j, c: c, g: g, feed: f}
	c.seats = append(c.seats, s)
	for _, storage := range g.Storages {
		if storage.Role.Persistent() {
			fill(j.Host(storage.ID), storage)
		}
	}
	return s
}

// load binds a program to the job and gives it its arena.
func (s *seat) load(p proof.Proven) *program.Program {
	s.c.t.Helper()
	if err := s.Load(p); err != nil {
		s.c.t.Fatalf("load a program of %s: %v", s.g.Name, err)
	}
	s.reserve(p.Program().Arena)
	return p.Program()
}

func (s *seat) reserve(arena graph.Bytes) {
	s.c.t.Helper()
	if err := s.Reserve(arena); err != nil {
		s.c.t.Fatalf("reserve %d bytes: %v", arena, err)
	}
	if touched := s.Touched(); touched != 0 {
		s.c.t.Errorf("%d bytes are touched after Reserve", touched)
	}
}

func (s *seat) issue(p *program.Program, section *program.Section, iteration int, drain bool) {
	s.issued = append(s.issued, issue{p, section, iteration, drain})
	s.left += len(section.Commands)
	s.Issue(section, 0, len(section.Commands), iteration, drain)
}

// train issues a program for the iterations [from, to), from Home to Home, and does not wait.
func (s *seat) train(p *program.Program, from, to int) {
	s.issue(p, &p.Prologue, from, true)
	for i := from; i < to; i++ {
		s.issue(p, &p.Body, i, i == from)
	}
	s.issue(p, &p.Epilogue, to, true)
}

// wait takes events until everything issued has ended, and checks their order. All sections are issued whole.
func (c *crew) wait() {
	c.t.Helper()
	c.rest()
	for _, s := range c.seats {
		s.verify()
	}
}

// rest takes events until everything issued has ended.
func (c *crew) rest() {
	c.t.Helper()
	left := func() (n int) {
		for _, s := range c.seats {
			n += s.left
		}
		return n
	}
	for left() > 0 {
		events, err := c.d.Next(c.t.Context(), nil)
		if err != nil {
			c.t.Fatalf("with %d commands to end: %v", left(), err)
		}
		if len(events) == 0 {
			c.t.Fatalf("Next returned no events, with %d commands to end and no wake", left())
		}
		for _, e := range events {
			c.take(e)
		}
	}
}

func (c *crew) take(e device.Event) {
	c.t.Helper()
	if now := c.d.Now(); e.End > now {
		c.t.Errorf("an event of %v at %v", e.End, now)
	}
	for _, s := range c.seats {
		if s.Job == e.Job {
			s.events = append(s.events, e)
			s.left--
			return
		}
	}
	c.t.Fatalf("an event of no job: %+v", e)
}

// leave closes a job and forgets it.
func (s *seat) leave() {
	s.c.t.Helper()
	if err := s.Close(); err != nil {
		s.c.t.Errorf("close a job: %v", err)
	}
	s.c.seats = slices.DeleteFunc(s.c.seats, func(other *seat) bool { return other == s })
}

// close ends the jobs that are left and the device.
func (c *crew) close() {
	c.t.Helper()
	for len(c.seats) > 0 {
		c.seats[0].leave()
	}
	if err := c.d.Close(); err != nil {
		c.t.Errorf("close the device: %v", err)
	}
}

// makespan is the time from the start of the first command to the end of the last.
func (s *seat) makespan() time.Duration {
	first, last := s.events[0].Ready, s.events[0].End
	for _, e := range s.events {
		first, last = min(first, e.Ready), max(last, e.End)
	}
	return last - first
}

// delivery is an input or output in an iteration.
type delivery struct {
	iteration int
	storage   graph.StorageID
}

// feed is a job's data on the host: every input is a function of iteration, storage and place. Indices are below 3.
type feed struct {
	g       *graph.Graph
	types   []graph.DType
	mu      sync.Mutex // the device calls from where it likes
	inputs  map[delivery]int
	outputs map[delivery][][]float32
}

func (f *feed) input(iteration int, s graph.StorageID, memory device.Memory) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inputs[delivery{iteration, s}]++
	if f.types[s] == graph.Int64 {
		for i, to := 0, memory.Int64(); i < len(to); i++ {
			to[i] = int64((iteration + i) % 3)
		}
		return
	}
	for i, to := 0, memory.Float32(); i < len(to); i++ {
		to[i] = inputAt(f.g.Storages[s].Name, iteration, i)
	}
}

func (f *feed) output(iteration int, s graph.StorageID, from []float32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := delivery{iteration, s}
	f.outputs[at] = append(f.outputs[at], append([]float32(nil), from...))
}

// inputAt is the content of the inputs: labels are classes from 0 to 2.
func inputAt(name string, iteration, i int) float32 {
	if name == "labels" {
		return float32((iteration + i) % 3)
	}
	return scatter(uint64(iteration)<<32 + uint64(i) + 1)
}

// scatter returns a number in [-1, 1) that looks random.
func scatter(key uint64) float32 {
	key *= 0x9e3779b97f4a7c15
	key = (key ^ key>>29) * 0xbf58476d1ce4e5b9
	return float32(int64(key)>>40) / (1 << 23)
}

// fill writes the first content of a persistent storage.
func fill(to []float32, s graph.Storage) {
	for i := range to {
		switch s.Init.Kind {
		case graph.InitZero:
			to[i] = 0
		case graph.InitOne:
			to[i] = 1
		case graph.InitNormal:
			to[i] = float32(s.Init.Scale) * scatter(uint64(s.ID+1)<<40+uint64(i))
		}
	}
}
