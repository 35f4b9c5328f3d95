package cost

import (
	"math"
	"slices"
	"time"
)

// Sharing is how the jobs on a device share its compute unit. An op is a launch, which competes with nothing, and work.
// The zero value is a device on which jobs do not slow one another down.
type Sharing struct {
	Launch time.Duration `json:"launch_ns"` // Longest launch of an op: the part of its time without work.
	Share  float64       `json:"share"`     // Share of the compute unit that a job at work uses alone; 0: none.
}

// Sharing returns how jobs share the device.
func (f Facts) Sharing() Sharing { return Sharing{f.Launch, 1 / float64(max(1, f.Parallel))} }

// Use is what an iteration of a job takes alone on a device.
type Use struct{ Launch, Work time.Duration }

// Add counts an op by the time that it takes alone.
func (s Sharing) Add(u *Use, alone time.Duration) {
	launch := min(alone, s.Launch)
	u.Launch, u.Work = u.Launch+launch, u.Work+alone-launch
}

// Use adds up the ops of an iteration.
func (s Sharing) Use(alone []time.Duration) Use {
	var u Use
	for _, a := range alone {
		s.Add(&u, a)
	}
	return u
}

// Busy is the part of an iteration alone that is work, 0 to 1.
func (u Use) Busy() float64 { return u.busy(1) }

// busy is the part of an iteration that is work when work takes slowdown times as long as alone.
func (u Use) busy(slowdown float64) float64 {
	work := float64(slowdown * float64(u.Work))
	if work <= 0 {
		return 0
	}
	return work / (float64(u.Launch) + work)
}

// Slowdown returns how many times as long as alone work takes while a mean number of other jobs are at work.
func (s Sharing) Slowdown(others float64) float64 {
	return max(1, float64(s.Share*others)+s.Share)
}

// Slowdowns returns, for each of some jobs that run together, how many times as long as alone its work takes.
func (s Sharing) Slowdowns(jobs []Use) []float64 { return s.SlowdownsIn(new(Room), jobs) }

// SlowdownsIn is Slowdowns without allocating: its result lies in r and is valid until the next call.
func (s Sharing) SlowdownsIn(r *Room, jobs []Use) []float64 {
	slowdowns := s.busyOthers(r, jobs, quickMixes)
	for i, others := range slowdowns {
		slowdowns[i] = s.Slowdown(others)
	}
	return slowdowns
}

// Room is the memory in which slowdowns are computed. The zero value is ready.
type Room struct {
	uses            []Use // per class
	count           []int // jobs per class
	class           []int // per job
	stride, has     []int
	working, others []float64
	perJob          []float64
}

// Contended returns how long an op takes beside other jobs: its launch, and its work times the slowdown. alone is its
// latency without them.
func (s Sharing) Contended(alone time.Duration, slowdown float64) time.Duration {
	launch := min(alone, s.Launch)
	return launch + time.Duration(math.Round(slowdown*float64(alone-launch)))
}

// Uncontended is the inverse of Contended: it returns what an op takes alone.
func (s Sharing) Uncontended(beside time.Duration, slowdown float64) time.Duration {
	launch := min(beside, s.Launch)
	return launch + time.Duration(math.Round(float64(beside-launch)/slowdown))
}

// maxMixes and quickMixes limit the time of BusyOthers and of Slowdowns; simulations call the latter at each turn.
const (
	maxMixes   = 1 << 14
	quickMixes = 1 << 7
)

// BusyOthers returns, for each of some jobs that run together, how many of the others are at work in the mean while it
// is.
//
// Jobs alternate between launches and work, and share the unit evenly: a closed queueing network of one server with
// processor sharing and one of delays, in which a job that begins work finds the others as they would be without it
// (Reiser and Lavenberg, Mean-Value Analysis of Closed Multichain Queuing Networks, 1980). Equal jobs are one class, so
// that the means follow from those of all smaller mixes of classes. Where there are too many of these, they follow from
// those of the mixes with one job less, and these from the mean of all their jobs less the job's own, which is a little
// too many.
func (s Sharing) BusyOthers(jobs []Use) []float64 { return s.busyOthers(new(Room), jobs, maxMixes) }

// busyOthers is BusyOthers with a limit on the mixes that are looked at.
func (s Sharing) busyOthers(r *Room, jobs []Use, most int) []float64 {
	r.uses, r.count, r.class = r.uses[:0], r.count[:0], r.class[:0]
	mixes := 1
	for _, u := range jobs {
		c := slices.Index(r.uses, u)
		if c < 0 {
			c = len(r.uses)
			r.uses, r.count = append(r.uses, u), append(r.count, 0)
		}
		r.count[c]++
		r.class = append(r.class, c)
	}
	for _, n := range r.count {
		if mixes *= n + 1; mixes > most {
			break
		}
	}
	mean := s.byMixes
	if mixes > most {
		mean = s.byLess
	}
	of := mean(r)
	r.perJob = r.perJob[:0]
	for _, c := range r.class {
		r.perJob = append(r.perJob, of[c])
	}
	return r.perJob
}

// cleared returns n zeros, in the memory of list if that is large enough.
func cleared[T any](list []T, n int) []T {
	list = slices.Grow(list[:0], n)[:n]
	clear(list)
	return list
}

// byMixes computes BusyOthers per class from smaller mixes. A mix has the number sum(k[c] * stride[c]), where k[c] is
// how many jobs of the class it has.
func (s Sharing) byMixes(r *Room) []float64 {
	r.stride, r.has, r.others = cleared(r.stride, len(r.uses)), cleared(r.has, len(r.uses)),
		cleared(r.others, len(r.uses))
	mixes := 1
	for c, n := range r.count {
		r.stride[c] = mixes
		mixes *= n + 1
	}
	r.working = cleared(r.working, mixes) // per mix: how many of its jobs are at work in the mean
	for mix := 1; mix < mixes; mix++ {
		c := 0
		for ; r.has[c] == r.count[c]; c++ {
			r.has[c] = 0
		}
		r.has[c]++
		sum := 0.0
		for ; c < len(r.uses); c++ { // of the classes before, the mix has no job
			if k := r.has[c]; k > 0 {
				sum += float64(float64(k) * r.uses[c].busy(s.Slowdown(r.working[mix-r.stride[c]])))
			}
		}
		r.working[mix] = sum
	}
	for c := range r.uses {
		r.others[c] = r.working[mixes-1-r.stride[c]]
	}
	return r.others
}

// byLess computes BusyOthers per class: how many jobs are at work in the mean in the mix that has one job less, by
// byMean. Newton's method begins at that of all jobs.
func (s Sharing) byLess(r *Room) []float64 {
	r.others = cleared(r.others, len(r.uses))
	all := s.byMean(r, 0)
	_, slope := s.met(r, all)
	for c, u := range r.uses {
		busy, rise := s.busyIn(u, all)
		r.count[c]--
		r.others[c] = s.byMean(r, all-busy/max(1e-3, 1-(slope-rise)))
		r.count[c]++
	}
	return r.others
}

// byMean works out how many jobs of a mix are at work in the mean, where each meets that mean less its own part in it:
// by Newton's method from a guess on, within what bounds the answer.
func (s Sharing) byMean(r *Room, guess float64) float64 {
	const rounds, near = 64, 1e-6
	low, high := 0.0, 0.0
	for _, n := range r.count {
		high += float64(n)
	}
	mean := min(max(low, guess), high)
	for range rounds {
		busy, slope := s.met(r, mean)
		if busy > mean {
			low = mean
		} else {
			high = mean
		}
		next := mean + (busy-mean)/max(1e-3, 1-slope)
		if next < low || next > high {
			next = low + (high-low)/2
		}
		if math.Abs(next-mean) < near {
			return next
		}
		mean = next
	}
	return mean
}

// met returns how many jobs of a mix are at work for an assumed mean, and its derivative by the mean.
func (s Sharing) met(r *Room, mean float64) (busy, slope float64) {
	for c, u := range r.uses {
		b, rise := s.busyIn(u, mean)
		busy, slope = busy+float64(float64(r.count[c])*b), slope+float64(float64(r.count[c])*rise)
	}
	return busy, slope
}

// busyIn is the part b of an iteration that is work beside a mean number of jobs at work, b of which is the job
// itself, and how that rises with the mean. Where the slowdown x = Share*(mean-b+1) is above 1, b = x*Work /
// (Launch+x*Work) is an equation for y = mean-b+1: v*y^2 + (Launch-mean*v)*y = (mean+1)*Launch, with v = Share*Work.
func (s Sharing) busyIn(u Use, mean float64) (busy, rise float64) {
	if u.Work <= 0 || u.Launch <= 0 || s.Share <= 0 {
		return u.busy(1), 0
	}
	launch, v := float64(u.Launch), float64(s.Share*float64(u.Work))
	p, q := launch-float64(mean*v), float64((mean+1)*launch)
	root := math.Sqrt(float64(p*p) + float64(4*float64(v*q)))
	y := 2 * q / (p + root)
	if p < 0 {
		y = (root - p) / (2 * v)
	}
	if float64(s.Share*y) <= 1 {
		return u.busy(1), 0
	}
	return mean + 1 - y, 1 - (float64(v*y)+launch)/root
}
