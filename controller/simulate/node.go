package simulate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"tensile/device/sim"
	"tensile/executor"
	"tensile/graph"
	"tensile/graph/cost"
)

// node is a simulated device and the host that trains jobs on it. Its clock stands while it has nothing to do, and
// jumps over iterations that are alike.
type node struct {
	name   string
	device *sim.Device
	host   *executor.Host
	behind time.Duration // of the device's clock against that of the world
	heard  []executor.Event
	jobs   []*course
	fold   bool
	folded bool // since the world's time of fold
	since  time.Duration
	wake   time.Duration // when it has to go on iteration by iteration, while it is folded

	asked bool          // what the device said is still so: when something happens next, if anything does
	ahead time.Duration // of the device's clock
	busy  bool

	accounted time.Duration // up to which arenas are in filled
	filled    float64       // the integral of all arenas over time, in bytes times seconds
	copied    graph.Bytes   // by jobs that have left
}

// course is how a job of a node trains.
type course struct {
	name       string
	iterations int // with which it ends
	done       int
	rests      bool // in Home, until it is told something
	ended      bool
	epoch      int64
	ends       []time.Duration // of those since jobs came, went or changed, oldest first
	each       float64         // nanoseconds that an iteration takes, while the node is folded
	part       float64         // of an iteration that earlier jumps have left over
	moved      graph.Bytes     // by copies of the newest iteration
	copied     graph.Bytes     // by all
	arena      graph.Bytes
}

// alike is how many iterations of the slowest job of a node make a window. Two windows, one after the other, are
// compared: the iterations of a job are alike if their means in the two differ by no more than tolerance.
const (
	alike     = 4
	tolerance = 0.002
)

// margin is how many iterations before a job's last one it is trained iteration by iteration again.
const margin = 3

func newNode(name string, facts cost.Facts, fold bool) *node {
	n := &node{name: name, device: sim.New(facts, sim.Options{}), fold: fold}
	n.host = executor.NewHost(n.device, n.observe)
	return n
}

// now is the time of the world that the device has come to.
func (n *node) now() time.Duration { return n.device.Now() + n.behind }

// next returns when something happens on the node, and whether anything does.
func (n *node) next() (time.Duration, bool) {
	if n.folded {
		return n.wake, true
	}
	if !n.asked {
		n.asked = true
		n.ahead, n.busy = n.device.NextTime()
	}
	return n.ahead + n.behind, n.busy
}

// tell has the host do something at a time of the world.
func (n *node) tell(now time.Duration, do func(*executor.Host)) error {
	n.unfold(now)
	if _, busy := n.device.NextTime(); !busy {
		n.behind = now - n.device.Now()
	}
	n.stir()
	do(n.host)
	return n.poll()
}

// poll lets the device go on to the next instant at which something ends.
func (n *node) poll() error {
	n.asked = false
	if _, err := n.host.Poll(context.Background()); err != nil {
		return fmt.Errorf("device %s: %w", n.name, err)
	}
	return nil
}

// work goes on at a time that next has told, and folds the node if it can.
func (n *node) work(now time.Duration) error {
	n.unfold(now)
	if err := n.poll(); err != nil {
		return err
	}
	n.refold()
	return nil
}

// add has a node know of a job before its host does.
func (n *node) add(s executor.Spec) *course {
	c := &course{name: s.Name, iterations: s.Iterations, done: s.Begin}
	n.jobs = append(n.jobs, c)
	return c
}

func (n *node) find(job string) *course {
	i := slices.IndexFunc(n.jobs, func(c *course) bool { return c.name == job })
	if i < 0 {
		return nil
	}
	return n.jobs[i]
}

// account adds up what arenas have taken up to now.
func (n *node) account() {
	for _, c := range n.jobs {
		n.filled += float64(c.arena) * (n.now() - n.accounted).Seconds()
	}
	n.accounted = n.now()
}

// stir forgets what iterations took: they are others from now on.
func (n *node) stir() {
	for _, c := range n.jobs {
		c.ends = c.ends[:0]
	}
}

// observe is told by the host.
func (n *node) observe(e executor.Event) {
	n.heard = append(n.heard, e)
	c := n.find(e.Job)
	switch {
	case c == nil:
	case e.Report != nil:
		c.report(e.Report)
		return
	case e.Trace != nil || e.Snapshot != nil:
		return
	case e.Applied != nil:
		n.account()
		c.rests, c.arena = false, e.Applied.Arena
	case e.Parked != 0:
		c.rests = true
	case e.Home:
		n.account()
		c.rests, c.arena = true, 0
	case e.Ended != nil:
		c.ended = true
	case e.Removed:
		n.copied += c.copied
		n.jobs = slices.DeleteFunc(n.jobs, func(other *course) bool { return other == c })
	}
	n.stir()
}

func (c *course) report(r *executor.Report) {
	c.done++
	c.moved = 0
	for _, m := range r.Copies {
		c.moved += m.Bytes
	}
	c.copied += c.moved
	if r.Epoch != c.epoch {
		c.epoch, c.ends = r.Epoch, c.ends[:0]
	}
	c.ends = append(c.ends, r.End)
}

// means returns what an iteration took in the mean between three moments, before and after the middle one, and whether
// enough have ended for that.
func (c *course) means(from, middle, to time.Duration) (before, after float64, ok bool) {
	last := func(until time.Duration) int { // the last iteration that ended until then
		at, found := slices.BinarySearch(c.ends, until)
		if !found {
			at--
		}
		return at
	}
	i, j, k := last(from), last(middle), last(to)
	if i < 0 || j == i || k == j {
		return 0, 0, false
	}
	return float64(c.ends[j]-c.ends[i]) / float64(j-i), float64(c.ends[k]-c.ends[j]) / float64(k-j), true
}

// refold stops training iteration by iteration if all that train do it evenly.
func (n *node) refold() {
	if !n.fold || n.folded {
		return
	}
	slowest := n.slowest()
	if slowest == nil || len(slowest.ends) < 2*alike+1 {
		return
	}
	ends := slowest.ends[len(slowest.ends)-2*alike-1:]
	wake := time.Duration(math.MaxInt64)
	for _, c := range n.training() {
		before, after, ok := c.means(ends[0], ends[alike], ends[2*alike])
		left := c.iterations - c.done - margin
		if !ok || left <= 0 || math.Abs(after-before) > tolerance*after {
			return
		}
		c.each = (before + after) / 2
		wake = min(wake, n.now()+time.Duration(float64(left)*c.each))
	}
	n.folded, n.since, n.wake = true, n.now(), wake
}

// training are the jobs that are neither at rest nor over.
func (n *node) training() []*course {
	return slices.DeleteFunc(slices.Clone(n.jobs), func(c *course) bool { return c.rests || c.ended })
}

// slowest is the job that trains of which the fewest iterations have ended; nil: none trains.
func (n *node) slowest() *course {
	var slowest *course
	for _, c := range n.training() {
		if slowest == nil || len(c.ends) < len(slowest.ends) {
			slowest = c
		}
	}
	return slowest
}

// unfold counts what was trained since a node was folded, up to a time of the world.
func (n *node) unfold(now time.Duration) {
	if !n.folded {
		return
	}
	n.folded = false
	past := max(0, min(now, n.wake)-n.since)
	n.behind += past
	for _, c := range n.training() {
		exact := float64(past)/c.each + c.part
		skip := min(int(exact), c.iterations-c.done-margin)
		if c.part = min(exact-float64(skip), 1); skip <= 0 {
			continue
		}
		c.done += skip
		c.copied += graph.Bytes(skip) * c.moved
		c.ends = c.ends[:0]
		n.host.Skip(c.name, skip)
	}
}
