package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/text"
	"tensile/plan/program"
)

// Stall is for how long compute waits, in one iteration, for one kind of command of one storage.
type Stall struct {
	Kind    string        `json:"kind"`              // the program.Kind of the command: in, out, load, ...
	Storage string        `json:"storage,omitempty"` // "": a command of no storage
	Bytes   graph.Bytes   `json:"bytes"`             // the size of the storage
	Op      string        `json:"op"`                // that waits, the longest if several do
	Stall   time.Duration `json:"stall_ns"`
	Takes   time.Duration `json:"takes_ns"` // the longest of those commands
}

// String is the stall in words, without its length.
func (s Stall) String() string {
	size := fmt.Sprintf("%s (%s)", s.Storage, s.Bytes)
	takes := text.Duration(s.Takes)
	switch s.Kind {
	case program.In.String():
		return fmt.Sprintf("%s waits until %s is on the device, a copy of %v", s.Op, size, takes)
	case program.Out.String():
		return fmt.Sprintf("%s waits until %s has left, a copy of %v, for its place", s.Op, size, takes)
	case program.Load.String():
		return fmt.Sprintf("%s waits until the loader has filled %s, in %v", s.Op, size, takes)
	case "":
		return fmt.Sprintf("%s waits for what was issued before", s.Op)
	}
	return fmt.Sprintf("%s waits for the %s of %s, which takes %v", s.Op, s.Kind, size, takes)
}

// Stalls returns the stalls of an iteration in the steady state of a program whose commands take so long, the longest
// first. They add up to those of the timing that comes with them, but for the commands that make no kernel wait.
func Stalls(p *program.Program, d program.Durations) ([]Stall, program.Timing) {
	type cause struct {
		kind    string
		storage graph.StorageID
	}
	t := program.Time(p, d)
	lanes := make([][]int, len(p.Streams)) // commands of each stream, by index
	for i, c := range p.Body.Commands {
		lanes[c.Stream] = append(lanes[c.Stream], i)
	}
	found := make(map[cause]*Stall)
	longest := make(map[cause]time.Duration)
	var list []*Stall
	var free time.Duration
	for i, c := range p.Body.Commands {
		if c.Kind.Unit() != program.Compute {
			continue
		}
		stall := t.Start[i] - free
		free = t.End[i]
		if stall <= 0 || c.Kind != program.Kernel {
			continue
		}
		why := cause{storage: -1}
		var takes time.Duration
		if by := longestWait(&c, lanes, &t); by >= 0 {
			w := &p.Body.Commands[by]
			why.kind, takes = w.Kind.String(), t.End[by]-t.Start[by]
			if !w.Kind.Executes() {
				why.storage = w.Storage
			}
		}
		s := found[why]
		if s == nil {
			s = &Stall{Kind: why.kind}
			if why.storage >= 0 {
				s.Storage, s.Bytes = p.Graph.Storages[why.storage].Name, p.Graph.Storages[why.storage].Bytes
			}
			found[why], list = s, append(list, s)
		}
		s.Stall, s.Takes = s.Stall+stall, max(s.Takes, takes)
		if stall > longest[why] {
			longest[why], s.Op = stall, p.Graph.Ops[c.Op].Name
		}
	}
	stalls := make([]Stall, len(list))
	for i, s := range list {
		stalls[i] = *s
	}
	slices.SortStableFunc(stalls, func(a, b Stall) int { return cmp.Compare(b.Stall, a.Stall) })
	return stalls, t
}

// longestWait is the command of a body for which another waits longest: by index, in this iteration or the one before;
// -1 if it waits for none.
func longestWait(c *program.Command, lanes [][]int, t *program.Timing) int {
	by, last := -1, time.Duration(-1<<63)
	for _, w := range c.Waits {
		lane := lanes[w.Stream]
		at, before := w.Count-1, time.Duration(0)
		if at < 0 { // in the iteration before
			at, before = at+len(lane), t.Iteration
		}
		if at < 0 || at >= len(lane) {
			continue
		}
		if end := t.End[lane[at]] - before; end > last {
			by, last = lane[at], end
		}
	}
	return by
}
