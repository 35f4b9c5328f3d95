package zico

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/device/lease"
)

const ms = time.Millisecond

// randomSteps returns steps of an iteration above a base, some of which take no time.
func randomSteps(r *rand.Rand) []step {
	steps := make([]step, 2+r.IntN(8))
	for i := range steps {
		steps[i] = step{1 + r.IntN(9), time.Duration(r.IntN(5)) * ms}
	}
	return steps
}

// at is what steps hold at a time, base before and after them.
func at(steps []step, base int, begin, t time.Duration) int {
	for _, s := range steps {
		if t < begin {
			break
		}
		if begin += s.time; t < begin {
			return s.pages
		}
	}
	return base
}

// The least shift is that of a search through all milliseconds, which every time is one of.
func TestLeast(t *testing.T) {
	shifted := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		own, from := randomSteps(r), time.Duration(r.IntN(4))*ms
		var courses, copies []course
		var ended time.Duration
		for range 1 + r.IntN(3) {
			c := course{steps: randomSteps(r), base: 1}
			c.spent = time.Duration(r.IntN(5)-1) * ms
			copies = append(copies, c)
			if c.spent < 0 { // the first step begins later, and is held from now on
				c.steps = slices.Clone(c.steps)
				c.steps[0].time -= c.spent
				c.spent = 0
			}
			courses = append(courses, c)
			begin := -min(c.spent, c.steps[0].time) // one that is late is to end at once
			end := begin
			for _, s := range c.steps {
				end += s.time
			}
			ended = max(ended, end)
		}
		beside, capacity := r.IntN(3), 6+r.IntN(20)
		fits := func(shift time.Duration) bool {
			for now := shift; now < shift+100*ms; now += ms {
				x := at(own, 0, shift, now)
				sum := x + beside
				for _, c := range courses {
					sum += at(c.steps, c.base, -min(c.spent, c.steps[0].time), now)
				}
				if x > 1 && sum > capacity {
					return false
				}
			}
			return true
		}
		want := from
		for ; want < max(from, ended) && !fits(want); want += ms {
		}
		got := leastShift(own, 1, from, addCourses(nil, copies, beside), capacity)
		if got != want {
			t.Fatalf("seed %d: %v from %v beside %v and %d in %d: shift %v, want %v", seed, own, from, courses, beside,
				capacity, got, want)
		}
		if got > from {
			shifted++
		}
	}
	if shifted < 1000 {
		t.Errorf("%d were shifted", shifted)
	}
}

// BenchmarkWhen decides on an iteration with 64 groups beside others in the middle of theirs, which has to be shifted
// past their peaks. No two jobs' groups end together, or eight jobs would have as few segments as two.
func BenchmarkWhen(b *testing.B) {
	for _, jobs := range []int{2, 8} {
		b.Run(fmt.Sprint(jobs, " jobs"), func(b *testing.B) {
			s := New()
			s.Tell(0, lease.Note{Capacity: &lease.Capacity{Pages: 200 * jobs}})
			for i := range jobs {
				var groups []lease.Group
				for g := range 64 {
					groups = append(groups, lease.Group{Pages: 10 + 10*min(g, 63-g), Time: ms + time.Duration(i)})
				}
				join := lease.Join{Job: lease.Job(fmt.Sprint(i)), Base: 10, Peak: 330, Body: groups}
				s.Tell(0, lease.Note{Rejoined: &lease.Rejoin{Join: join, Hold: 100 * min(i, 1), Group: 4 * i,
					Seniority: int64(i)}})
			}
			w := lease.Want{Job: "0", First: true, Rest: 330, Hold: 10}
			b.ReportAllocs()
			for b.Loop() {
				if s.When(ms, &w) <= ms {
					b.Fatal("it is not shifted")
				}
			}
		})
	}
}
