package timeline

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"tensile/graph"
)

// Threads of a job in a trace: its lanes, then what it waited for, then its lanes as they were expected.
const (
	waits    = 100
	expected = 200
)

// event is one of the Trace Event Format: X a slice, M a name, C a counter, s and f the ends of an arrow. Times are in
// microseconds.
type event struct {
	Name     string         `json:"name"`
	Phase    string         `json:"ph"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	At       micros         `json:"ts"`
	Duration *micros        `json:"dur,omitempty"` // of an X
	Category string         `json:"cat,omitzero"`
	ID       int            `json:"id,omitzero"`
	Binds    string         `json:"bp,omitzero"` // e: to the slice around it
	Args     map[string]any `json:"args,omitempty"`
}

// micros is a time that is written as microseconds to the nanosecond.
type micros time.Duration

func (m micros) MarshalJSON() ([]byte, error) {
	sign := ""
	if m < 0 {
		sign, m = "-", -m
	}
	return fmt.Appendf(nil, "%s%d.%03d", sign, m/1000, m%1000), nil
}

func (m *micros) UnmarshalJSON(b []byte) error {
	var us float64
	if err := json.Unmarshal(b, &us); err != nil {
		return err
	}
	*m = micros(us*1000 + 0.5)
	return nil
}

func lasts(d time.Duration) *micros {
	m := micros(d)
	return &m
}

// Write writes sections as a trace in the Trace Event Format. Sections of a job come in their order; its first one says
// what it holds. The first command of all starts at 0.
//
// A process of the trace is a job on a device; its threads are the job's lanes, what the compute lane waited for, and
// the lanes as they were expected. Its counter is the memory that content takes.
func Write(w io.Writer, sections []Section) error {
	t := &tracer{w: bufio.NewWriter(w), jobs: make(map[[2]string]*traced), origin: math.MaxInt64}
	for i := range sections {
		for k := range sections[i].Spans {
			t.origin = min(t.origin, sections[i].Spans[k].Start)
		}
	}
	fmt.Fprint(t.w, `{"displayTimeUnit":"ms","traceEvents":[`)
	for i := range sections {
		t.section(&sections[i])
	}
	for _, j := range t.order {
		t.memory(j)
	}
	fmt.Fprint(t.w, "\n]}\n")
	return cmp.Or(t.err, t.w.Flush())
}

type tracer struct {
	w      *bufio.Writer
	origin time.Duration // the first time of the trace; viewers read times as numbers of 53 bits
	jobs   map[[2]string]*traced
	order  []*traced
	events int
	arrows int
	err    error
}

// traced is a job of a trace.
type traced struct {
	process int
	threads map[int]bool // that have a name
	held    graph.Bytes
	levels  []Level
	ends    map[Cause]end // of spans that others may have waited for
	first   time.Duration
}

type end struct {
	thread int
	at     time.Duration
}

func (t *tracer) write(e event) {
	if e.Phase != "M" {
		e.At -= micros(t.origin)
	}
	b, err := json.Marshal(e)
	if t.err = cmp.Or(t.err, err); err != nil {
		return
	}
	if t.events++; t.events > 1 {
		fmt.Fprint(t.w, ",")
	}
	fmt.Fprintf(t.w, "\n%s", b)
}

// job returns the job of a section.
func (t *tracer) job(s *Section) *traced {
	key := [2]string{s.Device, s.Job}
	j := t.jobs[key]
	if j == nil {
		j = &traced{process: len(t.order) + 1, threads: make(map[int]bool), held: s.Held, ends: make(map[Cause]end)}
		if len(s.Spans) > 0 {
			j.first = slices.MinFunc(s.Spans, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) }).Start
		}
		t.jobs[key], t.order = j, append(t.order, j)
		t.name("process_name", j.process, 0, fmt.Sprintf("%s on %s", s.Job, s.Device))
	}
	return j
}

func (t *tracer) name(what string, process, thread int, name string) {
	t.write(event{Name: what, Phase: "M", Process: process, Thread: thread, Args: map[string]any{"name": name}})
}

// thread names a thread when it is used first.
func (t *tracer) thread(j *traced, thread int, name string) int {
	if !j.threads[thread] {
		j.threads[thread] = true
		t.name("thread_name", j.process, thread, name)
	}
	return thread
}

func (t *tracer) section(s *Section) {
	j := t.job(s)
	for i := range s.Spans {
		sp := &s.Spans[i]
		lane := t.thread(j, sp.Lane+1, s.Lanes[sp.Lane])
		t.span(j, s, sp, lane, sp.Start, sp.End)
		j.ends[Cause{s.Number, i}] = end{lane, sp.End}
		if x := sp.Expected; x != nil {
			t.span(j, s, sp, t.thread(j, expected+lane, "expected: "+s.Lanes[sp.Lane]), x.Start, x.End)
		}
		t.writeWait(j, sp, lane)
	}
	for by := range j.ends { // nobody waits for what is older
		if by.Section < s.Number-1 {
			delete(j.ends, by)
		}
	}
	j.levels = append(j.levels, s.Levels...)
}

// span writes a slice of a lane.
func (t *tracer) span(j *traced, s *Section, sp *Span, thread int, from, to time.Duration) {
	name := sp.Name
	if sp.Does != "kernel" {
		name = sp.Does + " " + name
	} else if sp.Again {
		name += " again"
	}
	args := map[string]any{"slot": sp.Slot, "iteration": s.Iteration, "section": s.Kind, "plan": s.Epoch}
	if sp.Bytes > 0 {
		args["bytes"] = sp.Bytes
	}
	t.write(event{Name: name, Phase: "X", Process: j.process, Thread: thread, At: micros(from),
		Duration: lasts(to - from), Args: args})
}

// writeWait writes for how long the compute lane stood still before a span, and what it waited for: first at the gate,
// then for other commands.
func (t *tracer) writeWait(j *traced, sp *Span, lane int) {
	if sp.Gate+sp.Stall == 0 {
		return
	}
	thread := t.thread(j, waits, "waits")
	from := sp.Start - sp.Stall - sp.Gate
	if sp.Gate > 0 {
		t.write(event{Name: "gate", Phase: "X", Process: j.process, Thread: thread, At: micros(from),
			Duration: lasts(sp.Gate), Args: map[string]any{"before": sp.Name}})
	}
	if sp.Stall == 0 {
		return
	}
	t.write(event{Name: "stall", Phase: "X", Process: j.process, Thread: thread, At: micros(from + sp.Gate),
		Duration: lasts(sp.Stall), Args: map[string]any{"before": sp.Name}})
	if sp.After == nil {
		return
	}
	by, ok := j.ends[*sp.After]
	if !ok {
		return
	}
	t.arrows++
	arrow := event{Name: "waited for", Category: "wait", ID: t.arrows, Process: j.process}
	start, finish := arrow, arrow
	start.Phase, start.Thread, start.At = "s", by.thread, micros(by.at-1) // within the slice that ends there
	finish.Phase, finish.Thread, finish.At, finish.Binds = "f", lane, micros(sp.Start), "e"
	t.write(start)
	t.write(finish)
}

// memory writes the counter of a job.
func (t *tracer) memory(j *traced) {
	slices.SortStableFunc(j.levels, func(a, b Level) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.More, b.More)) // what is given back first
	})
	count := func(at time.Duration, held graph.Bytes) {
		t.write(event{Name: "memory", Phase: "C", Process: j.process, At: micros(at),
			Args: map[string]any{"bytes": held}})
	}
	held := j.held
	count(j.first, held)
	for i, l := range j.levels {
		held += l.More
		if i+1 == len(j.levels) || j.levels[i+1].At != l.At {
			count(l.At, held)
		}
	}
}
