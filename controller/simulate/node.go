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
// jumps over iterations that are alike (folding).
type node struct {
	name   string
	device *sim.Device
	host   *executor.Host
	// clockOffset is the time of the world minus that of the device.
	clockOffset time.Duration
	// events are those that the host has told and the way of scheduling has not taken yet.
	events []executor.Event
	jobs   []*nodeJob
	// fold allows folding.
	fold bool
	// folded says that the device stands still since foldedAt, while time passes in the world.
	folded   bool
	foldedAt time.Duration
	// wake is when the device has to go on iteration by iteration. It counts while the node is folded.
	wake time.Duration

	// nextKnown says that nextAt and busy still hold: when something happens next, by the device's clock, and whether
	// anything does.
	nextKnown bool
	nextAt    time.Duration
	busy      bool

	// accounted is the time of the world up to which arenas are in arenaSeconds.
	accounted time.Duration
	// arenaSeconds is the integral of all arenas over time, in bytes times seconds.
	arenaSeconds float64
	// copied is the bytes that jobs have copied which have left.
	copied graph.Bytes
}

// nodeJob is how a job trains on a node.
type nodeJob struct {
	name string
	// iterations is how many iterations it trains in all, done how many of them are complete.
	iterations int
	done       int
	// atRest says that it is in Home until it is told something.
	atRest bool
	ended  bool
	epoch  int64
	// endTimes are those of iterations since jobs came, went or changed, oldest first.
	endTimes []time.Duration
	// iterationTime is how many nanoseconds an iteration takes while the node is folded.
	iterationTime float64
	// fraction is the part of an iteration that earlier jumps have left over, 0 to 1.
	fraction float64
	// lastCopied is the bytes that the newest iteration has copied, copied those of all.
	lastCopied graph.Bytes
	copied     graph.Bytes
	arena      graph.Bytes
}

// window is how many iterations of the slowest job of a node make a window. Two windows, one after the other, are
// compared: the iterations of a job are alike if their means in the two differ by no more than tolerance.
const (
	window    = 4
	tolerance = 0.002
)

// margin is how many iterations before its last a job is trained iteration by iteration again.
const margin = 3

func newNode(name string, facts cost.Facts, fold bool) *node {
	n := &node{name: name, device: sim.New(facts, sim.Options{}), fold: fold}
	n.host = executor.NewHost(n.device, n.observe)
	return n
}

// now is the time of the world up to which the device has gone on.
func (n *node) now() time.Duration { return n.device.Now() + n.clockOffset }

// next returns when something happens on the node, and whether anything does.
func (n *node) next() (time.Duration, bool) {
	if n.folded {
		return n.wake, true
	}
	if !n.nextKnown {
		n.nextKnown = true
		n.nextAt, n.busy = n.device.Ahead()
	}
	return n.nextAt + n.clockOffset, n.busy
}

// tell has the host do something at a time of the world.
func (n *node) tell(now time.Duration, do func(*executor.Host)) error {
	n.unfold(now)
	if _, busy := n.device.Ahead(); !busy {
		n.clockOffset = now - n.device.Now()
	}
	n.forgetTimes()
	do(n.host)
	return n.poll()
}

// poll lets the device go on to the next instant at which something ends.
func (n *node) poll() error {
	n.nextKnown = false
	if _, err := n.host.Poll(context.Background()); err != nil {
		return fmt.Errorf("device %s: %w", n.name, err)
	}
	return nil
}

// advance goes on at a time that next has returned, and folds the node if it can.
func (n *node) advance(now time.Duration) error {
	n.unfold(now)
	if err := n.poll(); err != nil {
		return err
	}
	n.refold()
	return nil
}

// add has a node know of a job before its host does.
func (n *node) add(s executor.Spec) *nodeJob {
	c := &nodeJob{name: s.Name, iterations: s.Iterations, done: s.Begin}
	n.jobs = append(n.jobs, c)
	return c
}

func (n *node) find(job string) *nodeJob {
	i := slices.IndexFunc(n.jobs, func(c *nodeJob) bool { return c.name == job })
	if i < 0 {
		return nil
	}
	return n.jobs[i]
}

// account adds up what arenas have taken until now.
func (n *node) account() {
	for _, c := range n.jobs {
		n.arenaSeconds += float64(c.arena) * (n.now() - n.accounted).Seconds()
	}
	n.accounted = n.now()
}

// forgetTimes forgets how long iterations took, because that changes now.
func (n *node) forgetTimes() {
	for _, c := range n.jobs {
		c.endTimes = c.endTimes[:0]
	}
}

// observe takes an event of the host.
func (n *node) observe(e executor.Event) {
	n.events = append(n.events, e)
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
		c.atRest, c.arena = false, e.Applied.Arena
	case e.Parked != 0:
		c.atRest = true
	case e.Home:
		n.account()
		c.atRest, c.arena = true, 0
	case e.Ended != nil:
		c.ended = true
	case e.Removed:
		n.copied += c.copied
		n.jobs = slices.DeleteFunc(n.jobs, func(other *nodeJob) bool { return other == c })
	}
	n.forgetTimes()
}

func (c *nodeJob) report(r *executor.Report) {
	c.done++
	c.lastCopied = 0
	for _, m := range r.Copies {
		c.lastCopied += m.Bytes
	}
	c.copied += c.lastCopied
	if r.Epoch != c.epoch {
		c.epoch, c.endTimes = r.Epoch, c.endTimes[:0]
	}
	c.endTimes = append(c.endTimes, r.End)
}

// means returns the mean times of an iteration between from and middle, and between middle and to. ok says that enough
// iterations have ended for that.
func (c *nodeJob) means(from, middle, to time.Duration) (before, after float64, ok bool) {
	last := func(until time.Duration) int { // the last iteration that ended until then
		at, found := slices.BinarySearch(c.endTimes, until)
		if !found {
			at--
		}
		return at
	}
	i, j, k := last(from), last(middle), last(to)
	if i < 0 || j == i || k == j {
		return 0, 0, false
	}
	return float64(c.endTimes[j]-c.endTimes[i]) / float64(j-i), float64(c.endTimes[k]-c.endTimes[j]) / float64(k-j),
		true
}

// refold stops training iteration by iteration if all jobs that train do it evenly.
func (n *node) refold() {
	if !n.fold || n.folded {
		return
	}
	slowest := n.slowest()
	if slowest == nil || len(slowest.endTimes) < 2*window+1 {
		return
	}
	ends := slowest.endTimes[len(slowest.endTimes)-2*window-1:]
	wake := time.Duration(math.MaxInt64)
	for _, c := range n.training() {
		before, after, ok := c.means(ends[0], ends[window], ends[2*window])
		left := c.iterations - c.done - margin
		if !ok || left <= 0 || math.Abs(after-before) > tolerance*after {
			return
		}
		c.iterationTime = (before + after) / 2
		wake = min(wake, n.now()+time.Duration(float64(left)*c.iterationTime))
	}
	n.folded, n.foldedAt, n.wake = true, n.now(), wake
}

// training are the jobs that are neither at rest nor over.
func (n *node) training() []*nodeJob {
	return slices.DeleteFunc(slices.Clone(n.jobs), func(c *nodeJob) bool { return c.atRest || c.ended })
}

// slowest is the job of those that train of which the fewest iterations have ended. nil: none trains.
func (n *node) slowest() *nodeJob {
	var slowest *nodeJob
	for _, c := range n.training() {
		if slowest == nil || len(c.endTimes) < len(slowest.endTimes) {
			slowest = c
		}
	}
	return slowest
}

// unfold counts what was trained from when the node was folded up to a time of the world.
func (n *node) unfold(now time.Duration) {
	if !n.folded {
		return
	}
	n.folded = false
	past := max(0, min(now, n.wake)-n.foldedAt)
	n.clockOffset += past
	for _, c := range n.training() {
		exact := float64(past)/c.iterationTime + c.fraction
		skip := min(int(exact), c.iterations-c.done-margin)
		if c.fraction = min(exact-float64(skip), 1); skip <= 0 {
			continue
		}
		c.done += skip
		c.copied += graph.Bytes(skip) * c.lastCopied
		c.endTimes = c.endTimes[:0]
		n.host.Skip(c.name, skip)
	}
}
