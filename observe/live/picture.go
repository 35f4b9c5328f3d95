package live

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tensile/executor/timeline"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/observe/report"
	"tensile/peak"
	"tensile/plan"
	"tensile/plan/program"
	"tensile/wire"
)

// Picture is a plan as it is drawn.
type Picture struct {
	// Job is the job's name.
	Job string `json:"job"`
	// Epoch numbers the plan.
	Epoch int64 `json:"epoch"`
	// Ops are the names of the op of each step.
	Ops []string `json:"ops"`
	// Before is what is on the device during each op without the plan, in bytes.
	Before []graph.Bytes `json:"before_bytes"`
	// After is what is on the device during each step with the plan, in bytes.
	After []graph.Bytes `json:"after_bytes"`
	// Arena is the size of the arena in bytes.
	Arena graph.Bytes `json:"arena_bytes"`
	// Ends are when the steps end as planned, in nanoseconds since the iteration began.
	Ends []int64 `json:"ends_ns"`
	// Iteration is how long an iteration takes as planned.
	Iteration time.Duration `json:"iteration_ns"`
	// Stall is the part of Iteration for which compute waits for copies.
	Stall time.Duration `json:"stall_ns"`
	// Bars are when storages are on the device.
	Bars []Bar `json:"bars"`
	// Storages are what the plan does with each storage.
	Storages []Storage `json:"storages"`
}

// Bar is what a lane does for a time, which begins when the compute lane has ended the iteration before.
type Bar struct {
	Lane  string        `json:"lane"` // one of Lanes
	Name  string        `json:"name"` // the name of the op or storage
	From  time.Duration `json:"from_ns"`
	To    time.Duration `json:"to_ns"`
	Bytes graph.Bytes   `json:"bytes,omitzero"` // that are copied
}

// What bars are of. Stall and gate are what compute waits for: copies, and memory that other jobs have.
const (
	Compute = "compute"
	again   = "again" // ops that are executed once more
	Out     = "out"
	In      = "in"
	Stall   = "stall"
	Gate    = "gate"
)

// Storage is what a plan does with a storage.
type Storage struct {
	// Name is the storage's name.
	Name string `json:"name"`
	// Role is what it is for.
	Role graph.Role `json:"role"`
	// Bytes is its size.
	Bytes graph.Bytes `json:"bytes"`
	// Does is what the plan does with it.
	Does string `json:"does"`
	// Reason is when and why it is on the device.
	Reason string `json:"why"`
	// Peak says that it is on the device when the plan's steps need most.
	Peak bool `json:"at_peak"`
}

// PictureOf draws a proven plan whose job has a link for itself. before is what is on the device during each op without
// it ([planner.Before]).
func PictureOf(p *program.Program, before []graph.Bytes, link wire.Rates) *Picture {
	g, pl := p.Graph, p.Plan
	d := program.Durations{Steps: make([]time.Duration, len(pl.Steps)), Out: cost.Link{Rate: link.Out},
		In: cost.Link{Rate: link.In}}
	copy(d.Steps, pl.Made)
	t := program.Time(p, d)
	c := &Picture{Job: pl.Job, Epoch: pl.Epoch, Before: before, After: peak.Of(g, pl).Slots, Arena: p.Arena,
		Ends: make([]int64, len(pl.Steps)), Iteration: t.Iteration, Stall: t.Stall}
	ran := make(map[graph.OpID]bool)
	var free time.Duration
	for i, cmd := range p.Body.Commands {
		b := Bar{From: t.Start[i], To: t.End[i]}
		switch cmd.Kind {
		case program.Kernel:
			if b.From > free {
				c.Bars = append(c.Bars, Bar{Lane: Stall, Name: g.Ops[cmd.Op].Name, From: free, To: b.From})
			}
			if b.Lane, b.Name = Compute, g.Ops[cmd.Op].Name; ran[cmd.Op] {
				b.Lane = again
			}
			ran[cmd.Op], free = true, b.To
			c.Ends[cmd.Slot] = b.To.Nanoseconds()
		case program.Reduce: // beside the kernels: its slot takes no time of theirs
			c.Ends[cmd.Slot] = free.Nanoseconds()
			continue
		case program.Out, program.In:
			b.Lane, b.Name, b.Bytes = Out, g.Storages[cmd.Storage].Name, cmd.Bytes
			if cmd.Kind == program.In {
				b.Lane = In
			}
		default:
			continue
		}
		c.Bars = append(c.Bars, b)
	}
	for _, s := range pl.Steps {
		c.Ops = append(c.Ops, g.Ops[s.Op].Name)
	}
	c.Storages = storages(g, pl, c.After, before)
	return c
}

// Explain adds to what is said of each storage what the planner said when it made the plan.
func (c *Picture) Explain(r *wire.Reasons) {
	for _, d := range r.All() {
		if int(d.Storage) < len(c.Storages) { // else they are of another graph
			s := &c.Storages[d.Storage]
			s.Reason += fmt.Sprintf("; %s: %s", d.Kind, d.Reason)
		}
	}
}

// Measured is what the lanes of a job did in an iteration.
type Measured struct {
	Epoch     int64         `json:"epoch"`
	Iteration int           `json:"iteration"`
	Length    time.Duration `json:"length_ns"` // from the end of the iteration before to the last op's
	Bars      []Bar         `json:"bars"`
}

// MeasuredOf reads a section that was recorded; nil if that is no iteration.
func MeasuredOf(s *timeline.Section) *Measured {
	if s.Kind != timeline.Body && s.Kind != timeline.Snapshot {
		return nil
	}
	m := &Measured{Epoch: s.Epoch, Iteration: s.Iteration}
	first := slices.IndexFunc(s.Spans, func(sp timeline.Span) bool { return sp.Does == program.Kernel.String() })
	if first < 0 {
		return nil
	}
	origin := s.Spans[first].Start - s.Spans[first].Stall - s.Spans[first].Gate
	for i := range s.Spans {
		sp := &s.Spans[i]
		b := Bar{Name: sp.Name, From: sp.Start - origin, To: sp.End - origin, Bytes: sp.Bytes}
		switch sp.Does {
		case program.Kernel.String():
			if b.Lane = Compute; sp.Again {
				b.Lane = again
			}
			gated := b.From - sp.Stall
			if sp.Gate > 0 {
				m.Bars = append(m.Bars, Bar{Lane: Gate, Name: sp.Name, From: gated - sp.Gate, To: gated})
			}
			if sp.Stall > 0 {
				m.Bars = append(m.Bars, Bar{Lane: Stall, Name: sp.Name, From: gated, To: b.From})
			}
			m.Length = max(m.Length, b.To)
		case program.Out.String():
			b.Lane = Out
		case program.In.String():
			b.Lane = In
		default:
			continue
		}
		m.Bars = append(m.Bars, b)
	}
	return m
}

// storages says what a plan does with each storage, and why.
func storages(g *graph.Graph, p *plan.Plan, after, before []graph.Bytes) []Storage {
	does := report.Treatments(g, p)
	stays := plan.StaysOf(g, p)
	on := make([][]pair, len(g.Storages))
	for _, r := range stays.Residencies {
		for _, s := range r.Spans {
			on[r.Storage] = append(on[r.Storage], pair{s.From, s.To})
		}
	}
	w := &reasoner{g: g, p: p, top: indexOfLargest(after), first: make([]int, len(g.Ops)), used: make([][]int,
		len(g.Storages))}
	for i := range w.first {
		w.first[i] = -1
	}
	for slot, s := range p.Steps {
		if w.first[s.Op] < 0 {
			w.first[s.Op] = slot
		}
		touched := slices.Concat(g.Ops[s.Op].Inputs, g.Ops[s.Op].Outputs)
		for _, t := range touched {
			at := g.Tensors[t].Storage
			if n := len(w.used[at]); n == 0 || w.used[at][n-1] != slot {
				w.used[at] = append(w.used[at], slot)
			}
		}
	}
	if w.plain = -1; len(before) == len(g.Ops) {
		w.plain = w.first[indexOfLargest(before)]
	}
	list := []Storage{}
	for _, s := range g.Storages {
		here := on[s.ID]
		slices.SortFunc(here, func(a, b pair) int { return cmp.Compare(a.from, b.from) })
		list = append(list, Storage{Name: s.Name, Role: s.Role, Bytes: s.Bytes, Does: does[s.ID],
			Reason: w.reason(s.ID, here), Peak: contains(here, w.top)})
	}
	return list
}

// pair is a span of slots, half-open.
type pair struct{ from, to int }

func contains(spans []pair, slot int) bool {
	return slices.ContainsFunc(spans, func(s pair) bool { return s.from <= slot && slot < s.to })
}

func indexOfLargest(list []graph.Bytes) (at int) {
	for i, b := range list {
		if b > list[at] {
			at = i
		}
	}
	return at
}

// reasoner words the reasons.
type reasoner struct {
	g          *graph.Graph
	p          *plan.Plan
	top, plain int // the slot of the peak with the plan and without it; plain is -1 where that is not known
	first      []int
	used       [][]int // the slots that touch each storage
}

// reason says when and why a storage is on the device. Steps count from 1, as in the picture.
func (w *reasoner) reason(s graph.StorageID, here []pair) string {
	used := w.used[s]
	if len(used) == 0 || len(here) == 0 {
		return "no step touches it"
	}
	n := len(w.p.Steps)
	line := ""
	for i, span := range here { // what lies between two stays
		from, to := span.to, n+here[0].from
		if i+1 < len(here) {
			to = here[i+1].from
		} else if !w.g.Storages[s].Role.Persistent() {
			break
		}
		if from >= to {
			continue
		}
		over := func(slot int) bool { return slot >= 0 && (from <= slot && slot < to || slot+n < to) }
		text := fmt.Sprintf("away from step %d to %d", from+1, (to-1)%n+1)
		switch {
		case over(w.plain):
			text += fmt.Sprintf(", over the peak without a plan (step %d, %s)", w.plain+1, w.describeOp(w.plain))
		case over(w.top):
			text += fmt.Sprintf(", over the peak (step %d, %s)", w.top+1, w.describeOp(w.top))
		default:
			text += ", which leaves its bytes to others"
		}
		if line != "" {
			line += "; "
		}
		line += text
	}
	switch {
	case line != "":
		return line
	case slices.Contains(used, w.top):
		return fmt.Sprintf("used at the peak (step %d, %s)", w.top+1, w.describeOp(w.top))
	case contains(here, w.top):
		return "on the device at the peak: there is room for it"
	}
	return fmt.Sprintf("needed from step %d to %d, not at the peak (step %d)", used[0]+1, used[len(used)-1]+1, w.top+1)
}

func (w *reasoner) describeOp(slot int) string { return w.g.Ops[w.p.Steps[slot].Op].Name }
