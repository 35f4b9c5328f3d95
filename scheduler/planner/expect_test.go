package planner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/device/lease"
	"tensile/graph/cost"
	"tensile/plan/program"
)

// course returns the course of a job whose groups need the first so many pages and take so long each, all of it work
// but for a launch.
func course(base int, need []int, took, launch time.Duration) Course {
	pages := func(n int) program.Pages {
		if n == 0 {
			return nil
		}
		return program.Pages{{From: 0, To: n}}
	}
	c := Course{Base: pages(base), Alone: time.Duration(len(need)) * took, Peak: slices.Max(need)}
	for i, n := range need {
		c.Parts = append(c.Parts, Part{Need: pages(n), Rest: slices.Max(need[i:]),
			Use: cost.Use{Launch: launch, Work: took - launch}})
	}
	return c
}

// rates asks what is expected, of jobs that share a device on which one job can use all.
func rates(t *testing.T, capacity int, courses ...Course) []float64 {
	t.Helper()
	got, err := Expect(courses, capacity, cost.Sharing{Launch: time.Millisecond, Share: 1})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func near(got, want float64) bool { return math.Abs(got-want) < 0.04 }

// Jobs that need all memory all the time take turns; with memory for both at once, or for the one's end and the other's
// begin, they fill the time in which the other launches. Jobs that do not fit are refused.
func TestExpect(t *testing.T) {
	ms := time.Millisecond
	full := course(1, []int{8, 8, 8, 8}, 10*ms, 5*ms)
	for _, c := range []struct {
		what     string
		capacity int
		course   Course
		least    float64 // of both together
		most     float64
	}{
		{"in turns", 9, full, 0.99, 1.01},
		{"at once", 16, full, 1.5, 1.7},
		{"at once, all of it work", 16, course(1, []int{8, 8, 8, 8}, 10*ms, 0), 0.99, 1.01},
		{"overlapping", 9, course(1, []int{1, 4, 8, 4, 1}, 10*ms, 5*ms), 1.5, 1.7},
	} {
		got := rates(t, c.capacity, c.course, c.course)
		if sum := got[0] + got[1]; sum < c.least || sum > c.most {
			t.Errorf("%s: jobs get on at %v, want %v to %v together", c.what, got, c.least, c.most)
		}
	}
	if _, err := Expect([]Course{full, full}, 8, cost.Sharing{}); err == nil {
		t.Error("two jobs that hold a page between iterations, and need 8, fit into 8")
	}
	if got := rates(t, 8, full); !near(got[0], 1) {
		t.Errorf("a job alone gets on at %v", got)
	}
}

// randomCourse takes whole nanoseconds, and groups end some time after the unit is done with them.
func randomCourse(rng *rand.Rand) Course {
	base := rng.IntN(3)
	var need []int
	for range 2 + rng.IntN(5) {
		need = append(need, base+rng.IntN(8))
	}
	c := course(base, need, 0, 0)
	c.Alone = 0
	for i := range c.Parts {
		c.Parts[i].Use = cost.Use{Launch: time.Duration(rng.IntN(20)), Work: time.Duration(1 + rng.IntN(40))}
		c.Parts[i].Lag = time.Duration(rng.IntN(30))
		c.Alone += c.Parts[i].Took()
	}
	return c
}

// What is expected agrees with a simulation nanosecond by nanosecond, on a device where jobs do not slow each other
// down. Never is more held than there is, and nobody waits for ever.
func TestExpectAgainstSteps(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 175))
		var courses []Course
		least, rest := 0, 0
		for range 1 + rng.IntN(4) {
			c := randomCourse(rng)
			courses = append(courses, c)
			least, rest = least+c.Base.Count(), max(rest, c.Peak-c.Base.Count())
		}
		least += rest
		capacity := least + rng.IntN(1+2*least)
		got, err := Expect(courses, capacity, cost.Sharing{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want := newStepper(t, seed, courses, capacity).rates()
		if want == nil {
			t.Fatalf("seed %d: a job waits for ever", seed)
		}
		for i := range got {
			if math.Abs(got[i]-want[i]) > 1e-9 {
				t.Fatalf("seed %d: jobs get on at %v, by steps at %v", seed, got, want)
			}
		}
	}
}

// A guess says of equal jobs that they are equally fast, others not, and is about what is expected of all together.
func TestGuess(t *testing.T) {
	ms := time.Millisecond
	d := Device{Page: 1, Sharing: cost.Sharing{Launch: ms, Share: 1}}
	a, b := course(1, []int{1, 4, 8, 4, 1}, 10*ms, 5*ms), course(1, []int{2, 9, 3}, 9*ms, 2*ms)
	heavy := a
	heavy.Weight = 3
	courses := []Course{a, b, a, heavy, b}
	want, err := d.Rates(courses, 17)
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Guess(courses, 17)
	if err != nil {
		t.Fatal(err)
	}
	if got[0] != got[2] || got[1] != got[4] || got[0] == got[3] || got[0] == got[1] {
		t.Errorf("jobs 0 and 2, and 1 and 4, are equal, and a guess says %v", got)
	}
	var sum, all float64
	for i := range got {
		sum, all = sum+got[i], all+want[i]
	}
	if math.Abs(sum/all-1) > 0.1 {
		t.Errorf("a guess is %v, and %v is expected", got, want)
	}
	if _, err := d.Guess(courses, 9); err == nil {
		t.Error("jobs that do not fit have a guess")
	}
}

// stepper is the simulation.
type stepper struct {
	t        *testing.T
	seed     uint64
	machine  *lease.Machine
	capacity int
	now      int
	jobs     []*stepped
}

type stepped struct {
	Course
	groups []stepGroup // that were granted and have not passed
	next   int         // the next group's number, over all iterations
	passed int
	done   int // nanoseconds of work
	asking bool
	ended  bool // a group, now
}

type stepGroup struct{ number, left, lag int }

func name(i int) lease.Job { return lease.Job(fmt.Sprint(i)) }

func newStepper(t *testing.T, seed uint64, courses []Course, capacity int) *stepper {
	s := &stepper{t: t, seed: seed, machine: lease.NewMachine(lease.Options{Still: -1}), capacity: capacity}
	s.machine.Step(lease.Input{Capacity: &lease.Capacity{Pages: capacity}})
	for i, c := range courses {
		s.jobs = append(s.jobs, &stepped{Course: c})
		s.machine.Step(lease.Input{Join: &lease.Join{Job: name(i), Ask: 1, Base: c.Base.Count(), Peak: c.Peak}})
	}
	for i := range s.jobs {
		s.ask(i)
	}
	return s
}

// holds is what a job holds with groups up to a number, that one left out.
func (j *stepped) holds(until int) int {
	n := len(j.Parts)
	switch {
	case j.passed == until && until%n == 0:
		return j.Base.Count()
	case j.passed == until: // pages from 0 on: what both need
		return min(j.Parts[(until-1)%n].Need.Count(), j.Parts[until%n].Need.Count())
	}
	most := 0
	for g := j.passed; g < until; g++ {
		most = max(most, j.Parts[g%n].Need.Count())
	}
	return most
}

func (s *stepper) tell(in lease.Input) {
	in.Now = time.Duration(s.now)
	for _, out := range s.machine.Step(in) {
		var i int
		fmt.Sscan(string(out.Job), &i)
		j := s.jobs[i]
		part := j.Parts[j.next%len(j.Parts)]
		j.groups = append(j.groups, stepGroup{j.next, int(part.Took()), int(part.Lag)})
		j.next, j.asking = j.next+1, false
		s.check()
		s.ask(i)
	}
}

// check fails if more is held than there is.
func (s *stepper) check() {
	total := 0
	for _, j := range s.jobs {
		total += j.holds(j.next)
	}
	if total > s.capacity {
		s.t.Fatalf("seed %d: jobs hold %d of %d pages", s.seed, total, s.capacity)
	}
}

// ask asks for the next group if one ahead of that at work is not there.
func (s *stepper) ask(i int) {
	j := s.jobs[i]
	open := 0
	if j.ended {
		open++ // the unit is about to hear of it
	}
	for _, g := range j.groups {
		if g.left > 0 {
			open++
		}
	}
	if open > 1 {
		return
	}
	n := j.next % len(j.Parts)
	j.asking = true
	s.tell(lease.Input{Want: &lease.Want{Job: name(i), Ask: int64(j.next + 2), First: n == 0, Last: n == len(j.Parts)-1,
		Rest: j.Parts[n].Rest, Hold: j.holds(j.next + 1)}})
}

// tick goes on by a nanosecond: of each job the first group that the unit is not done with, and the lag of the others.
// What happens at the same time happens job by job, and the end of a group before the lag of others. It reports whether
// something did.
func (s *stepper) tick() bool {
	s.now++
	for _, j := range s.jobs {
		if k := slices.IndexFunc(j.groups, func(g stepGroup) bool { return g.left > 0 }); k >= 0 {
			j.groups[k].left--
			j.done++
			j.ended = j.groups[k].left == 0
			if g := &j.groups[k]; j.ended {
				if g.lag += s.now; k > 0 {
					g.lag = max(g.lag, j.groups[k-1].lag)
				}
			}
		}
	}
	happened := false
	for s.event() {
		happened = true
	}
	return happened
}

// event carries out what is next of what happens now, and reports whether there was something.
func (s *stepper) event() bool {
	for i, j := range s.jobs {
		switch {
		case j.ended:
			if j.ended = false; !j.asking {
				s.ask(i)
			}
			return true
		case len(j.groups) > 0 && j.groups[0].left == 0 && j.groups[0].lag <= s.now:
			j.groups, j.passed = j.groups[1:], j.passed+1
			s.tell(lease.Input{Passed: &lease.Passed{Job: name(i), Seen: int64(j.next + 1), Hold: j.holds(j.next)}})
			if j.asking {
				s.ask(i)
			}
			return true
		}
	}
	return false
}

// rates is what is expected; nil: a job waits for ever.
func (s *stepper) rates() []float64 {
	least := func(iterations int) bool {
		for _, j := range s.jobs {
			if j.done < iterations*int(j.Alone) {
				return false
			}
		}
		return true
	}
	const long = 1 << 16
	for !s.tick() || !least(before) {
		if s.now > long {
			return nil
		}
	}
	since := s.now
	for _, j := range s.jobs {
		j.done = 0
	}
	for !s.tick() || !least(measured) {
		if s.now > long {
			return nil
		}
	}
	rates := make([]float64, len(s.jobs))
	for i, j := range s.jobs {
		rates[i] = float64(j.done) / float64(s.now-since)
	}
	return rates
}
