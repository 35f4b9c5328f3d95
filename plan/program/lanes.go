package program

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// Lanes is what a job's streams are bound to where a program runs: a queue of commands per stream, and the arithmetic
// of which command may start. It is a pure machine, which a device tells what was issued and what has ended:
//
//	Issue --> queue of its lane --> Ready --> (Hurried: no pause) --> End
//
// The proof and Time, which go through commands in list order, need no queues: Start begins a section, Reached tells of
// a wait, and Pass issues and ends a command at once.
type Lanes struct {
	lanes  []lane
	newest *Run
	floor  []int // per lane: commands that must have ended before anything of the newest run begins
	holds  int   // queued commands with a pause
}

type lane struct {
	unit    Unit
	queue   []queued // issued and not ended
	ended   int
	hurried int // commands up to this count are not to pause
}

type queued struct {
	run   *Run
	index int
	last  bool // of its lane in what was issued with it
}

func (q queued) command() *Command { return &q.run.Section.Commands[q.index] }

// Run is one execution of a section.
type Run struct {
	Section   *Section
	Iteration int

	issued int   // commands
	origin []int // per lane: commands issued before the section, from which its points count
	floor  []int // per lane: commands that must have ended before anything of it begins; nil: known to have
}

// Count returns how many commands of the point's lane have ended, since the lanes were made, when it is reached.
func (r *Run) Count(w Point) int { return r.origin[w.Stream] + w.Count }

// Floor returns, per lane, how many commands must have ended since the lanes were made before anything of the run
// begins; nil: there are none, or they are known to have ended. It must not be changed.
func (r *Run) Floor() []int { return r.floor }

// NewLanes returns idle lanes for the streams of a program.
func NewLanes(streams []Unit) *Lanes {
	l := &Lanes{lanes: make([]lane, len(streams))}
	for s, u := range streams {
		l.lanes[s].unit = u
	}
	return l
}

// Start starts a section without commands in queues. With drain, it begins when all that was issued before has ended.
func (l *Lanes) Start(s *Section, iteration int, drain bool) *Run {
	r := &Run{Section: s, Iteration: iteration, origin: make([]int, len(l.lanes))}
	for i := range l.lanes {
		r.origin[i] = l.lanes[i].ended + len(l.lanes[i].queue)
	}
	if drain {
		l.floor = r.origin
	}
	r.floor, l.newest = l.floor, r
	return r
}

// Issue puts the commands [from, to) of a section into the queues of their lanes. A part from 0 begins a run of the
// section, with an iteration and perhaps a drain; each further one goes on where that before it ended, and the next
// section begins when this one was issued whole. It panics when a part does not follow, or is empty in a section that
// is not.
func (l *Lanes) Issue(s *Section, from, to, iteration int, drain bool) {
	r := l.newest
	whole := r == nil || r.issued == len(r.Section.Commands)
	if from == 0 && whole {
		r, whole = l.Start(s, iteration, drain), false
	}
	if whole || r.Section != s || r.issued != from || to <= from && to < len(s.Commands) {
		panic(fmt.Sprintf("program: Issue of commands %d to %d, which do not follow what was issued before", from, to))
	}
	r.issued = to
	for i := range s.Commands[from:to] {
		c := &s.Commands[from+i]
		q := &l.lanes[c.Stream].queue
		*q = append(*q, queued{run: r, index: from + i})
		if c.Hold > 0 {
			l.holds++
		}
	}
	for i := range l.lanes {
		if q := l.lanes[i].queue; len(q) > 0 {
			q[len(q)-1].last = true
		}
	}
}

// Reached reports whether a point of a run is.
func (l *Lanes) Reached(r *Run, w Point) bool {
	return w.Count <= l.lanes[w.Stream].ended-r.origin[w.Stream]
}

// Pass counts a command that is not queued as issued and ended, and returns how many of its stream have ended.
func (l *Lanes) Pass(s Stream) int {
	l.lanes[s].ended++
	return l.lanes[s].ended
}

// Ended returns how many commands of a stream have ended.
func (l *Lanes) Ended(s Stream) int { return l.lanes[s].ended }

// Queued returns how many commands of a stream were issued and have not ended.
func (l *Lanes) Queued(s Stream) int { return len(l.lanes[s].queue) }

// Using returns a command that was issued, has not ended, and uses one of some pages of a size; nil if there is none. p
// is the program that the commands are of.
func (l *Lanes) Using(p *Program, pages Pages, page graph.Bytes) *Command {
	for _, x := range l.lanes {
		for _, q := range x.queue {
			if p.touches(q.command(), pages, page) {
				return q.command()
			}
		}
	}
	return nil
}

// Idle reports whether everything issued has ended.
func (l *Lanes) Idle() bool {
	return !slices.ContainsFunc(l.lanes, func(x lane) bool { return len(x.queue) > 0 })
}

// Head returns the run of the first command that is queued in a lane and the command's index in its section; nil if
// the queue is empty.
func (l *Lanes) Head(s Stream) (r *Run, index int) {
	if len(l.lanes[s].queue) == 0 {
		return nil, 0
	}
	q := l.lanes[s].queue[0]
	return q.run, q.index
}

// Last reports whether the head of a lane is the last command there of what was issued with it.
func (l *Lanes) Last(s Stream) bool { return l.lanes[s].queue[0].last }

// Ready reports whether there is a head of a lane that waits for nothing.
func (l *Lanes) Ready(s Stream) bool {
	x := &l.lanes[s]
	return len(x.queue) > 0 && l.open(x.queue[0].run) && l.free(x.queue[0])
}

// free reports whether a command's own waits are reached.
func (l *Lanes) free(q queued) bool {
	for _, w := range q.command().Waits {
		if !l.Reached(q.run, w) {
			return false
		}
	}
	return true
}

// open reports whether the commands of a run may begin as far as drains are concerned.
func (l *Lanes) open(r *Run) bool {
	for s, count := range r.floor {
		if l.lanes[s].ended < count {
			return false
		}
	}
	r.floor = nil // what has ended once has ended
	return true
}

// Blocker returns a point that the head of a lane waits for, in the head's section, and how many commands of that
// point's lane have ended since the section was issued. A run that drains waits for points with a Count of 0.
func (l *Lanes) Blocker(s Stream) (w Point, ended int) {
	q := l.lanes[s].queue[0]
	for s, count := range q.run.floor {
		if l.lanes[s].ended < count {
			return Point{Stream(s), count - q.run.origin[s]}, l.lanes[s].ended - q.run.origin[s]
		}
	}
	for _, w := range q.command().Waits {
		if !l.Reached(q.run, w) {
			return w, l.lanes[w.Stream].ended - q.run.origin[w.Stream]
		}
	}
	return Point{}, 0
}

// End takes the head of a lane, which has ended, from its queue.
func (l *Lanes) End(s Stream) {
	x := &l.lanes[s]
	if x.queue[0].command().Hold > 0 {
		l.holds--
	}
	x.queue = x.queue[1:]
	x.ended++
}

// Awaited reports whether the head of a lane of the compute unit waits for a stream: the job stands still for it.
func (l *Lanes) Awaited(s Stream) bool {
	return slices.ContainsFunc(l.lanes, func(x lane) bool {
		return x.unit == Compute && len(x.queue) > 0 && slices.ContainsFunc(x.queue[0].command().Waits,
			func(w Point) bool {
				return w.Stream == s && !l.Reached(x.queue[0].run, w)
			})
	})
}

// Hurried reports whether the head of a lane is not to pause: something waits for it.
func (l *Lanes) Hurried(s Stream) bool { return l.lanes[s].ended < l.lanes[s].hurried }

// Hurry ends the pauses of the copies that the head of a lane waits for, and reports whether there is a new one.
func (l *Lanes) Hurry(s Stream) bool {
	return l.holds > 0 && len(l.lanes[s].queue) > 0 && l.hurryFor(l.lanes[s].queue[0])
}

func (l *Lanes) hurryFor(q queued) bool {
	changed := false
	for s, count := range q.run.floor {
		changed = l.hurry(Stream(s), count) || changed
	}
	for _, w := range q.command().Waits {
		changed = l.hurry(w.Stream, q.run.Count(w)) || changed
	}
	return changed
}

// hurry ends the pauses of a lane's commands up to a count, and of the copies that those wait for. A copy that waits
// for a kernel is not wanted yet: it would not go if those before it went now.
func (l *Lanes) hurry(s Stream, count int) bool {
	x := &l.lanes[s]
	first := max(x.ended, x.hurried)
	if x.unit == Compute || count <= first || count > x.ended+len(x.queue) || l.untriggered(x.queue[count-x.ended-1]) {
		return false
	}
	x.hurried = count
	for _, q := range x.queue[first-x.ended : count-x.ended] {
		l.hurryFor(q)
	}
	return true
}

// untriggered reports whether a command waits for a stream of the compute unit.
func (l *Lanes) untriggered(q queued) bool {
	for s, count := range q.run.floor {
		if l.lanes[s].unit == Compute && l.lanes[s].ended < count {
			return true
		}
	}
	return slices.ContainsFunc(q.command().Waits, func(w Point) bool {
		return l.lanes[w.Stream].unit == Compute && !l.Reached(q.run, w)
	})
}
