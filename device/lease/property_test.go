package lease

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/internal/long"
)

// tally counts, over all random systems, what the machine said to requests that the banker's search calls safe.
type tally struct {
	granted int
	waited  int // requests in states in which they wait
	refused int // of these, those after whose grant the state would be safe
	aside   int // states in which a job stood still
}

// world is a system whose jobs come, stand still, die and go on at random, while time goes by and the capacity
// changes.
type world struct {
	*system
	r       *rand.Rand
	stopped []bool
	bound   int // what may be held: the capacity, or what was promised before it fell
	tally   *tally
}

// randomWorld returns 2 to 5 jobs at the least capacity for them, or a little above, under a method or, where that is
// nil, under none.
func randomWorld(seed uint64, counts *tally, method func() Method) *world {
	r := rand.New(rand.NewPCG(seed, 4))
	shapes := make([]shape, 2+r.IntN(4))
	for i := range shapes {
		shapes[i] = randomShape(r, 4+r.IntN(20), 6, 4)
	}
	capacity := least(shapes) + r.IntN(4)*r.IntN(4)
	o, word := Options{Overtakes: 1 + r.IntN(4)}, ""
	if method != nil {
		o.Methods, word = func(string) Method { return method() }, "a method"
	}
	s := newSystem(capacity, o, shapes, 1+r.IntN(3))
	s.m.Step(Input{Capacity: &Capacity{Pages: capacity, Method: word}})
	return &world{system: s, r: r, stopped: make([]bool, len(shapes)), bound: capacity, tally: counts}
}

// move has one random client make one random move, and reports whether any could.
func (w *world) move() (moved bool, problem string) {
	type choice struct{ client, move int }
	var can []choice
	for i := range w.clients {
		for move := range moves {
			if !w.stopped[i] && w.clients[i].can(move) {
				can = append(can, choice{i, move})
			}
		}
	}
	if len(can) == 0 {
		return false, ""
	}
	c := can[w.r.IntN(len(can))]
	if refused := w.do(c.client, c.move); refused != "" {
		return true, refused
	}
	return true, w.check()
}

// tells tells the machine something that no client says.
func (w *world) tells(in Input) (problem string) {
	in.Now = w.m.now
	if refused := w.step(in); refused != "" {
		return refused
	}
	return w.check()
}

// check compares the state with what must hold in every one.
func (w *world) check() string {
	held, known := 0, 0
	for _, c := range w.clients {
		held += c.kept.count()
		if k := w.m.jobs[c.name]; k == nil && c.kept != 0 || k != nil && k.hold < c.kept.count() {
			return fmt.Sprintf("%s holds %d, and the machine knows of %v", c.name, c.kept.count(), k)
		} else if k != nil {
			known += k.hold
		}
	}
	promised := known
	aside := slices.ContainsFunc(w.m.joined, func(k *holder) bool { return k.aside })
	for at := range w.m.order {
		promised = max(promised, promise(w.m, at))
	}
	if known > w.bound || !aside && promised > w.bound {
		return fmt.Sprintf("%d pages are held, %d granted, %d promised, of %d", held, known, promised, w.bound)
	}
	w.bound = max(w.m.capacity, min(w.bound, promised))
	if aside {
		w.tally.aside++
	}
	if w.bound == w.m.capacity && !aside {
		if !safe(w.m) {
			return "the banker finds no way to end"
		}
		w.judge()
	}
	return ""
}

// judge counts the requests that wait, and those of them after whose grant alone the state would be safe.
func (w *world) judge() {
	for i := range w.m.joined {
		k := w.m.joined[i]
		if !k.asking || k.draining {
			continue
		}
		w.tally.waited++
		after := w.clone().m
		k = after.jobs[k.Job]
		k.hold, k.rest = max(k.hold, k.want.Hold), k.want.Rest
		if !k.began {
			k.began = true
			after.order = append(after.order, k)
		}
		if total, _, _ := after.sums(); total <= after.capacity && safe(after) {
			w.tally.refused++
		}
	}
}

// promise is the left side of (S) for a place in the order. An idle job that is aside keeps what it holds.
func promise(m *Machine, at int) int {
	sum := max(m.order[at].rest, m.order[at].hold)
	for _, k := range m.joined {
		switch pos := slices.Index(m.order, k); {
		case pos < 0:
			sum += k.rests()
		case pos < at:
			sum += k.Base
		case pos > at:
			sum += k.hold
		}
	}
	return sum
}

// run lets a world live, then lets all its jobs end. It returns what went wrong.
func (w *world) run() string {
	least := least(func() (shapes []shape) {
		for _, c := range w.clients {
			shapes = append(shapes, c.shape)
		}
		return shapes
	}())
	for range 200 {
		problem := ""
		i := w.r.IntN(len(w.clients))
		switch c := &w.clients[i]; w.r.IntN(40) {
		case 0:
			w.stopped[i] = true
		case 1, 2:
			w.stopped[i] = false
		case 3:
			if c.joined && w.r.IntN(8) == 0 { // its process dies
				*c = client{shape: c.shape, name: c.name, done: true}
				problem = w.tells(Input{Leave: &Leave{c.name}})
			}
		case 4:
			pages := least*(1+w.r.IntN(4))/3 + w.r.IntN(3)
			w.bound = max(w.bound, pages)
			problem = w.tells(Input{Capacity: &Capacity{Pages: pages, Method: w.m.word}})
		case 5:
			w.m.now += time.Duration(w.r.IntN(4000)) * time.Millisecond
			problem = w.tells(Input{})
		default:
			w.m.now += time.Duration(w.r.IntN(1000)) * time.Microsecond
			_, problem = w.move()
		}
		if problem != "" {
			return problem
		}
	}
	if problem := w.settle(); problem != "" {
		return problem
	}
	if missed := w.missed(); missed != "" {
		return missed
	}
	clear(w.stopped)
	w.bound = max(w.bound, least)
	if problem := w.tells(Input{Capacity: &Capacity{Pages: least, Method: w.m.word}}); problem != "" {
		return problem
	}
	if problem := w.settle(); problem != "" {
		return problem
	}
	for _, c := range w.clients {
		if !c.done {
			return fmt.Sprintf("%s does not end", c.name)
		}
	}
	return ""
}

// settle has all clients that are not stopped move until none can, whatever the time.
func (w *world) settle() string {
	for range 10_000 {
		moved, problem := w.move()
		if problem != "" {
			return problem
		}
		if moved {
			continue
		}
		at, ok := w.m.Wake()
		if !ok {
			return ""
		}
		w.m.now = max(w.m.now, at)
		if problem := w.tells(Input{}); problem != "" {
			return problem
		}
	}
	return "it goes on for ever"
}

// missed looks for a job that waits, and could end without those that stand still.
func (w *world) missed() string {
	for i, c := range w.clients {
		k := w.m.jobs[c.name]
		if w.stopped[i] || k == nil || !k.joined || k.draining || !k.asking || k.hold < k.Base {
			continue
		}
		others := 0
		for _, other := range w.m.joined {
			if other != k {
				others += max(other.hold, other.Base)
			}
		}
		if others+max(k.want.Rest, max(k.hold, k.want.Hold)) <= w.m.capacity {
			return fmt.Sprintf("%s could end, and waits", k.Job)
		}
	}
	return ""
}

func worldOf(t *testing.T, seed uint64, counts *tally, method func() Method) {
	w := randomWorld(seed, counts, method)
	problem := w.run()
	counts.granted += w.grants
	if problem != "" {
		var shapes []shape
		for _, c := range w.clients {
			shapes = append(shapes, c.shape)
		}
		t.Fatalf("seed %d, shapes %v: %s\n%sstopped %v", seed, shapes, problem, w.m, w.stopped)
	}
}

// TestWorlds lives random worlds. The state after every input is safe by the banker's search; it prints how often the
// machine has a request wait that the search would grant.
func TestWorlds(t *testing.T) {
	var counts tally
	for seed := range long.Rounds(250, 2000) {
		worldOf(t, seed, &counts, nil)
	}
	t.Logf("%d grants; the banker would have granted %d of %d that waited in some state; in %d states a job was aside",
		counts.granted, counts.refused, counts.waited, counts.aside)
	if counts.aside == 0 {
		t.Error("no job ever stood still")
	}
}

func FuzzWorlds(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed uint64) { worldOf(t, seed, new(tally), nil) })
}
