package lease

import (
	"hash/fnv"
	"testing"
	"time"

	"tensile/internal/long"
)

// LiveWorlds lives random worlds under a method: nothing is ever above the capacity, every state is safe by the
// banker's search, and all jobs end.
func LiveWorlds(t *testing.T, method func() Method) {
	var counts tally
	for seed := range long.Rounds(100, 800) {
		worldOf(t, seed, &counts, method)
	}
	t.Logf("%d grants; in %d states a job was aside", counts.granted, counts.aside)
}

// LiveWorld lives one.
func LiveWorld(t *testing.T, seed uint64, method func() Method) { worldOf(t, seed, new(tally), method) }

// HostileTo tells a machine with a method what comes to nobody's mind.
func HostileTo(t *testing.T, seed uint64, method func() Method) { hostileOf(t, seed, method) }

// refusing is a method that delays the iterations of one job for ever.
type refusing struct{ job Job }

func (r refusing) Tell(time.Duration, Note) {}

func (r refusing) When(now time.Duration, w *Want) time.Duration {
	if w.Job == r.job {
		return Never
	}
	return now
}

// A delay ends when so many iterations of others have begun since: eight, or two for each job.
func TestDelayEnds(t *testing.T) {
	for jobs, want := range map[int]int{2: 8, 4: 8, 5: 10, 12: 24} {
		m := NewMachine(Options{Still: -1, Methods: func(string) Method { return refusing{"late"} }})
		m.Step(Input{Capacity: &Capacity{Pages: 100, Method: "refusing"}})
		for i := range jobs {
			name := Job(string(rune('a' + i)))
			if i == 0 {
				name = "late"
			}
			m.Step(Input{Join: &Join{Job: name, Ask: 1, Base: 1, Peak: 2}})
		}
		now := time.Hour // by now the other job was served much
		first := func(job Job, ask int64) []Output {
			now += time.Second
			w := Want{Job: job, Ask: ask, First: true, Last: true, Rest: 2, Hold: 2}
			return m.Step(Input{Now: now, Want: &w})
		}
		begun := 0
		first("b", 2)
		if out := first("late", 2); out != nil {
			t.Fatalf("%d jobs: a delay that does not begin: %v", jobs, out)
		}
		for late := false; !late; {
			if begun++; begun > 100 {
				t.Fatalf("%d jobs: the delay does not end", jobs)
			}
			for _, out := range first("b", int64(2+begun)) {
				late = late || out.Job == "late"
			}
		}
		if begun != want {
			t.Errorf("%d jobs: the delay ends with %d iterations, want %d", jobs, begun, want)
		}
	}
}

// stubborn is a method that delays what it is asked about: for ever, or now and then and for a while.
type stubborn struct {
	t       *testing.T
	forever bool
	delays  *int
	joined  map[Job]bool
	granted map[Job]Want
}

func (s *stubborn) Tell(now time.Duration, n Note) {
	known := func(job Job) {
		if !s.joined[job] {
			s.t.Fatalf("it hears of %s, which has not joined: %+v", job, n)
		}
	}
	switch {
	case n.Joined != nil:
		s.joined[n.Joined.Job] = true
	case n.Rejoined != nil:
		s.joined[n.Rejoined.Job] = true
	case n.Asked != nil:
		known(n.Asked.Job)
	case n.Granted != nil:
		known(n.Granted.Job)
		if before, ok := s.granted[n.Granted.Job]; ok && !n.Granted.First && n.Granted.Group != before.Group+1 {
			s.t.Fatalf("group %d is granted after %d", n.Granted.Group, before.Group)
		}
		s.granted[n.Granted.Job] = *n.Granted
	case n.Passed != nil:
		known(n.Passed.Job)
	case n.Left != nil:
		known(n.Left.Job)
		delete(s.joined, n.Left.Job)
		delete(s.granted, n.Left.Job)
	}
}

func (s *stubborn) When(now time.Duration, w *Want) time.Duration {
	if s.forever {
		*s.delays++
		return Never
	}
	h := fnv.New32()
	h.Write([]byte{byte(now), byte(now >> 8), byte(now >> 16), byte(w.Ask)})
	h.Write([]byte(w.Job))
	switch n := h.Sum32(); n % 3 {
	case 0:
		return now
	case 1:
		*s.delays++
		return now + 1 + time.Duration(n%5)*time.Millisecond
	default:
		*s.delays++
		return Never
	}
}

// Whatever a method says all jobs end, and none is above the capacity.
func TestMethodCannotHang(t *testing.T) {
	for _, forever := range []bool{false, true} {
		delays := 0
		LiveWorlds(t, func() Method {
			return &stubborn{t, forever, &delays, make(map[Job]bool), make(map[Job]Want)}
		})
		if delays == 0 {
			t.Error("nothing was delayed")
		}
	}
}

// What a Join says of groups is refused beyond its limits, and at them it is not.
func TestGroupsOfJoin(t *testing.T) {
	const peak = 3
	for name, c := range map[string]struct {
		groups  []Group
		refused bool
	}{
		"none":               {nil, false},
		"as many as can be":  {make([]Group, MaxGroups), false},
		"one more":           {make([]Group, MaxGroups+1), true},
		"no pages, no time":  {[]Group{{0, 0}}, false},
		"negative pages":     {[]Group{{-1, 0}}, true},
		"the peak":           {[]Group{{peak, 1}}, false},
		"above the peak":     {[]Group{{peak + 1, 1}}, true},
		"the second of two":  {[]Group{{1, 1}, {peak + 1, 1}}, true},
		"a negative time":    {[]Group{{1, -1}}, true},
		"the longest time":   {[]Group{{1, MaxTime}}, false},
		"a longer time":      {[]Group{{1, MaxTime + 1}}, true},
		"the longest of all": {[]Group{{1, Never}}, true},
	} {
		for section, join := range map[string]Join{"body": {Body: c.groups}, "snapshot": {Snapshot: c.groups}} {
			join.Job, join.Ask, join.Base, join.Peak = "j", 1, 1, peak
			m := NewMachine(Options{})
			m.Step(Input{Capacity: &Capacity{Pages: 10}})
			out := m.Step(Input{Join: &join})
			refused := len(out) == 1 && out[0].Kind == Refuse
			if _, joined := m.Holds("j"); refused != c.refused || joined == refused {
				t.Errorf("%s in the %s: refused %t, joined %t: %v", name, section, refused, joined, out)
			}
		}
	}
}
