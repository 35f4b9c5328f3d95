package simulate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"tensile/executor"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/scheduler/planner"
)

// Way is a way of scheduling.
type Way string

const (
	FIFO    Way = "fifo"    // each job has a device for itself, in the order of submission
	Pack    Way = "pack"    // jobs that fit together without plans train side by side
	Tensile Way = "tensile" // the machines of controller and executors
)

// Ways are all of them.
func Ways() []Way { return []Way{FIFO, Pack, Tensile} }

// Options say what a trace is simulated on.
type Options struct {
	Way Way
	// Facts are those of every device.
	Facts   cost.Facts
	Devices int
	// Budget is for all that jobs have on a device at once, in bytes. It is at most the device's memory.
	Budget graph.Bytes

	// Fold skips iterations of a device whose jobs all train evenly: the last four of each took as long as the four
	// before them, to two in a thousand. Then time jumps to where the next job comes, ends or changes there.
	Fold bool

	// NoMoves leaves each job on the device on which it has begun.
	NoMoves bool

	// Load makes the task of a network. Equal networks share their graph.
	Load func(model string, batch int) (task.Task, error)
}

// world is what all ways of scheduling share: the devices and the time.
type world struct {
	Options
	ctx context.Context
	// now is the time since the beginning of the trace.
	now     time.Duration
	nodes   []*node
	planner planner.Device
	jobs    []*job
	kinds   map[Kind]*profiledKind
	way     way
	// endedCount is how many jobs have ended.
	endedCount int
	// wake is when the way of scheduling has something to do before its next tick. noTime: it has nothing.
	wake time.Duration
}

// job is an arrival and what becomes of it.
type job struct {
	Arrival
	name string
	kind *profiledKind
	// node is where the job has begun. nil: it has not.
	node       *node
	start, end time.Duration
	begun      bool
}

// way schedules jobs.
type way interface {
	// arrive submits a job.
	arrive(j *job) error
	// takeEvents takes what a host has told since it was asked last.
	takeEvents(n *node, events []executor.Event) error
	// tick is called at the time that the call before has returned, or at world.wake.
	tick() (next time.Duration, err error)
	// counts returns how many sets of plans were adopted, and how many jobs have migrated.
	counts() (replans, moves int)
}

// Run simulates a trace until all jobs are over.
func Run(ctx context.Context, trace []Arrival, o Options) (*Result, error) {
	w := &world{Options: o, ctx: ctx, kinds: make(map[Kind]*profiledKind), wake: noTime}
	for i := range o.Devices {
		w.nodes = append(w.nodes, newNode(fmt.Sprintf("%s-%d", o.Facts.Name, 1+i), o.Facts, o.Fold))
	}
	defer w.close()
	w.planner = planner.Of(w.nodes[0].device, planner.Roofline(o.Facts))
	if err := w.load(trace); err != nil {
		return nil, err
	}
	switch o.Way {
	case FIFO, Pack:
		w.way = newBaseline(w)
	case Tensile:
		var err error
		if w.way, err = newCluster(w); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("there is no scheduler %q: give one of %v", o.Way, Ways())
	}
	if err := w.run(); err != nil {
		return nil, err
	}
	return w.result(), nil
}

func (w *world) close() {
	for _, n := range w.nodes {
		n.host.Close()
		n.device.Close()
	}
}

// load makes the jobs of a trace.
func (w *world) load(trace []Arrival) error {
	for i, a := range trace {
		k := Kind{a.Model, a.Batch}
		if w.kinds[k] == nil {
			made, err := w.profileKind(k)
			if err != nil {
				return err
			}
			w.kinds[k] = made
		}
		j := &job{Arrival: a, name: fmt.Sprintf("job%d", 1+i), kind: w.kinds[k]}
		if j.Iterations == 0 {
			j.Iterations = j.kind.iterationsIn(a.Alone)
		}
		w.jobs = append(w.jobs, j)
	}
	return nil
}

// run lets time pass from one thing that happens to the next.
func (w *world) run() error {
	arrived := 0
	tick, err := w.way.tick()
	if err != nil {
		return err
	}
	for w.endedCount < len(w.jobs) {
		if err := context.Cause(w.ctx); err != nil {
			return err
		}
		next, at := w.next()
		if arrived < len(w.jobs) {
			next = min(next, w.jobs[arrived].Submit)
		}
		next = min(next, tick, w.wake)
		if next == noTime {
			return fmt.Errorf("after %v nothing happens any more, and %d jobs are not over", w.now,
				len(w.jobs)-w.endedCount)
		}
		w.now = max(w.now, next)
		switch {
		case arrived < len(w.jobs) && w.jobs[arrived].Submit <= w.now:
			err = w.way.arrive(w.jobs[arrived])
			arrived++
		case min(tick, w.wake) <= w.now:
			w.wake = noTime
			tick, err = w.way.tick()
		default:
			err = at.advance(w.now)
		}
		if err == nil {
			err = w.deliverEvents()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const noTime = time.Duration(math.MaxInt64)

// next returns the node on which something happens first, and when.
func (w *world) next() (time.Duration, *node) {
	first, at := noTime, (*node)(nil)
	for _, n := range w.nodes {
		if t, ok := n.next(); ok && t < first {
			first, at = t, n
		}
	}
	return first, at
}

// deliverEvents has the way of scheduling take what hosts have told, until they tell no more.
func (w *world) deliverEvents() error {
	for again := true; again; {
		again = false
		for _, n := range w.nodes {
			if len(n.events) == 0 {
				continue
			}
			events := n.events
			n.events, again = nil, true
			for i := range events {
				w.noteEvent(n, &events[i])
			}
			if err := w.way.takeEvents(n, events); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteEvent records when jobs begin and end.
func (w *world) noteEvent(n *node, e *executor.Event) {
	switch {
	case e.Applied != nil:
		if j := w.find(e.Job); !j.begun {
			j.begun, j.start, j.node = true, n.now(), n
		}
	case e.Ended != nil:
		if j := w.find(e.Job); e.Ended.Err != nil || e.Ended.Iterations == j.Iterations { // otherwise it migrates
			j.end = n.now()
			w.endedCount++
		}
	}
}

func (w *world) find(name string) *job {
	i := slices.IndexFunc(w.jobs, func(j *job) bool { return j.name == name })
	return w.jobs[i]
}
