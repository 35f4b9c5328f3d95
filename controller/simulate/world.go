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
	FIFO    Way = "fifo"    // a device for each job, in the order of their submission
	Pack    Way = "pack"    // jobs side by side that fit together without plans
	Tensile Way = "tensile" // the controller's machines
)

// Ways are all of them.
func Ways() []Way { return []Way{FIFO, Pack, Tensile} }

// Options say what a trace is simulated on.
type Options struct {
	Way     Way
	Facts   cost.Facts // of every device
	Devices int
	Budget  graph.Bytes // of each device, for all that jobs have there at once; at most its memory

	// Fold skips iterations of a device whose jobs all train evenly: the last four of each took as long as the four
	// before them, to two in a thousand. Time jumps then to where the next job comes, ends or changes there.
	Fold bool

	// NoMoves leaves each job on the device on which it has begun.
	NoMoves bool

	// Load makes the task of a network; equal ones share their graph.
	Load func(model string, batch int) (task.Task, error)
}

// world is what all ways of scheduling share: the devices and the time.
type world struct {
	Options
	ctx     context.Context
	now     time.Duration
	nodes   []*node
	planner planner.Device
	jobs    []*job
	graphs  map[Kind]*kind
	way     way
	over    int           // jobs that have ended
	wake    time.Duration // before its next tick, when the way of scheduling has something to do; never: nothing
}

// job is an arrival and what becomes of it.
type job struct {
	Arrival
	name       string
	kind       *kind
	node       *node // nil: none yet
	start, end time.Duration
	begun      bool
}

// way schedules jobs.
type way interface {
	arrive(j *job) error                          // a job is submitted
	heard(n *node, events []executor.Event) error // what a host has told since it was heard last
	tick() (next time.Duration, err error)        // its time has come; when the next one does
	counts() (replans, moves int)
}

// Run simulates a trace until all jobs are over.
func Run(ctx context.Context, trace []Arrival, o Options) (*Result, error) {
	w := &world{Options: o, ctx: ctx, graphs: make(map[Kind]*kind), wake: never}
	for i := range o.Devices {
		w.nodes = append(w.nodes, newNode(fmt.Sprintf("%s-%d", o.Facts.Name, 1+i), o.Facts, o.Fold))
	}
	defer w.close()
	w.planner = planner.Describe(w.nodes[0].device, planner.Roofline(o.Facts))
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
		if w.graphs[k] == nil {
			made, err := w.kind(k)
			if err != nil {
				return err
			}
			w.graphs[k] = made
		}
		j := &job{Arrival: a, name: fmt.Sprintf("job%d", 1+i), kind: w.graphs[k]}
		if j.Iterations == 0 {
			j.Iterations = j.kind.within(a.Alone)
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
	for w.over < len(w.jobs) {
		if err := context.Cause(w.ctx); err != nil {
			return err
		}
		next, at := w.next()
		if arrived < len(w.jobs) {
			next = min(next, w.jobs[arrived].Submit)
		}
		next = min(next, tick, w.wake)
		if next == never {
			return fmt.Errorf("after %v nothing happens any more, and %d jobs are not over", w.now, len(w.jobs)-w.over)
		}
		w.now = max(w.now, next)
		switch {
		case arrived < len(w.jobs) && w.jobs[arrived].Submit <= w.now:
			err = w.way.arrive(w.jobs[arrived])
			arrived++
		case min(tick, w.wake) <= w.now:
			w.wake = never
			tick, err = w.way.tick()
		default:
			err = at.work(w.now)
		}
		if err == nil {
			err = w.listen()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const never = time.Duration(math.MaxInt64)

// next returns the node on which something happens first, and when.
func (w *world) next() (time.Duration, *node) {
	first, at := never, (*node)(nil)
	for _, n := range w.nodes {
		if t, ok := n.next(); ok && t < first {
			first, at = t, n
		}
	}
	return first, at
}

// listen has the way of scheduling hear what hosts have told, until they tell no more.
func (w *world) listen() error {
	for again := true; again; {
		again = false
		for _, n := range w.nodes {
			if len(n.heard) == 0 {
				continue
			}
			events := n.heard
			n.heard, again = nil, true
			for i := range events {
				w.follow(n, &events[i])
			}
			if err := w.way.heard(n, events); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow notes when jobs begin and end.
func (w *world) follow(n *node, e *executor.Event) {
	switch {
	case e.Applied != nil:
		if j := w.find(e.Job); !j.begun {
			j.begun, j.start, j.node = true, n.now(), n
		}
	case e.Ended != nil:
		if j := w.find(e.Job); e.Ended.Err != nil || e.Ended.Iterations == j.Iterations { // else it moves
			j.end = n.now()
			w.over++
		}
	}
}

func (w *world) find(name string) *job {
	i := slices.IndexFunc(w.jobs, func(j *job) bool { return j.name == name })
	return w.jobs[i]
}
