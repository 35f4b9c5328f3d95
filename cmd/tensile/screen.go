package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"tensile/data"
	"tensile/graph"
	"tensile/models/task"
	"tensile/observe/report"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// screen prints what a person sees during a run: a live line per job on a terminal, else a line per job and second.
// With --json nothing is printed.
type screen struct {
	out        io.Writer
	session    *session
	silent     bool
	terminal   bool
	iterations int
	mu         sync.Mutex // of what follows: two runs report alternately
	drawn      int        // lines of the last drawing
	lines      []string
	printed    []time.Time
}

func newScreen(out io.Writer, s *session, silent bool, iterations int) *screen {
	return &screen{out: out, session: s, silent: silent, terminal: isTerminal(out), iterations: iterations}
}

// head says what will be done.
func (s *screen) head(policy string, sharing wire.Sharing) {
	if s.silent {
		return
	}
	if !strings.HasPrefix(s.session.device.Name(), "sim:") { // which has no data
		fmt.Fprintf(s.out, "data: %s\n", learnsFrom(s.session.Tasks))
	}
	writeStill(s.out, s.session.Tasks)
	p := s.session.Planned
	budget := "no budget"
	if given := s.session.Budget.String(); s.session.Budget > 0 {
		budget = "budget " + given
		if pages := s.session.Request.Budget.String(); pages != given {
			budget += fmt.Sprintf(" (%s in whole pages)", pages)
		}
		if c := s.session.contexts; c.Sum() > 0 {
			budget += fmt.Sprintf(" beside %s", c)
		}
	}
	need := fmt.Sprintf("slot peak %s, arena %s", p.SlotPeak, p.Arena)
	switch {
	case sharing.Gated() && len(p.Jobs) == 1:
		need = fmt.Sprintf("by %s it needs %s", sharing, p.Least)
	case sharing.Gated():
		need = fmt.Sprintf("by %s they need %s together", sharing, p.Least)
	case sharing == wire.Slices:
		need = fmt.Sprintf("in turns they need %s", p.Least)
	}
	fmt.Fprintf(s.out, "device %s, policy %s, %s: %s, planned in %.1f ms, packed in %.1f ms, proven in %.1f ms\n",
		s.session.device.Name(), policy, budget, need, report.Milliseconds(p.PlanTime), report.Milliseconds(p.PackTime),
		report.Milliseconds(p.Proof))
	if p.Limited {
		fmt.Fprintln(s.out, report.LimitedWork(p.Work))
	}
	fmt.Fprintf(s.out, "latencies: %s\n", s.session.latency)
	if l := s.session.link; l.rate > 0 {
		fmt.Fprintf(s.out, "link %s/s each way (%s)\n", graph.Bytes(l.rate), l.why)
	}
}

// writeStill writes a line about jobs that will learn nothing, if there are some.
func writeStill(out io.Writer, w []task.Task) {
	var still []string
	for _, t := range w {
		if t.IsFrozen() {
			still = append(still, t.Name)
		}
	}
	if len(still) > 0 {
		fmt.Fprintf(out, "with --lr 0 no parameter of %s will change\n", strings.Join(still, ", "))
	}
}

// learnsFrom says what all jobs of a run learn from.
func learnsFrom(w []task.Task) string {
	switch t := w[0]; {
	case t.Arrays != nil:
		return t.Arrays.Name()
	case t.Data != nil && t.Data.Name() != data.SyntheticName:
		text := fmt.Sprintf("%s, %d examples of %d classes", t.Data.Name(), t.Data.Examples(), t.Data.Classes())
		if names := t.Data.ClassNames(); names != nil {
			const most = 8
			more := ""
			if len(names) > most {
				names, more = names[:most], ", ..."
			}
			text += " (" + strings.Join(names, ", ") + more + ")"
		}
		return text
	}
	return "synthetic; --data names your own"
}

// part begins a run of all jobs, or another block of its iterations.
func (s *screen) part(title string) {
	if s.silent {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done()
	fmt.Fprintf(s.out, "%s:\n", title)
	s.lines = make([]string, len(s.session.Tasks))
	s.printed = make([]time.Time, len(s.session.Tasks))
	for i, t := range s.session.Tasks {
		s.lines[i] = fmt.Sprintf("  %-12s waiting", t.Name)
	}
}

// observer shows the iterations of one run on a screen. A nil one shows nothing.
type observer struct {
	screen   *screen
	resident []graph.Bytes // per job: the slot peak of the plan in force
	troubles []string      // per job: what it goes on in spite of; "": nothing
}

// observer returns that of a run which begins with some plans; nil with --json.
func (s *screen) observer(p *planner.Planned) *observer {
	if s.silent {
		return nil
	}
	o := &observer{screen: s, troubles: make([]string, len(p.Jobs))}
	for _, j := range p.Jobs {
		o.resident = append(o.resident, j.Footprint.Peak)
	}
	return o
}

// applied says that a job trains with another plan, of this slot peak.
func (o *observer) applied(job int, peak graph.Bytes) {
	if o == nil {
		return
	}
	o.screen.mu.Lock()
	defer o.screen.mu.Unlock()
	o.resident[job] = peak
}

// trouble shows what a job goes on in spite of, once; "": nothing any more.
func (o *observer) trouble(job int, why string) {
	if o == nil {
		return
	}
	o.screen.mu.Lock()
	defer o.screen.mu.Unlock()
	if o.troubles[job] != why && why != "" {
		fmt.Fprintf(o.screen.out, "  %s: %s\n", o.screen.session.Tasks[job].Name, why)
		o.screen.done()
	}
	o.troubles[job] = why
}

// iteration shows an iteration of a job, after the first part of the run has begun.
func (o *observer) iteration(job int, r *wire.Report) {
	if o == nil {
		return
	}
	s := o.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines[job] = line(s.session.Tasks[job].Name, r, s.iterations, o.resident[job])
	s.draw(job, r.Iteration+1 == s.iterations)
}

func line(name string, r *wire.Report, iterations int, resident graph.Bytes) string {
	took := r.Wall.Seconds()
	loss := ""
	if r.Loss != nil {
		loss = fmt.Sprintf("  loss %.4f", *r.Loss)
	}
	gate := ""
	if r.Gate > 0 {
		gate = fmt.Sprintf("  gate %.1f ms", report.Milliseconds(r.Gate))
	}
	return fmt.Sprintf("  %-12s %*d/%d  %7.2f it/s%s  resident %s  stall %.1f ms%s", name, len(fmt.Sprint(iterations)),
		r.Iteration+1, iterations, 1/max(took, 1e-9), loss, resident, report.Milliseconds(r.Stall), gate)
}

// draw shows a job's new line. Without a terminal it keeps silent for a second after each line, but for the last.
func (s *screen) draw(job int, last bool) {
	if !s.terminal {
		if now := time.Now(); last || now.Sub(s.printed[job]) >= time.Second {
			fmt.Fprintln(s.out, s.lines[job])
			s.printed[job] = now
		}
		return
	}
	if s.drawn > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA", s.drawn)
	}
	for _, l := range s.lines {
		fmt.Fprintf(s.out, "\r\x1b[2K%s\n", l)
	}
	s.drawn = len(s.lines)
}

// done leaves the last drawing as it stands.
func (s *screen) done() { s.drawn = 0 }
