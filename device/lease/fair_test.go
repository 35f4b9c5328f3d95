package lease

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tensile/internal/long"
)

// A job of weight 3 gets three times the turns of one of weight 1, where only one at a time fits and both ask ahead.
func TestWeights(t *testing.T) {
	m := NewMachine(Options{Still: -1})
	m.Step(Input{Capacity: &Capacity{Pages: 10}})
	var asks [2]int64
	var turns [2]int
	jobs := [2]Job{"one", "three"}
	held := -1
	now := time.Duration(0)
	hear := func(outs []Output) {
		for _, out := range outs {
			for i, job := range jobs {
				if out.Job == job && out.Ask > 1 {
					held = i
					turns[i]++
				}
			}
		}
	}
	ask := func(i int) {
		asks[i]++
		w := Want{Job: jobs[i], Ask: asks[i], First: true, Last: true, Rest: 10, Hold: 10}
		hear(m.Step(Input{Now: now, Want: &w}))
	}
	for i, weight := range []int{1, 3} {
		asks[i] = 1
		m.Step(Input{Join: &Join{Job: jobs[i], Ask: 1, Peak: 10, Weight: weight}})
	}
	ask(0)
	ask(1)
	for range 400 {
		i := held
		ask(i)
		now += time.Second
		hear(m.Step(Input{Now: now, Passed: &Passed{Job: jobs[i], Seen: asks[i] - 1}}))
	}
	if turns[0] < 98 || turns[0] > 103 || turns[0]+turns[1] != 401 {
		t.Errorf("weights 1 and 3 get %v turns", turns)
	}
}

// turns returns how many iterations each job of these weights has begun when there were so many. Each has groups of
// 7, 8 and 7 pages of 10, a second each, and asks for the next before the last has passed: in its own pages it could
// begin again and again.
func turns(t *testing.T, iterations int, weights ...int) []int {
	t.Helper()
	var shapes []shape
	for _, weight := range weights {
		shapes = append(shapes, shape{groups: []pages{0x7f, 0xff, 0x7f}, bodies: 1 << 30, weight: weight})
	}
	s := newSystem(10, Options{Still: -1}, shapes, 2)
	total := func() (n int) {
		for _, c := range s.clients {
			n += c.body
		}
		return n
	}
	for total() < iterations {
		moved := false
		for _, move := range []int{ask, pass} {
			for i := range s.clients {
				// A group passes when the next one was there in time.
				if !s.clients[i].can(move) || move == pass && moved {
					continue
				}
				if refused := s.do(i, move); refused != "" {
					t.Fatal(refused)
				}
				moved = moved || move == ask && !s.clients[i].asking
			}
		}
		s.m.now += time.Second
	}
	var counts []int
	for _, c := range s.clients {
		counts = append(counts, c.body)
	}
	return counts
}

// Jobs of which one at a time fits get as much by their weights, over some tens of iterations: equal ones the same up
// to three iterations.
func TestTurns(t *testing.T) {
	for _, iterations := range []int{10, 20, 40, 41, 100} {
		if got := turns(t, iterations, 1, 1); max(got[0], got[1])-min(got[0], got[1]) > 3 {
			t.Errorf("of %d iterations equal jobs have %v", iterations, got)
		}
	}
	for _, iterations := range []int{20, 40, 100} {
		if got := turns(t, iterations, 1, 3); math.Abs(float64(got[1])-0.75*float64(iterations)) > 3 {
			t.Errorf("of %d iterations jobs of weight 1 and 3 have %v", iterations, got)
		}
	}
}

// A job that needs all pages begins, however busy others keep the rest, and so does one that wants to join.
func TestNoStarvation(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		shapes := []shape{{groups: []pages{0xffff}, bodies: 3, weight: 1}}
		for range 2 + r.IntN(4) {
			s := randomShape(r, 5, 3, 1)
			s.bodies, s.weight, s.base = 1<<30, 1+r.IntN(MaxWeight), s.base&3
			s.groups[0] |= s.base
			s.groups[len(s.groups)-1] |= s.base
			shapes = append(shapes, s)
		}
		s := newSystem(least(shapes), Options{Overtakes: 1 + r.IntN(8), Still: -1}, shapes, 2)
		for i := 1; i < len(s.clients); i++ {
			s.do(i, ask)
		}
		for n := 0; !s.clients[0].done; n++ {
			s.m.now += time.Duration(r.IntN(1000)) * time.Millisecond
			if i, move := r.IntN(len(s.clients)), r.IntN(moves); s.clients[i].can(move) {
				if refused := s.do(i, move); refused != "" {
					t.Fatalf("seed %d: %s", seed, refused)
				}
			}
			if n == 1_000_000 {
				t.Fatalf("seed %d: the first has trained %d iterations of 3 beside %v\n%s", seed, s.clients[0].body,
					shapes[1:], s.m)
			}
		}
	}
}

// eager has all clients ask for what they can, and only then one pass the group that was granted first. It returns how
// many iterations the client with the fewest has begun after so many moves, and a refusal.
func eager(s *system, moves int) (least int, refused string) {
	var flying []int // clients, per group in flight, oldest first
	flights := make([]int, len(s.clients))
	for next := 0; moves > 0; moves-- {
		s.m.now += time.Millisecond
		i, move := -1, ask
		for range s.clients {
			if next = (next + 1) % len(s.clients); s.clients[next].can(ask) {
				i = next
				break
			}
		}
		if i < 0 {
			i, move = flying[0], pass
			flying = flying[1:]
			flights[i]--
		}
		if refused := s.do(i, move); refused != "" {
			return 0, refused
		}
		for k := range s.clients {
			for ; flights[k] < len(s.clients[k].flight); flights[k]++ {
				flying = append(flying, k)
			}
		}
	}
	least = s.clients[0].body
	for i := range s.clients {
		least = min(least, s.clients[i].body)
	}
	return least, ""
}

// Where all ask for their next groups before any has passed, so that some job always holds more than its Base, no
// iteration waits for ever.
func TestEager(t *testing.T) {
	for seed := range long.Rounds(50, 400) {
		r := rand.New(rand.NewPCG(seed, 5))
		var shapes []shape
		for range 2 + r.IntN(4) {
			s := randomShape(r, 4+r.IntN(8), 4, 1)
			s.bodies = 1 << 30
			shapes = append(shapes, s)
		}
		capacity := least(shapes) + r.IntN(1+least(shapes))
		s := newSystem(capacity, Options{Still: -1}, shapes, 1+r.IntN(2))
		if least, refused := eager(s, 4000); refused != "" || least < 8 {
			t.Fatalf("seed %d, capacity %d, shapes %v: %d iterations %s\n%s", seed, capacity, shapes, least, refused,
				s.m)
		}
	}
}

// random returns a number that is often small, and seldom makes sense.
func random(r *rand.Rand) int {
	switch r.IntN(20) {
	case 0:
		return -1 - r.IntN(3)
	case 1:
		return MaxPages + r.IntN(3) - 1
	case 2:
		return 1 << 62
	default:
		return r.IntN(12)
	}
}

// hostileOf tells a machine what comes to nobody's mind. What it promises is kept whatever it is told.
func hostileOf(t *testing.T, seed uint64, method func() Method) {
	r := rand.New(rand.NewPCG(seed, 99))
	m := NewMachine(Options{Methods: func(word string) Method {
		if method == nil || word == "unknown" {
			return nil
		}
		return method()
	}})
	words := []string{"", "a method", "a method", "unknown"}
	asks := map[Job]int64{}
	var now time.Duration
	var trail []any
	for range 300 {
		now += time.Duration(r.IntN(5000)-100) * time.Millisecond
		in := Input{Now: now}
		job := Job(rune('a' + r.IntN(4)))
		number := asks[job] + int64(r.IntN(6)/4)
		if r.IntN(20) == 0 {
			number = int64(random(r))
		}
		switch r.IntN(9) {
		case 0, 1:
			in.Join = &Join{Job: job, Ask: number, Base: random(r) / 4, Peak: random(r), Weight: random(r) / 4}
			for range r.IntN(5) {
				in.Join.Body = append(in.Join.Body, Group{random(r) / 4, time.Duration(random(r))})
			}
		case 2, 3, 4, 5:
			in.Want = &Want{Job: job, Ask: number, First: r.IntN(2) == 0, Last: r.IntN(3) == 0, Rest: random(r),
				Hold: random(r), Group: random(r) / 4, Snapshot: r.IntN(4) == 0}
		case 6:
			in.Passed = &Passed{Job: job, Seen: number, Hold: random(r)}
		case 7:
			if r.IntN(3) == 0 {
				in.Leave = &Leave{job}
			} else if r.IntN(3) == 0 {
				in.Rejoin = &Rejoin{Join: Join{Job: job, Ask: number, Base: random(r) / 4, Peak: random(r)},
					Hold: random(r), Rest: random(r), Seniority: int64(random(r)), Group: random(r) / 4}
			}
		case 8:
			if r.IntN(3) == 0 {
				in.Capacity = &Capacity{Pages: random(r), Number: int64(random(r)), Method: words[r.IntN(4)]}
			}
		}
		asks[job] = max(asks[job], number)
		bound, open := m.bound, m.open
		before, _, _ := m.sums()
		outs := m.Step(in)
		trail = append(trail, in.Join, in.Want, in.Passed, in.Leave, in.Rejoin, in.Capacity, outs, "\n")
		after, _, _ := m.sums()
		if limit := max(bound, m.capacity); open && after > before && after > limit {
			t.Fatalf("seed %d: holds rise from %d to %d of %d\n%+v%s", seed, before, after, limit, trail, m)
		}
		if m.live > len(m.order) || m.String() == "" {
			t.Fatalf("seed %d: %s", seed, m)
		}
		m.Wake()
	}
}

func TestHostile(t *testing.T) {
	for seed := range long.Rounds(40, 320) {
		hostileOf(t, seed, nil)
	}
}

func FuzzHostile(f *testing.F) { f.Fuzz(func(t *testing.T, seed uint64) { hostileOf(t, seed, nil) }) }

// BenchmarkGrant takes a job of eight through its groups: per group a Want that is granted and a Passed.
func BenchmarkGrant(b *testing.B) {
	m := NewMachine(Options{})
	m.Step(Input{Capacity: &Capacity{Pages: 1 << 20}})
	const jobs = 8
	var asks [jobs]int64
	for i := range asks {
		asks[i] = 1
		m.Step(Input{Join: &Join{Job: Job(fmt.Sprint("job ", i)), Ask: 1, Base: 10, Peak: 1000}})
	}
	names := make([]Job, jobs)
	for i := range names {
		names[i] = Job(fmt.Sprint("job ", i))
		asks[i]++
		m.Step(Input{Want: &Want{Job: names[i], Ask: asks[i], First: true, Rest: 1000, Hold: 100}})
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		i := n % jobs
		n++
		asks[i]++
		now := time.Duration(n) * time.Microsecond
		out := m.Step(Input{Now: now, Want: &Want{Job: names[i], Ask: asks[i], Rest: 1000, Hold: 900}})
		if len(out) != 1 || out[0].Kind != Grant {
			b.Fatal(out)
		}
		m.Step(Input{Now: now, Passed: &Passed{Job: names[i], Seen: asks[i], Hold: 100}})
	}
}
