package shift

import (
	"math"
	"time"
)

// step is a part of an iteration in which a job holds so many pages.
type step struct {
	pages int
	time  time.Duration
}

// course is what is left of an iteration: its steps, of which the first has begun already.
type course struct {
	steps []step
	spent time.Duration // of the first step
	base  int           // what the job holds after the last step
}

// field is how many pages other jobs hold together, from now on. The last segment does not end.
type field []segment

type segment struct {
	end   time.Duration
	pages int
}

// forever is the end of a field.
const forever time.Duration = math.MaxInt64

// over puts what several jobs hold over one another, beside jobs that hold so many pages all the time. It writes into
// to, and moves the courses on to their ends.
func over(to field, courses []course, beside int) field {
	to = to[:0]
	var now time.Duration
	for {
		pages, next := beside, forever
		for i := range courses {
			c := &courses[i]
			for len(c.steps) > 0 && c.spent >= c.steps[0].time {
				c.steps, c.spent = c.steps[1:], 0
			}
			if len(c.steps) == 0 {
				pages += c.base
				continue
			}
			pages += c.steps[0].pages
			next = min(next, c.steps[0].time-c.spent)
		}
		if next == forever {
			return append(to, segment{forever, pages})
		}
		now += next
		to = append(to, segment{now, pages})
		for i := range courses {
			courses[i].spent += next
		}
	}
}

// maxSweeps bounds the search of least. One sweep finds all that is wrong with a shift, and the next one is the least
// that mends it.
const maxSweeps = 64

// least returns the least time from which on an iteration can be, and no sooner than from, so that its job and the
// others hold no more than the capacity together at any time: Equations 1 and 2, for an iteration that is shifted as a
// whole. Once all iterations of the others have ended it can be in any case (5.3, Deadlock potential). What the job
// holds up to its base it holds anyhow.
func least(own []step, base int, from time.Duration, others field, capacity int) time.Duration {
	ended := from // of all others
	if n := len(others); n > 1 {
		ended = max(from, others[n-2].end)
	}
	shift := from
	for range maxSweeps {
		need := shift
		begin := shift // of the step
		j := 0
		run, most := -1, 0 // the last segment of those after one another that have no room for so many pages
		for _, s := range own {
			for others[j].end <= begin {
				j++
			}
			end := begin + s.time
			for k := j; s.time > 0 && s.pages > base && k < len(others) && (k == j || others[k-1].end < end); k++ {
				switch {
				case k <= run && s.pages <= most: // the step for which that was so has to wait for longer
				case s.pages+others[k].pages <= capacity:
					continue
				default: // it must not begin before the end of the last segment of the run
					for run = max(run, k); run+1 < len(others) && s.pages+others[run+1].pages > capacity; {
						run++
					}
					if run+1 == len(others) {
						return ended
					}
					most = s.pages
					need = max(need, shift+others[run].end-begin)
				}
				k = run
			}
			begin = end
		}
		if need == shift {
			return shift
		}
		shift = need
	}
	return ended
}
