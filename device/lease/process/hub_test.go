package process

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/device/lease"
	"tensile/internal/long"

	_ "tensile/scheduler/rivals"
)

// pages is a set of pages of a job's arena.
type pages uint32

func (p pages) count() int { return bits.OnesCount32(uint32(p)) }

// worker is a job's host as a lease knows it. It says by itself what it holds.
type worker struct {
	job    lease.Job
	base   pages
	groups []pages
	bodies int
	ahead  int

	joined, asking, drain, done bool
	asks, seen, left            int64 // left: asks when it left
	body, group                 int
	flight                      []pages
	kept                        pages
}

// randomWorker returns a job within 16 pages.
func randomWorker(r *rand.Rand, job lease.Job, bodies int) worker {
	w := worker{job: job, bodies: bodies, ahead: 1 + r.IntN(2)}
	few := r.Uint32() & r.Uint32()
	w.base = pages(few&r.Uint32()) & 0xffff
	for range 1 + r.IntN(5) {
		w.groups = append(w.groups, pages(r.Uint32())&0xffff)
	}
	w.groups[0] |= w.base
	w.groups[len(w.groups)-1] |= w.base
	return w
}

func (w *worker) peak() int {
	peak := w.base.count()
	for _, g := range w.groups {
		peak = max(peak, g.count())
	}
	return peak
}

// least is the smallest capacity for so many workers together.
func least(workers []worker) int {
	base, spread := 0, 0
	for i := range workers {
		w := &workers[i]
		base += w.base.count()
		spread = max(spread, w.peak()-w.base.count())
	}
	return base + spread
}

// want is the worker's present request.
func (w *worker) want() lease.Input {
	rest := 0
	for _, g := range w.groups[w.group:] {
		rest = max(rest, g.count())
	}
	return lease.Input{Want: &lease.Want{Job: w.job, Ask: w.asks, First: w.group == 0,
		Last: w.group == len(w.groups)-1, Rest: rest, Hold: (w.kept | w.groups[w.group]).count(), Group: w.group}}
}

// table is what a method hears of the worker's groups.
func (w *worker) table() (groups []lease.Group) {
	for _, g := range w.groups {
		groups = append(groups, lease.Group{Pages: g.count(), Time: time.Duration(g.count()) * time.Millisecond})
	}
	return groups
}

// ask asks for what the worker needs next, if it may.
func (w *worker) ask(tell func(lease.Input)) (moved bool) {
	over := w.body == w.bodies || w.drain && w.group == 0
	switch {
	case w.done || w.asking && !(w.drain && w.joined && w.group == 0):
		return false
	case !w.joined:
		w.asking = true
		w.asks++
		tell(lease.Input{Join: &lease.Join{Job: w.job, Ask: w.asks, Base: w.base.count(), Peak: w.peak(),
			Body: w.table()}})
		return true
	case over && len(w.flight) == 0:
		w.joined, w.drain, w.asking, w.kept, w.left = false, false, false, 0, w.asks
		w.done = w.body == w.bodies
		tell(lease.Input{Leave: &lease.Leave{Job: w.job}})
		return true
	case !over && len(w.flight) < w.ahead:
		w.asking = true
		w.asks++
		tell(w.want())
		return true
	}
	return false
}

// pass ends the oldest group in flight.
func (w *worker) pass(tell func(lease.Input)) (moved bool) {
	if len(w.flight) == 0 {
		return false
	}
	w.flight = w.flight[1:]
	keep := w.base
	if w.group > 0 {
		keep = w.groups[w.group-1] & w.groups[w.group]
	}
	for _, g := range w.flight {
		keep |= g
	}
	if w.kept&^keep == 0 {
		return true
	}
	w.kept &= keep
	tell(lease.Input{Passed: &lease.Passed{Job: w.job, Seen: w.seen, Hold: w.kept.count()}})
	if w.asking && w.joined {
		tell(w.want())
	}
	return true
}

// hear takes an answer.
func (w *worker) hear(out lease.Output) error {
	switch {
	case out.Kind == lease.Refuse:
		return fmt.Errorf("%v", out)
	case out.Kind == lease.Drain:
		w.drain = w.joined
		return nil
	case out.Ask <= w.left:
		return nil // of an earlier stay
	case !w.asking || out.Ask != w.asks:
		return fmt.Errorf("%s is granted what it did not ask for", w.job)
	}
	w.asking, w.seen = false, out.Ask
	if !w.joined {
		w.joined, w.kept = true, w.base
		return nil
	}
	w.flight = append(w.flight, w.groups[w.group])
	w.kept |= w.groups[w.group]
	if w.group++; w.group == len(w.groups) {
		w.group, w.body = 0, w.body+1
	}
	return nil
}

// party is a worker with its client and the connection to the hub.
type party struct {
	worker
	book    *book
	online  bool
	up      []request
	down    []answer
	inbox   []lease.Output // that the worker has not looked at
	dead    bool
	problem error
}

func (p *party) tell(in lease.Input) {
	r, refused := p.book.told(in)
	if refused != nil {
		p.problem = fmt.Errorf("%v", refused)
		return
	}
	if p.online {
		p.up = append(p.up, r)
	}
}

// city is a hub with parties, whose messages wait for random times, and which end and start again at random.
type city struct {
	r        *rand.Rand
	now      time.Duration
	hub      *hub // nil: its process has ended
	parties  []*party
	capacity int
	grants   int
	restarts int
}

func (c *city) held() (sum int) {
	for _, p := range c.parties {
		sum += p.kept.count()
	}
	return sum
}

// post takes what the hub has to say.
func (c *city) post() {
	for _, l := range c.hub.letters() {
		for _, p := range c.parties {
			if p.book.client == l.client && p.online {
				p.down = append(p.down, l.answer)
			}
		}
	}
}

// deliver carries the oldest message of a party one way.
func (c *city) deliver(p *party, up bool) error {
	if up && len(p.up) > 0 {
		r := p.up[0]
		p.up = p.up[1:]
		switch {
		case r.Hello != nil:
			c.hub.greet(c.now, r.Hello)
		case r.Capacity != nil:
			c.hub.resize(c.now, r.Capacity)
		default:
			if err := c.hub.told(c.now, p.book.client, r.Told); err != nil {
				return err
			}
		}
		c.post()
	} else if !up && len(p.down) > 0 {
		a := p.down[0]
		p.down = p.down[1:]
		if out, ok := p.book.heard(a); ok {
			c.grants++
			p.inbox = append(p.inbox, out)
		}
	}
	return nil
}

// cut ends a connection. What was sent may still arrive, or a part of it.
func (c *city) cut(p *party) error {
	for range c.r.IntN(3) {
		if c.hub != nil {
			if err := c.deliver(p, true); err != nil {
				return err
			}
		}
		if err := c.deliver(p, false); err != nil {
			return err
		}
	}
	p.up, p.down, p.online = nil, nil, false
	return nil
}

// act lets one random thing happen. mishaps says whether processes and connections may end.
func (c *city) act(mishaps bool) error {
	p := c.parties[c.r.IntN(len(c.parties))]
	c.now += time.Duration(c.r.IntN(1000)) * time.Microsecond
	if c.hub == nil {
		if c.r.IntN(10) == 0 || !mishaps {
			var awaited []string
			for _, p := range c.parties {
				if !p.dead {
					awaited = append(awaited, p.book.client)
				}
			}
			c.hub = newHub(awaited)
			c.restarts++
		}
	} else if !p.online && !p.dead {
		if c.r.IntN(5) == 0 || !mishaps {
			p.online, p.up = true, p.book.requests()
		}
		return nil
	}
	if mishaps {
		switch c.r.IntN(300) {
		case 0: // the lease's process is killed
			for _, p := range c.parties {
				if p.online {
					if err := c.cut(p); err != nil {
						return err
					}
				}
			}
			c.hub = nil
			return nil
		case 1, 2:
			if p.online {
				return c.cut(p)
			}
		case 3:
			if !p.dead && c.hub != nil && c.r.IntN(6) == 0 { // the client's process is killed
				if err := c.cut(p); err != nil {
					return err
				}
				p.worker, p.inbox = worker{job: p.job, done: true}, nil
				p.dead = true
				c.hub.gone(c.now, p.book.client)
				c.post()
				return nil
			}
		}
	}
	if p.dead {
		return nil
	}
	err := error(nil)
	switch c.r.IntN(5) {
	case 4:
		if len(p.inbox) > 0 {
			out := p.inbox[0]
			p.inbox = p.inbox[1:]
			err = p.hear(out)
		}
	case 0:
		if mishaps && p.joined && c.r.IntN(20) == 0 {
			p.drain = true // it leaves between two iterations, and joins again
		}
		p.ask(p.tell)
	case 1:
		p.pass(p.tell)
	case 2:
		if c.hub != nil {
			err = c.deliver(p, true)
		}
	case 3:
		err = c.deliver(p, false)
	}
	if err == nil {
		err = p.problem
	}
	if held := c.held(); err == nil && held > c.capacity {
		err = fmt.Errorf("%d pages are held of %d", held, c.capacity)
	}
	return err
}

func cityOf(t *testing.T, seed uint64) (grants, restarts int) {
	r := rand.New(rand.NewPCG(seed, 51))
	workers := make([]worker, 2+r.IntN(3))
	for i := range workers {
		workers[i] = randomWorker(r, lease.Job(fmt.Sprint("j", i)), 2+r.IntN(6))
	}
	c := &city{r: r, capacity: least(workers) + r.IntN(3)}
	for i, w := range workers {
		p := &party{worker: w, book: newBook(fmt.Sprint("c", i))}
		p.tell(lease.Input{Capacity: &lease.Capacity{Pages: c.capacity, Number: 1,
			Method: []string{"", "zico"}[seed%2]}})
		c.parties = append(c.parties, p)
	}
	fail := func(err error) {
		t.Helper()
		state := ""
		for _, p := range c.parties {
			state += fmt.Sprintf("%+v\n", p.worker)
		}
		t.Fatalf("seed %d: %v\n%v\n%s", seed, err, c.hub, state)
	}
	for range 1000 {
		if err := c.act(true); err != nil {
			fail(err)
		}
	}
	open := func(p *party) bool { return !p.done }
	for n := 0; slices.ContainsFunc(c.parties, open); n++ {
		if err := c.act(false); err != nil {
			fail(err)
		}
		if n == 50_000 {
			fail(fmt.Errorf("not all end"))
		}
	}
	if err := c.rest(); err != nil {
		fail(err)
	}
	return c.grants, c.restarts
}

// rest has all that live connect, and what they say arrive: nobody holds anything any more.
func (c *city) rest() error {
	if c.hub == nil {
		return nil
	}
	for _, p := range c.parties {
		if p.dead {
			continue
		}
		if !p.online {
			p.online, p.up = true, p.book.requests()
		}
		for len(p.up) > 0 {
			if err := c.deliver(p, true); err != nil {
				return err
			}
		}
		if m := c.hub.members[p.book.client]; m != nil && len(m.jobs) > 0 {
			return fmt.Errorf("the lease knows a job of client %s, whose jobs have left", p.book.client)
		}
	}
	return nil
}

// A job may hold no more than the newest capacity allows, whichever client says it first. The machine hears
// of it when nobody is awaited.
func TestNewestCapacity(t *testing.T) {
	h := newHub([]string{"a", "b", "c"})
	newer, older := newBook("a"), newBook("b")
	for _, c := range []lease.Capacity{{Pages: 7, Number: 2}, {Pages: 9, Number: 1}} {
		newer.told(lease.Input{Capacity: &c})
	}
	older.told(lease.Input{Capacity: &lease.Capacity{Pages: 9, Number: 1}})
	for _, b := range []*book{newer, older} {
		h.greet(0, b.requests()[0].Hello)
	}
	if h.gone(0, "c"); h.capacity.Pages != 7 {
		t.Errorf("the lease has %d pages, want 7", h.capacity.Pages)
	}
	for ask, peak := range []int{7, 8} {
		job := lease.Job(fmt.Sprint("needs", peak))
		must(t, h.told(0, "b", &told{Join: &lease.Join{Job: job, Ask: int64(ask + 1), Peak: peak}}))
		if got := len(h.letters()); got != 8-peak {
			t.Errorf("%d answers to a job that needs %d pages of 7", got, peak)
		}
	}
}

// From its beginning on, before anybody hears of it, it can be seen that a client lives, by its slot, until it ends.
func TestClientLock(t *testing.T) {
	name := t.TempDir() // which nobody else has
	c, other := client(t, Options{Name: name}), client(t, Options{Name: name})
	want := []string{slotOf(c.id), slotOf(other.id)}
	if got := taken(name); len(got) != 2 || !slices.Contains(got, want[0]) || !slices.Contains(got, want[1]) {
		t.Errorf("slots %v are taken, want %v", got, want)
	}
	c.release()
	other.release()
	if got := taken(name); len(got) > 0 {
		t.Errorf("slots %v are taken after the end of all", got)
	}
	if !named(c.id) || c.id == other.id {
		t.Errorf("clients are named %s and %s", c.id, other.id)
	}
}

// A client has the slot of one that has ended, before anybody has looked: what that one held is free.
func TestSlotAgain(t *testing.T) {
	h := newHub([]string{"7", "8"})
	capacity := &lease.Capacity{Pages: 10, Number: 1}
	h.greet(0, &hello{Client: "7xA", Capacity: capacity, Jobs: []standing{{Joined: true,
		Rejoin: lease.Rejoin{Hold: 9, Join: lease.Join{Job: "j", Ask: 5, Base: 2, Peak: 9}}}}})
	h.greet(0, &hello{Client: "8xA", Capacity: capacity})
	if got, _ := h.m.Holds("j@7xA"); got != 9 {
		t.Errorf("it holds %d pages, want 9", got)
	}
	h.greet(0, &hello{Client: "7xB", Capacity: capacity})
	if _, ok := h.m.Holds("j@7xA"); ok || h.members["7xA"] != nil || h.members["7xB"] == nil || len(h.awaited) > 0 {
		t.Errorf("the lease is\n%v", h)
	}
}

// A job that was granted its pages by the process before this one has given some back, which was lost with the
// connection. When it is back the others have them.
func TestPassedIsLost(t *testing.T) {
	h := newHub([]string{"c"})
	job := standing{Joined: true, Rejoin: lease.Rejoin{Hold: 9, Join: lease.Join{Job: "j", Ask: 5, Base: 2, Peak: 9}}}
	hears := func(want int) {
		t.Helper()
		h.greet(0, &hello{Client: "c", Jobs: []standing{job}, Capacity: &lease.Capacity{Pages: 10, Number: 1}})
		if got, ok := h.m.Holds("j@c"); got != want || !ok {
			t.Errorf("it holds %d pages, %v, want %d", got, ok, want)
		}
	}
	hears(9)
	job.Hold = 2
	hears(2)
	if out := h.letters(); len(out) > 0 {
		t.Errorf("it is told %+v", out)
	}
}

// Clients and the lease's process are killed, connections are lost with what was on its way: what the clients hold
// never exceeds the capacity, and all that live end.
func TestCities(t *testing.T) {
	grants, restarts := 0, 0
	for seed := range long.Rounds(100, 1000) {
		g, r := cityOf(t, seed)
		grants, restarts = grants+g, restarts+r
	}
	t.Logf("%d answers, %d processes of a lease", grants, restarts)
}

func FuzzCities(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed uint64) { cityOf(t, seed) })
}
