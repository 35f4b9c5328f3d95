package zico

import (
	"slices"
	"time"

	"tensile/device/lease"
)

// The informed phase begins with a budget below the capacity, and raises it whenever each job has trained another
// iteration (5.3). The paper gives no numbers.
const (
	firstPercent = 90
	perRound     = 2
)

// An iteration goes wrong if its groups wait for more than a part of its time since there is less memory than was
// expected. After so many in a row of one job the jobs take turns (5.3: falls back to time-multiplexing).
const (
	wrongPart = 4
	wrongMost = 3
)

// Scheduler is the scrooge scheduler of the paper as a lease.Method.
type Scheduler struct {
	jobs     []*job
	capacity int
	turns    bool // jobs do not train together any more, until their number or the capacity changes

	courses []course // of When
	field   field
}

// job is a job as the scheduler knows it.
type job struct {
	name           lease.Job
	base           int
	body, snapshot table
	hold           int

	profiled bool          // its first iteration is over
	asks     bool          // it has asked for the beginning of an iteration
	active   bool          // it is within an iteration, or holds something of its last one
	ends     bool          // of which the last group was granted
	in       *table        // of the iteration; nil: it is not known, or there is none
	at       int           // its step
	since    time.Duration // when that began; of the first one, when what was in flight before is expected to end
	early    time.Duration // since when that was in flight; -1: nothing was
	whole    bool          // the iteration was seen from its begin
	seen     []step        // of it
	rounds   int           // iterations since a job has joined
	asked    time.Duration
	short    bool          // what it waits for was above the capacity when it asked
	waited   time.Duration // in the iteration, for such
	wrong    int           // iterations in a row
}

// table are the steps of an iteration, and one more for what is in flight when the next iteration is asked for.
type table struct{ steps []step }

// New returns a scheduler that knows of no jobs.
func New() *Scheduler { return new(Scheduler) }

// tableOf is what a Join expects. A group is asked for when the one before the last has ended, so that the step of one
// takes as long as the kernels of the group before.
func tableOf(groups []lease.Group) table {
	if len(groups) == 0 {
		return table{}
	}
	steps := make([]step, len(groups)+1)
	for i, g := range groups {
		steps[i].pages, steps[i+1] = g.Pages, step{g.Pages, g.Time}
	}
	return table{steps}
}

// lastStep is the step of the last group.
func (t *table) lastStep() int { return len(t.steps) - 2 }

// timed reports whether it is known how long the iteration takes.
func (t *table) timed() bool {
	return slices.ContainsFunc(t.steps, func(s step) bool { return s.time > 0 })
}

// length is how long the iteration takes; 0: that is not known.
func (t *table) length() (sum time.Duration) {
	for _, s := range t.steps {
		sum += s.time
	}
	return sum
}

// tableFor is the table of the iteration that a Want is of.
func (j *job) tableFor(w *lease.Want) *table {
	if w.Snapshot {
		return &j.snapshot
	}
	return &j.body
}

func (s *Scheduler) find(name lease.Job) *job {
	for _, j := range s.jobs {
		if j.name == name {
			return j
		}
	}
	return nil
}

// Tell implements lease.Method.
func (s *Scheduler) Tell(now time.Duration, n lease.Note) {
	switch {
	case n.Joined != nil:
		s.join(n.Joined)
	case n.Rejoined != nil:
		r := n.Rejoined
		j := s.join(&r.Join)
		j.hold, j.profiled = r.Hold, true
		j.goOn(now, r)
	case n.Asked != nil:
		s.ask(now, s.find(n.Asked.Job), n.Asked)
	case n.Granted != nil:
		s.find(n.Granted.Job).granted(now, n.Granted)
	case n.Passed != nil:
		s.find(n.Passed.Job).passed(now, n.Passed.Hold)
	case n.Left != nil:
		s.jobs = slices.DeleteFunc(s.jobs, func(j *job) bool { return j.name == n.Left.Job })
		s.restart()
	case n.Capacity != nil && n.Capacity.Pages != s.capacity:
		s.capacity = n.Capacity.Pages
		s.restart()
	}
	if slices.ContainsFunc(s.jobs, func(j *job) bool { return j.wrong >= wrongMost }) {
		s.turns = true
	}
}

// restart has the jobs train together.
func (s *Scheduler) restart() {
	s.turns = false
	for _, j := range s.jobs {
		j.wrong = 0
	}
}

// join begins the informed phase anew: with a job more the others are slower.
func (s *Scheduler) join(join *lease.Join) *job {
	j := &job{name: join.Job, base: join.Base, hold: join.Base, body: tableOf(join.Body),
		snapshot: tableOf(join.Snapshot)}
	s.jobs = append(s.jobs, j)
	for _, j := range s.jobs {
		j.rounds = 0
	}
	s.restart()
	return j
}

// goOn takes that a job is within an iteration, of which it was not seen how it began.
func (j *job) goOn(now time.Duration, r *lease.Rejoin) {
	t := j.tableFor(&lease.Want{Snapshot: r.InSnapshot})
	j.active, j.ends = r.Seniority > 0 || r.Hold > r.Base, r.Seniority == 0
	switch {
	case len(t.steps) == 0:
	case r.Seniority > 0:
		j.in, j.at, j.since = t, min(r.Group, t.lastStep()), now
	case r.Hold > r.Base:
		j.in, j.at, j.since = t, t.lastStep()+1, now
	}
}

func (s *Scheduler) ask(now time.Duration, j *job, w *lease.Want) {
	j.asked = now
	if w.First {
		j.asks = true
		if j.in != nil && j.at == j.in.lastStep() {
			j.step(now, j.in.lastStep()+1)
			j.trained()
		}
		return
	}
	total := max(j.hold, w.Hold) - j.hold
	for _, other := range s.jobs {
		total += other.hold
	}
	j.short = total > s.capacity
	switch {
	case j.in == nil || j.at >= len(j.seen):
	case j.at > 0:
		j.seen[j.at].time = now - j.since
	case j.early >= 0:
		j.in.steps[j.in.lastStep()+1].time = now - j.early
	}
}

// overlaps reports whether a job has something in flight of the iteration before the one that it asks for.
func (j *job) overlaps() bool { return j.in != nil && j.at > j.in.lastStep() }

// step has a job in the next step of its iteration.
func (j *job) step(now time.Duration, at int) {
	if j.at < len(j.seen) && at > j.at {
		j.seen[j.at].time = now - j.since
	}
	j.at, j.since = at, now
}

func (j *job) granted(now time.Duration, w *lease.Want) {
	j.hold = max(j.hold, w.Hold)
	if j.short {
		j.waited += now - j.asked
	}
	t := j.tableFor(w)
	j.active, j.ends = true, w.Last
	if len(t.steps) == 0 {
		j.in = nil
		return
	}
	begins := now
	if w.First {
		j.early = -1
		if j.overlaps() {
			j.early, begins = j.since, max(now, j.since+j.in.steps[j.at].time)
		}
		j.in, j.whole, j.waited = t, true, 0
		j.seen = append(j.seen[:0], t.steps...)
	} else if j.in != t {
		j.in, j.whole, j.seen = t, false, nil
	}
	j.at, j.since = w.Group, begins
	if j.at < len(j.seen) {
		j.seen[j.at].pages = j.hold
	}
}

func (j *job) passed(now time.Duration, hold int) {
	j.hold = hold
	if !j.active || !j.ends || hold > j.base {
		return
	}
	j.active = false
	if j.in == nil {
		j.profiled = true
		return
	}
	if j.at == j.in.lastStep() {
		j.step(now, j.at+1)
		j.trained()
	}
	tail := &j.in.steps[j.at]
	tail.time = now - j.since
	j.in = nil
}

// trained takes what was seen of an iteration as what is expected of the next one (5.3, C-1). What was in flight at its
// end is known when that has ended, before another iteration began.
func (j *job) trained() {
	j.profiled = true
	j.rounds++
	if j.whole {
		copy(j.in.steps[:len(j.in.steps)-1], j.seen)
		j.in.steps[len(j.in.steps)-1].pages = j.hold
	}
	if length := j.in.length(); length > 0 && j.waited > length/wrongPart {
		j.wrong++
	} else {
		j.wrong = 0
	}
}

// budget is what jobs may hold together in the informed phase.
func (s *Scheduler) budget() int {
	rounds := (100 - firstPercent) / perRound
	for _, j := range s.jobs {
		rounds = min(rounds, j.rounds)
	}
	return s.capacity * (firstPercent + perRound*rounds) / 100
}

// When implements lease.Method. An iteration is delayed as a whole (5.2), and nothing else is.
func (s *Scheduler) When(now time.Duration, w *lease.Want) time.Duration {
	j := s.find(w.Job)
	if !w.First {
		return now
	}
	alone := true
	for _, other := range s.jobs {
		if other == j {
			continue
		}
		alone = alone && !other.active
		if j.profiled && !other.profiled && (other.asks || other.active) {
			return lease.Never // the first iteration of the other is profiled (5.3)
		}
	}
	own := j.tableFor(w)
	if alone {
		return now
	}
	if !j.profiled || s.turns || !own.timed() {
		return lease.Never
	}
	s.courses = s.courses[:0]
	beside := 0
	var late time.Duration // by how much a step takes longer than was expected
	for _, other := range s.jobs {
		switch {
		case other == j:
		case !other.active:
			beside += other.base
		case other.in == nil || !other.in.timed():
			return lease.Never
		default:
			spent := now - other.since
			late = max(late, spent-other.in.steps[other.at].time)
			s.courses = append(s.courses, course{steps: other.in.steps[other.at:], spent: spent, base: other.base})
		}
	}
	s.field = addCourses(s.field, s.courses, beside)
	var from time.Duration // its own kernels keep it from beginning before
	if j.overlaps() {
		from = max(0, j.since+j.in.steps[j.at].time-now)
	}
	shift := leastShift(own.steps, j.base, from, s.field, s.budget())
	if shift == from {
		return now
	}
	return now + max(shift, late) // it is asked again before if something is heard of the others
}
