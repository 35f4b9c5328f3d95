package executor

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/plan"
	"tensile/plan/program"
)

// TestInterleavings lets random programs run to their end under random timings, with changes and stops at any time, and
// compares everything that the machine says with what must follow from the events.
func TestInterleavings(t *testing.T) {
	seeds := long.Rounds(500, 5000)
	var changed, stopped, empty, parked, snapshots, aside int
	for seed := range seeds {
		w := &world{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 0))}
		w.run()
		changed += max(0, w.m.Plans()-1)
		if w.stopped && w.reported > 0 {
			stopped++
		}
		if w.empties > 0 {
			empty++
		}
		parked += w.rests
		snapshots += w.snapshots
		aside += w.aside
	}
	if changed < int(seeds)/2 || stopped < int(seeds)/20 || empty < int(seeds)/20 || parked < int(seeds)/20 ||
		snapshots < int(seeds)/8 || aside < int(seeds)/20 {
		t.Errorf("%d seeds made %d changes, %d stops amid training, %d runs with empty sections, %d rests, %d "+
			"snapshots in Home and %d aside: too few to show much", seeds, changed, stopped, empty, parked,
			snapshots, aside)
	}
}

// world is a machine, a device that is a set of lanes, and what the machine should be doing.
type world struct {
	t    *testing.T
	seed uint64
	r    *rand.Rand
	m    *Machine

	iterations int
	now        time.Duration
	flying     []*ride
	free       [program.Units]time.Duration

	given   *program.Program // the latest that the machine was given and has not applied
	present *program.Program
	stopped bool
	phase   int // of the present program: 0 reserved, 1 in or after its prologue, 2 bodies, 3 epilogue or home
	bodies  []*ride
	plans   int
	empties int

	parked, resting  bool  // told to park; in Home and said so
	number           int64 // of the last time that it was
	wanted           bool  // a snapshot
	rests, snapshots int
	aside            int              // snapshots that were taken while it trained
	loaded           *program.Program // the last that was
	rested           bool             // parked since then, in Home
	atHome           bool             // with its arena, which it is to give back
	returns          bool             // told to park since then, so that it may go on by the same program
	trained          bool             // a body was issued since it left Home
	arrives          bool             // and none was reported

	issued, reported int
	begin, last      time.Duration // of the next iteration; end of everything so far
	away             time.Duration
	left             time.Duration // since when it does not train
	finished         bool
}

// ride is a section in flight, with the events of its commands as they end.
type ride struct {
	flight
	at     time.Duration // when it was issued
	events []device.Event
	left   int
}

func (w *world) run() {
	begin := w.r.IntN(3)
	w.iterations = begin + w.r.IntN(16)
	w.issued, w.reported = begin, begin
	w.m = NewMachine("job", begin, w.iterations)
	for round := 0; !w.finished; round++ {
		switch n := w.r.IntN(100); {
		case n < 5 || w.plans == 0 && w.given == nil && n < 90:
			w.given = w.program()
			w.step(Input{Program: w.given})
		case n == 5 && w.r.IntN(3) == 0:
			w.stopped = true
			w.step(Input{Stop: true})
		case n == 6 && !w.parked:
			w.parked, w.returns, w.number = true, true, w.number+1
			w.step(Input{Park: w.number})
		case n < 9 && w.parked:
			w.parked, w.resting = false, false
			w.step(Input{Resume: true})
		case n == 9:
			w.wanted = w.wanted || !w.takes()
			w.step(Input{Checkpoint: true})
		case len(w.flying) > 0:
			w.end()
		}
		if round > 10_000 {
			w.t.Fatalf("seed %d: %s with %d sections in flight for ever", w.seed, w.m.State(), len(w.flying))
		}
	}
	w.check(w.stopped || w.reported == w.iterations, "%d iterations reported of %d", w.reported, w.iterations)
	w.check(len(w.flying) == 0 && len(w.bodies) == 0, "finished with %d sections in flight", len(w.flying))
	w.check(w.m.Plans() == w.plans, "%d plans applied, want %d", w.m.Plans(), w.plans)
	w.check(w.m.Transition() == w.away, "away for %v, want %v", w.m.Transition(), w.away)
}

func (w *world) check(ok bool, format string, args ...any) {
	w.t.Helper()
	if !ok {
		w.t.Fatalf("seed %d, state %s: "+format, append([]any{w.seed, w.m.State()}, args...)...)
	}
}

// program makes a program of up to 5 commands a section; the body has a kernel.
func (w *world) program() *program.Program {
	p := &program.Program{Arena: graph.Bytes(1+w.r.IntN(9)) * graph.KiB, Plan: &plan.Plan{Epoch: w.r.Int64()}}
	for _, s := range p.Sections() {
		n, last := w.r.IntN(6), program.Poison
		if s == &p.Snapshot {
			if w.r.IntN(2) == 0 {
				continue
			}
			last = program.Keep
		}
		if s == &p.Body || s == &p.Snapshot {
			add(s, program.Kernel, p.Plan)
		} else if n == 0 {
			w.empties++
		}
		for range n {
			k := program.Kind(w.r.IntN(int(last) + 1))
			if s != &p.Body && s != &p.Snapshot && k == program.Kernel {
				k = program.In
			}
			add(s, k, p.Plan)
		}
	}
	return p
}

// end lets the first command of a random lane end, at a random time that its lane and its issue allow.
func (w *world) end() {
	var choices []program.Unit
	for l := range program.Units {
		if w.first(l) != nil {
			choices = append(choices, l)
		}
	}
	l := choices[w.r.IntN(len(choices))]
	f := w.first(l)
	e := f.next(l)
	random := func() time.Duration { return time.Duration(w.r.IntN(3)) }
	e.Ready = max(f.at, w.free[l]) + random()
	e.Start = e.Ready + random()
	e.End = max(w.now, e.Start+random())
	w.now, w.free[l] = e.End, e.End
	w.last = max(w.last, e.End)
	f.events[e.Index] = e
	f.left--
	for len(w.flying) > 0 && w.flying[0].left == 0 {
		w.flying = w.flying[1:]
	}
	w.step(Input{Event: &e})
}

// first returns the section whose command comes next in a lane.
func (w *world) first(l program.Unit) *ride {
	for _, f := range w.flying {
		if f.ended[l] < f.Section.Counts[l] {
			return f
		}
	}
	return nil
}

func (w *world) step(in Input) {
	for _, out := range w.m.Step(w.now, in) {
		w.check(!w.finished, "%+v after it has finished", out)
		switch {
		case out.Load != nil:
			w.load(out.Load)
		case out.Issue != nil:
			w.issue(out.Issue)
		case out.Report != nil:
			w.report(out.Report)
		case out.Home:
			w.home()
		case out.Snapshot != nil:
			w.snapshot(out.Snapshot)
		case out.Parked != 0:
			w.check(w.parked && out.Parked == w.number && !w.resting && w.present == nil && !w.stopped,
				"parked, of a job that is not")
			w.resting, w.rested = true, true
			w.rests++
		case out.Finished:
			w.check(w.present == nil && !w.wanted, "finished away from home, or with a snapshot wanted (%t)", w.wanted)
			w.check(w.stopped || w.reported == w.iterations, "finished after %d iterations of %d", w.reported,
				w.iterations)
			w.finished = true
		default:
			w.check(false, "an output that says nothing")
		}
	}
	w.check(w.finished || w.present != nil || w.plans == 0 || w.resting && !w.stopped ||
		w.reported < w.iterations && !w.stopped,
		"at home with nothing to do, and not finished")
	var copies [program.Units]int
	for _, f := range w.flying {
		for l := range copies {
			copies[l] += f.Section.Counts[l] - f.ended[l]
		}
	}
	for _, l := range []program.Unit{program.CopyOut, program.CopyIn} {
		w.check(w.m.Queue(l).Copies == copies[l], "queue of lane %s: %+v, want %d copies", l, w.m.Queue(l), copies[l])
	}
}

func (w *world) load(p *program.Program) {
	w.check(w.present == nil && len(w.flying) == 0, "load %+v with %d sections in flight", p, len(w.flying))
	latest := w.given
	if latest == nil && w.returns {
		latest = w.loaded
	}
	w.check(p == latest && !w.parked, "load %+v, the latest program is %+v", p, latest)
	if w.plans == 0 || w.rested {
		w.left = w.now
	}
	if p != w.loaded {
		w.plans++
	}
	w.present, w.loaded, w.given, w.phase = p, p, nil, 0
	w.rested, w.trained, w.returns = false, false, false
}

// issue checks that sections come in the order of the life of a program; empty ones are left out.
func (w *world) issue(i *Issue) {
	w.check(!w.atHome, "a job that was to give its arena back goes on")
	w.check(i.Iteration == w.issued, "section of iteration %d issued, want %d", i.Iteration, w.issued)
	w.check(w.present != nil, "a section issued at home")
	phase := map[*program.Section]int{&w.present.Prologue: 1, &w.present.Body: 2, &w.present.Epilogue: 3,
		&w.present.Snapshot: 2}[i.Section]
	w.check(phase > w.phase || phase == 2 && w.phase == 2, "section %d after section %d", phase, w.phase)
	w.check(i.Drain == (phase != 2), "drain is %t of section %d", i.Drain, phase)
	w.check(phase == 2 || len(w.flying) == 0, "prologue or epilogue with %d sections in flight", len(w.flying))
	w.check(len(i.Section.Commands) > 0, "an empty section issued")
	w.check(w.phase >= 1 || phase == 1 || len(w.present.Prologue.Commands) == 0, "the prologue was left out")
	f := &ride{flight{Issue: *i}, w.now, make([]device.Event, len(i.Section.Commands)), len(i.Section.Commands)}
	w.flying = append(w.flying, f)
	switch phase {
	case 2:
		w.arrives = w.arrives || w.phase < 2
		aside := len(w.present.Snapshot.Commands) > 0
		if i.Section == &w.present.Snapshot {
			w.check(w.wanted && !w.takes(), "a snapshot issued that is not wanted (%t)", w.wanted)
			w.wanted = false
		}
		w.check(i.Section != &w.present.Snapshot || w.trained, "a snapshot before a body")
		w.check(w.given == nil && !w.stopped && !w.parked && !(w.wanted && (w.trained || aside)),
			"a body issued with another program waiting, after a stop (%t) or Park (%t), or a snapshot wanted (%t)",
			w.stopped, w.parked, w.wanted)
		w.trained = true
		w.bodies = append(w.bodies, f)
		w.issued++
		w.check(len(w.bodies) <= 2 && w.issued <= w.iterations, "%d bodies in flight, %d issued of %d", len(w.bodies),
			w.issued, w.iterations)
	case 3:
		w.depart()
	}
	w.phase = phase
}

// arrive ends the time away, at the start of the first kernel of the first body; depart begins it.
func (w *world) arrive(f *ride) {
	i := slices.IndexFunc(f.Section.Commands, func(c program.Command) bool { return c.Kind.Unit() == program.Compute })
	w.begin, w.arrives = f.events[i].Start, false
	w.away += w.begin - w.left
}

func (w *world) depart() {
	w.check(w.phase == 2 && !w.arrives, "departed before a body was complete")
	w.check(len(w.bodies) == 0, "departed with %d bodies in flight", len(w.bodies))
	w.left = w.last
}

func (w *world) home() {
	w.check(w.present != nil && len(w.flying) == 0, "home with %d sections in flight", len(w.flying))
	if !w.atHome {
		w.arriveHome()
	}
	w.present, w.atHome = nil, false
}

// arriveHome checks that the way Home was taken, and counts its time.
func (w *world) arriveHome() {
	w.check(w.phase == 3 || len(w.present.Epilogue.Commands) == 0, "the epilogue was left out")
	if w.phase < 3 {
		w.depart()
	}
	w.away += w.last - w.left
	w.left = w.last
}

// takes reports whether a snapshot section is in flight.
func (w *world) takes() bool {
	for _, f := range w.bodies {
		if f.Section == &w.present.Snapshot {
			return true
		}
	}
	return false
}

// snapshot was taken by the iteration that is reported next, or in Home. There a job that goes on by the same program
// keeps its arena.
func (w *world) snapshot(taken *taken) {
	if !taken.Home {
		w.check(len(w.bodies) > 0 && w.bodies[0].Section == &w.present.Snapshot && w.bodies[0].left == 0 &&
			taken.Iteration == w.reported, "a snapshot of %d iterations, %d are reported", taken.Iteration, w.reported)
		w.aside++
		return
	}
	w.check(taken.Iteration == w.reported, "a snapshot of %d iterations, %d are reported", taken.Iteration, w.reported)
	w.check(w.wanted && len(w.flying) == 0 && len(w.bodies) == 0, "a snapshot that is not wanted (%t), or with %d "+
		"sections in flight", w.wanted, len(w.flying))
	w.wanted = false
	w.snapshots++
	if w.present != nil {
		w.arriveHome()
		w.phase, w.trained = 0, false
		w.atHome = w.given != nil || w.parked || w.stopped || w.reported == w.iterations
	}
}

// report checks a report against the events of the oldest body, worked out in the plainest way.
func (w *world) report(r *Report) {
	w.check(len(w.bodies) > 0 && w.bodies[0].left == 0, "iteration %d reported before it was complete", r.Iteration)
	f := w.bodies[0]
	w.bodies = w.bodies[1:]
	w.check(r.Iteration == w.reported && r.Epoch == w.present.Plan.Epoch && r.Job == "job",
		"report of iteration %d of epoch %d of %q, want iteration %d",
		r.Iteration, r.Epoch, r.Job, w.reported)
	w.reported++
	if w.arrives {
		w.arrive(f)
	}
	var stall, busy time.Duration
	end := w.begin
	copies := 0
	for i, c := range f.Section.Commands {
		e := f.events[i]
		switch c.Kind.Unit() {
		case program.Compute:
			stall += max(0, e.Start-end)
			busy += e.End - max(e.Start, end)
			end = e.End
			if c.Kind == program.Kernel {
				w.check(r.Steps[c.Slot] == e.End-e.Start, "step %d took %v, want %v", c.Slot, r.Steps[c.Slot],
					e.End-e.Start)
			}
		case program.CopyIn, program.CopyOut:
			if c.Kind == program.Save {
				continue
			}
			got := r.Copies[copies]
			w.check(got.Kind == c.Kind && got.Ready == e.Ready && got.Start == e.Start && got.End == e.End,
				"copy %d is %+v, want %+v", copies, got, e)
			copies++
		}
	}
	w.check(len(r.Copies) == copies && len(r.Steps) == len(w.present.Plan.Steps),
		"%d copies and %d steps, want %d and %d",
		len(r.Copies), len(r.Steps), copies, len(w.present.Plan.Steps))
	w.check(r.Begin == w.begin && r.End == end, "from %v to %v, want %v to %v", r.Begin, r.End, w.begin, end)
	w.check(r.Stall == stall && r.End-r.Begin == busy+stall,
		"stall %v and %v of work from %v to %v, want a stall of %v", r.Stall, busy, r.Begin, r.End, stall)
	w.begin = end
}
