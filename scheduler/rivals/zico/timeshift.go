package zico

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

	pages int           // of the present step
	end   time.Duration // of the present step, from the beginning of the field on
}

// next goes on to the step that begins now, of which so much is spent.
func (c *course) next(now, spent time.Duration) {
	for len(c.steps) > 0 && spent >= c.steps[0].time {
		c.steps, spent = c.steps[1:], 0
	}
	c.pages, c.end = c.base, forever
	if len(c.steps) > 0 {
		c.pages, c.end = c.steps[0].pages, now+c.steps[0].time-spent
	}
}

// field is how many pages other jobs hold together, from now on. The last segment does not end.
type field []segment

type segment struct {
	end   time.Duration
	pages int
}

// forever is the end of a field.
const forever time.Duration = math.MaxInt64

// addCourses puts what several jobs hold over one another, beside jobs that hold so many pages all the time. It writes
// into to, and moves the courses on to their ends.
func addCourses(to field, courses []course, beside int) field {
	to = to[:0]
	pages, next := beside, forever
	for i := range courses {
		c := &courses[i]
		c.next(0, c.spent)
		pages += c.pages
		next = min(next, c.end)
	}
	for next < forever {
		to = append(to, segment{next, pages})
		now := next
		next = forever
		for i := range courses {
			c := &courses[i]
			if c.end == now {
				pages -= c.pages
				c.steps = c.steps[1:]
				c.next(now, 0)
				pages += c.pages
			}
			next = min(next, c.end)
		}
	}
	return append(to, segment{forever, pages})
}

// maxSweeps bounds the search of least. One sweep finds all that is wrong with a shift, and the next one is the least
// that mends it.
const maxSweeps = 64

// leastShift returns the least time from which on an iteration can be, and no sooner than from, so that its job and the
// others hold no more than the capacity together at any time: Equations 1 and 2, for an iteration that is shifted as a
// whole. Once all iterations of the others have ended it can be in any case (5.3, Deadlock potential). What the job
// holds up to its base it holds anyhow.
func leastShift(own []step, base int, from time.Duration, others field, capacity int) time.Duration {
	ended := from // of all others
	if n := len(others); n > 1 {
		ended = max(from, others[n-2].end)
	}
	peak := 0
	for _, s := range own {
		peak = max(peak, s.pages)
	}
	calm := len(others) // from this segment on there is room for any step
	for calm > 0 && peak+others[calm-1].pages <= capacity {
		calm--
	}
	shift := from
	for range maxSweeps {
		need := shift
		begin := shift // of the step
		j := 0
		run, most := -1, 0 // the last segment of those after one another that have no room for so many pages
		for _, s := range own {
			end := begin + s.time
			if s.time > 0 && s.pages > base {
				for others[j].end <= begin {
					j++
				}
				if j >= calm {
					break
				}
				for k := j; k < calm; k++ {
					// Of a run that is known the step for which it has no room has to wait for longer.
					if s.pages+others[k].pages > capacity && (k > run || s.pages > most) {
						// It must not begin before the end of the last segment of the run.
						for run = max(run, k); run+1 < len(others) && s.pages+others[run+1].pages > capacity; {
							run++
						}
						if run+1 == len(others) {
							return ended
						}
						k, most = run, s.pages
						need = max(need, shift+others[run].end-begin)
					}
					if others[k].end >= end {
						break
					}
				}
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
