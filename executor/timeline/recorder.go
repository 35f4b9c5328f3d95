package timeline

import (
	"slices"
	"time"

	"tensile/executor"
	"tensile/graph"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
)

// Recorder records the sections of jobs on one device. It is not safe for concurrent use.
type Recorder struct {
	Device string
	Origin time.Duration // is added to times of the device's clock

	// Timing says how an iteration of a job was expected to go by a plan. It may be nil, or say false.
	Timing func(job string, p *plan.Plan) (t program.Timing, ok bool)

	jobs map[string]*history
}

// history is what was recorded of a job.
type history struct {
	program  *program.Program
	sections int
	streams  []ended // the program's streams
	contents map[*program.Section][]compile.Content
}

// ended are the newest commands of a stream.
type ended struct {
	count  int // how many were recorded
	newest []Cause
	ends   []time.Duration // when those that are kept ended
}

// Add records what a section of a job has done. Sections of a job come in the order in which they were issued.
func (r *Recorder) Add(job string, t *executor.Trace) Section {
	if r.jobs == nil {
		r.jobs = make(map[string]*history)
	}
	h := r.jobs[job]
	if h == nil {
		h = new(history)
		r.jobs[job] = h
	}
	if h.program != t.Program { // in Home: nothing waits for what was before
		h.program, h.contents = t.Program, make(map[*program.Section][]compile.Content)
		h.streams = make([]ended, len(t.Program.Streams))
	}
	p := t.Program
	s := Section{Device: r.Device, Job: job, Kind: kindOf(p, t.Section), Epoch: p.Plan.Epoch, Iteration: t.Iteration,
		Number: h.sections, Arena: p.Arena}
	for stream := range p.Streams {
		s.Lanes = append(s.Lanes, p.StreamName(program.Stream(stream)))
	}
	s.Spans = h.spans(t, r.Origin)
	if r.Timing != nil && s.Kind == Body {
		if timing, ok := r.Timing(job, p.Plan); ok && len(timing.Start) == len(s.Spans) {
			for i := range s.Spans {
				begin := r.Origin + t.Begin
				s.Spans[i].Expected = &Expected{begin + timing.Start[i], begin + timing.End[i]}
			}
		}
	}
	contents, known := h.contents[t.Section]
	if !known {
		contents = compile.Contents(p, t.Section)
		h.contents[t.Section] = contents
	}
	s.fillLevels(contents)
	h.sections++
	return s
}

func kindOf(p *program.Program, s *program.Section) Kind {
	all := p.Sections()
	return [...]Kind{Prologue, Body, Epilogue, Snapshot}[slices.Index(all[:], s)]
}

// spans turns commands into spans, finds what stalls waited for, and takes them down.
func (h *history) spans(t *executor.Trace, origin time.Duration) []Span {
	p := t.Program
	before := make([]int, len(h.streams)) // commands of each stream before the section
	for i := range h.streams {
		before[i] = h.streams[i].count
	}
	spans := make([]Span, len(t.Events))
	ran := make(map[graph.OpID]bool)
	free := t.Begin
	for i, e := range t.Events {
		c := &t.Section.Commands[i]
		s := &spans[i]
		*s = Span{Lane: int(c.Stream), Does: c.Kind.String(), Slot: c.Slot, Start: origin + e.Start,
			End: origin + e.End}
		if c.Kind.Executes() {
			s.Name, s.Again = p.Graph.Ops[c.Op].Name, ran[c.Op]
			ran[c.Op] = true
		} else {
			s.Name, s.Bytes = p.Graph.Storages[c.Storage].Name, c.Bytes
		}
		if c.Kind.Unit() == program.Compute && t.Gates != nil {
			s.Gate = t.Gates[i]
			if s.Stall = max(0, e.Start-free) - s.Gate; s.Stall > 0 {
				s.After = h.latestAfter(c, before, free)
			}
			free = e.End
		}
		h.streams[c.Stream].add(Cause{h.sections, i}, e.End)
	}
	for i := range h.streams {
		h.streams[i].trim(t.Section.Counts[i])
	}
	return spans
}

// latestAfter returns, of the commands that a command waits for, the one that ended last; nil: none of those recorded
// ended after a time.
func (h *history) latestAfter(c *program.Command, before []int, end time.Duration) (last *Cause) {
	for _, w := range c.Waits {
		at := before[w.Stream] + w.Count
		if by, ended, ok := h.streams[w.Stream].commandAt(at); ok && ended > end {
			last, end = &by, ended
		}
	}
	return last
}

func (e *ended) add(c Cause, end time.Duration) {
	e.count++
	e.newest, e.ends = append(e.newest, c), append(e.ends, end)
}

// commandAt returns the command with which a stream has come to a count.
func (e *ended) commandAt(count int) (c Cause, end time.Duration, ok bool) {
	i := count - 1 - (e.count - len(e.newest))
	if i < 0 || i >= len(e.newest) {
		return Cause{}, 0, false
	}
	return e.newest[i], e.ends[i], true
}

// trim forgets what a section with so many commands cannot wait for any more: it waits for the section before it at
// most.
func (e *ended) trim(section int) {
	if n := len(e.newest) - max(section, 1); n > 0 {
		e.newest, e.ends = slices.Delete(e.newest, 0, n), slices.Delete(e.ends, 0, n)
	}
}

// fillLevels says how much content the arena has while the section goes on. What a command writes is there from its
// start, and all that uses a content has ended when it is gone.
func (s *Section) fillLevels(contents []compile.Content) {
	for _, c := range contents {
		if c.Before {
			s.Held += c.Bytes
		} else {
			s.Levels = append(s.Levels, Level{s.Spans[c.Uses[0]].Start, c.Bytes})
		}
		if !c.After {
			end := s.Spans[0].Start
			for _, i := range c.Uses {
				end = max(end, s.Spans[i].End)
			}
			s.Levels = append(s.Levels, Level{end, -c.Bytes})
		}
	}
}
