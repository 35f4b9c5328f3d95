package zico

import (
	"slices"
	"testing"
	"time"

	"tensile/device/lease"
	_ "tensile/internal/long" // the flag -long
)

// told returns a scheduler for so many pages, after some notes.
func told(pages int, notes ...lease.Note) *Scheduler {
	s := New()
	for _, n := range append(notes, lease.Note{Capacity: &lease.Capacity{Pages: pages}}) {
		s.Tell(0, n)
	}
	return s
}

// rejoined is a job of five groups of 10 ms: 2, 4, 8, 6 and 3 pages.
func rejoined(name lease.Job, hold, group int, seniority int64) lease.Note {
	var groups []lease.Group
	for _, pages := range []int{2, 4, 8, 6, 3} {
		groups = append(groups, lease.Group{Pages: pages, Time: 10 * ms})
	}
	return lease.Note{Rejoined: &lease.Rejoin{Join: lease.Join{Job: name, Base: 1, Peak: 8, Body: groups}, Hold: hold,
		Group: group, Seniority: seniority}}
}

// A job waits for want of memory if what it asks for is above the capacity with what the others hold, also of an
// iteration that began before the lease did.
func TestShort(t *testing.T) {
	for hold, want := range map[int]bool{1: false, 4: false, 5: true} { // b holds 2 already
		s := told(12, rejoined("a", 8, 2, 1), rejoined("b", 2, 0, 2))
		s.Tell(0, lease.Note{Asked: &lease.Want{Job: "b", Group: 1, Rest: 8, Hold: hold}})
		if got := s.find("b").short; got != want {
			t.Errorf("a holds 8, b asks for %d of 12: short of memory: %v, want %v", hold, got, want)
		}
	}
}

// What is known of an iteration that began before the lease did: which step it is in.
func TestGoOn(t *testing.T) {
	for _, c := range []struct {
		about        string
		note         lease.Note
		active, ends bool
		at           int // -1: none
	}{
		{"idle", rejoined("a", 1, 4, 0), false, true, -1},
		{"its last group is in flight", rejoined("a", 3, 4, 0), true, true, 5},
		{"within its iteration", rejoined("a", 8, 2, 1), true, false, 2},
		{"within it, and holding its base alone", rejoined("a", 1, 0, 1), true, false, 0},
		{"beyond the groups of its Join", rejoined("a", 8, 9, 1), true, false, 4},
	} {
		j := told(12, c.note).find("a")
		at := -1
		if j.in != nil {
			at = j.at
		}
		if j.active != c.active || j.ends != c.ends || at != c.at {
			t.Errorf("%s: active %v, ends %v, step %d; want %v, %v, %d", c.about, j.active, j.ends, at, c.active,
				c.ends, c.at)
		}
	}
}

// While a step takes longer than was expected, the scheduler wants to be asked again only after as long again.
func TestLate(t *testing.T) {
	s := told(14, rejoined("a", 4, 1, 1), rejoined("b", 1, 4, 0)) // the budget is 12
	w := &lease.Want{Job: "b", First: true, Rest: 8, Hold: 2}
	for now, want := range map[time.Duration]time.Duration{
		// a is to hold 4 pages for 10 ms, 8 for 10 ms, then 6. b holds 2 and 4 at first, 8 after 10 ms.
		0:       20 * ms,
		8 * ms:  12 * ms,
		16 * ms: 10 * ms, // as if the step ended now
		24 * ms: 14 * ms, // late by that
	} {
		if got := s.When(now, w) - now; got != want {
			t.Errorf("at %v: b begins after %v, want %v", now, got, want)
		}
	}
}

// Nothing is expected of an iteration of which no times are known: others begin when it has ended, and it when others
// have.
func TestUnknown(t *testing.T) {
	untimed := rejoined("a", 8, 2, 1)
	for i := range untimed.Rejoined.Body {
		untimed.Rejoined.Body[i].Time = 0
	}
	b := &lease.Want{Job: "b", First: true, Rest: 8, Hold: 2}
	for about, s := range map[string]*Scheduler{
		"the other's": told(100, untimed, rejoined("b", 1, 4, 0)),
		"its own": told(100, rejoined("a", 8, 2, 1), lease.Note{Joined: &lease.Join{Job: "b", Base: 1, Peak: 8}},
			lease.Note{Granted: b}, lease.Note{Granted: &lease.Want{Job: "b", Last: true, Rest: 1, Hold: 2}},
			lease.Note{Passed: &lease.Passed{Job: "b", Hold: 1}}),
		"the other's with a snapshot": told(100, rejoined("a", 1, 4, 0), rejoined("b", 1, 4, 0),
			lease.Note{Granted: &lease.Want{Job: "a", First: true, Snapshot: true, Rest: 8, Hold: 2}}),
	} {
		if !s.find("b").profiled {
			t.Errorf("%s times: b has not trained an iteration", about)
		}
		if at := s.When(ms, b); at != lease.Never {
			t.Errorf("%s times are not known: b begins at %v", about, at)
		}
	}
}

// What an iteration was seen to hold and how long its steps took, without waits for memory, is what is expected of the
// next one. While it holds no more than its base within it, it has not ended.
func TestSeen(t *testing.T) {
	s := told(100, rejoined("a", 3, 4, 0)) // in flight: 10 ms are expected of its last group
	want := func(group, hold int) *lease.Want {
		return &lease.Want{Job: "a", First: group == 0, Last: group == 4, Group: group, Rest: 8, Hold: hold}
	}
	s.Tell(5*ms, lease.Note{Asked: want(0, 3)})
	s.Tell(5*ms, lease.Note{Granted: want(0, 3)})
	a := s.find("a")
	if a.since != 10*ms {
		t.Errorf("the iteration is expected to begin at %v, when the one before has ended, want 10ms", a.since)
	}
	now := 8 * ms
	for group, hold := range []int{5, 9, 7, 4} { // of groups 1 to 4
		s.Tell(now, lease.Note{Asked: want(group+1, hold)})
		now += time.Duration(group) * 100 * ms // it waits for memory
		s.Tell(now, lease.Note{Granted: want(group+1, hold)})
		s.Tell(now, lease.Note{Passed: &lease.Passed{Job: "a", Hold: min(hold, group)}})
		if !a.active {
			t.Fatalf("it has ended with group %d", group+1)
		}
		now += time.Duration(group+1) * ms
	}
	s.Tell(now, lease.Note{Asked: want(0, 3)})
	wants := []step{{3, 0}, {5, ms}, {9, 2 * ms}, {7, 3 * ms}, {4, 4 * ms}, {3, 8 * ms}}
	if !slices.Equal(a.body.steps, wants) {
		t.Errorf("the next one is expected to be %v, want %v", a.body.steps, wants)
	}
}

// Jobs that have come to take turns train together again when a job comes or goes, and with another capacity.
func TestTogetherAgain(t *testing.T) {
	for _, c := range []struct {
		about string
		note  lease.Note
		turns bool
	}{
		{"a job comes", lease.Note{Joined: &lease.Join{Job: "c", Base: 1, Peak: 1}}, false},
		{"a job goes", lease.Note{Left: &lease.Leave{Job: "b"}}, false},
		{"another capacity", lease.Note{Capacity: &lease.Capacity{Pages: 20}}, false},
		{"the same capacity", lease.Note{Capacity: &lease.Capacity{Pages: 14}}, true},
		{"something else", lease.Note{Passed: &lease.Passed{Job: "a", Hold: 1}}, true},
	} {
		s := told(14, rejoined("a", 8, 2, 1), rejoined("b", 1, 4, 0))
		s.find("a").wrong = wrongMost
		s.Tell(0, lease.Note{Passed: &lease.Passed{Job: "a", Hold: 8}})
		if !s.turns {
			t.Fatal("the jobs take no turns")
		}
		if s.Tell(ms, c.note); s.turns != c.turns {
			t.Errorf("%s: turns: %v, want %v", c.about, s.turns, c.turns)
		}
	}
}

// comb is n pairs of segments of a millisecond that alternate between high and low.
func comb(to field, n, high, low int) field {
	var begin time.Duration
	if len(to) > 0 {
		begin = to[len(to)-1].end
	}
	for range n {
		to = append(to, segment{begin + ms, high}, segment{begin + 2*ms, low})
		begin += 2 * ms
	}
	return to
}

// The search of the least shift is bounded: where each shift mends one conflict and makes another, it gives up and
// begins when the others have ended.
func TestLeastIsBounded(t *testing.T) {
	for _, n := range []int{20, 31, 33, 100} {
		// Two peaks, n teeth apart. The first one meets the others' peaks when the second one does not.
		others := comb(comb(nil, n, 5, 0), n, 0, 5)
		ended := others[len(others)-1].end
		others = append(others, segment{forever, 0})
		own := []step{{5, ms}, {0, time.Duration(2*n-1) * ms}, {5, ms}}
		want := time.Duration(2*n) * ms
		if 2*n > maxSweeps {
			want = ended
		}
		if got := leastShift(own, 0, 0, others, 9); got != want {
			t.Errorf("%d teeth: shift %v, want %v", n, got, want)
		}
	}
}
