package lease

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tensile/internal/long"
)

// pages is a set of pages of a job's arena.
type pages uint32

func (p pages) count() int { return bits.OnesCount32(uint32(p)) }

// shape is what a job needs: Base, and the pages of each group of an iteration.
type shape struct {
	base   pages
	groups []pages
	bodies int // iterations until it leaves
	weight int
}

func (s shape) peak() int {
	peak := s.base.count()
	for _, g := range s.groups {
		peak = max(peak, g.count())
	}
	return peak
}

func (s shape) rest(group int) int {
	rest := 0
	for _, g := range s.groups[group:] {
		rest = max(rest, g.count())
	}
	return rest
}

// table is what the groups are expected to need: a millisecond per page.
func (s shape) table() (groups []Group) {
	for _, g := range s.groups {
		groups = append(groups, Group{g.count(), time.Duration(g.count()) * time.Millisecond})
	}
	return groups
}

func (s shape) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%b:", s.base)
	for _, g := range s.groups {
		fmt.Fprintf(&b, " %b", g)
	}
	return fmt.Sprintf("%s x%d", b.String(), s.bodies)
}

// client is what a host knows of its job. It has at most ahead groups in flight.
type client struct {
	shape  shape
	name   Job
	ahead  int
	joined bool
	asking bool // for its Join, or the next group
	asks   int64
	seen   int64
	drain  bool
	body   int // iterations whose last group was granted
	group  int // the next group of the iteration
	flight []pages
	kept   pages // what it holds: groups in flight, and contents that the next group reads
	done   bool
}

// moves are what a client can do of itself: ask, pass its oldest group in flight, leave.
const (
	ask = iota
	pass
	leave
	moves
)

var moveNames = [moves]string{"+", "-", "."}

// can reports whether a client can make a move now.
func (c *client) can(move int) bool {
	over := c.body == c.shape.bodies || c.drain && c.group == 0
	switch move {
	case ask:
		return !c.done && !c.asking && !(over && c.joined) && len(c.flight) < c.ahead
	case pass:
		return len(c.flight) > 0
	default:
		return c.joined && over && len(c.flight) == 0
	}
}

// do makes a move and returns what the lease is told.
func (c *client) do(move int) Input {
	switch move {
	case ask:
		c.asking = true
		c.asks++
		if !c.joined {
			return Input{Join: &Join{Job: c.name, Ask: c.asks, Base: c.shape.base.count(), Peak: c.shape.peak(),
				Weight: c.shape.weight, Body: c.shape.table()}}
		}
		return Input{Want: c.want()}
	case pass:
		c.flight = slices.Delete(slices.Clone(c.flight), 0, 1)
		c.keep()
		return Input{Passed: &Passed{c.name, c.seen, c.kept.count()}}
	default:
		c.joined, c.asking, c.drain, c.kept = false, false, false, 0
		c.done = c.body == c.shape.bodies
		return Input{Leave: &Leave{c.name}}
	}
}

func (c *client) want() *Want {
	n := len(c.shape.groups)
	return &Want{Job: c.name, Ask: c.asks, First: c.group == 0, Last: c.group == n-1, Rest: c.shape.rest(c.group),
		Hold: (c.kept | c.shape.groups[c.group]).count(), Group: c.group}
}

// keep gives back what no group in flight needs, and no later one has content in.
func (c *client) keep() {
	keep := c.shape.base // over the boundary
	if c.group > 0 {
		keep = c.shape.groups[c.group-1] & c.shape.groups[c.group]
	}
	for _, g := range c.flight {
		keep |= g
	}
	c.kept &= keep
}

// granted tells a client that it got what it asked for.
func (c *client) granted(ask int64) {
	if !c.asking || ask != c.asks {
		panic("it did not ask")
	}
	c.asking, c.seen = false, ask
	if !c.joined {
		c.joined, c.kept = true, c.shape.base
		return
	}
	g := c.shape.groups[c.group]
	c.flight = append(slices.Clone(c.flight), g)
	c.kept |= g
	if c.group++; c.group == len(c.shape.groups) {
		c.group = 0
		c.body++
	}
}

// system is a machine with its clients.
type system struct {
	m       *Machine
	clients []client
	grants  int
	robbed  string // what was wrong with a grant
}

func newSystem(capacity int, o Options, shapes []shape, ahead int) *system {
	s := &system{m: NewMachine(o)}
	s.m.Step(Input{Capacity: &Capacity{Pages: capacity}})
	for i, shape := range shapes {
		s.clients = append(s.clients, client{shape: shape, name: Job(string(rune('a' + i))), ahead: ahead})
	}
	return s
}

func (s *system) clone() *system {
	m := *s.m
	m.out, m.jobs, m.left = nil, make(map[Job]*holder), maps.Clone(m.left)
	for name, k := range s.m.jobs {
		c := *k
		m.jobs[name] = &c
	}
	same := func(list []*holder) []*holder {
		list = slices.Clone(list)
		for i, k := range list {
			list[i] = m.jobs[k.Job]
		}
		return list
	}
	m.joined, m.order, m.queue = same(m.joined), same(m.order), same(m.queue)
	return &system{m: &m, clients: slices.Clone(s.clients)}
}

// key tells states apart that may go on in different ways.
func (s *system) key() string {
	b := make([]byte, 0, 256)
	number := func(numbers ...int) {
		for _, n := range numbers {
			b = binary.AppendVarint(b, int64(n))
		}
	}
	yes := func(flags ...bool) {
		for _, f := range flags {
			b = strconv.AppendBool(b, f)
		}
	}
	for i := range s.clients {
		c := &s.clients[i]
		yes(c.joined, c.asking, c.drain, c.done)
		number(c.body, c.group, len(c.flight), int(c.kept))
		for _, g := range c.flight {
			number(int(g))
		}
		if k := s.m.jobs[c.name]; k != nil {
			number(k.hold, k.rest, k.overtaken, int(k.served-s.m.served), int(k.served-k.since), int(k.turn))
		}
	}
	for _, list := range [][]*holder{s.m.joined, s.m.order, s.m.queue} {
		for _, k := range list {
			b = append(b, k.Job...)
		}
		b = append(b, ';')
	}
	return string(b)
}

// step tells the machine and its clients; it returns a refusal.
func (s *system) step(in Input) (refused string) { return s.hear(s.tell(in)) }

// tell tells the machine alone.
func (s *system) tell(in Input) []Output {
	outs := s.m.Step(in)
	if waits := robbed(s.m, outs); waits != "" && s.robbed == "" {
		s.robbed = "an iteration begins, and " + waits + " waits for what others hold"
	}
	return outs
}

func (s *system) hear(outs []Output) (refused string) {
	for _, out := range outs {
		i := slices.IndexFunc(s.clients, func(c client) bool { return c.name == out.Job })
		switch {
		case out.Kind == Refuse:
			refused = out.String()
		case out.Kind == Grant:
			s.clients[i].granted(out.Ask)
			s.grants++
		default:
			s.clients[i].drain = true
		}
	}
	return refused
}

// do has a client make a move. One that waits when a group has passed asks again, for less, and hears only then
// what the lease said to what it had passed.
func (s *system) do(i, move int) (refused string) {
	c := &s.clients[i]
	in := c.do(move)
	in.Now = s.m.now
	var outs []Output
	if move == pass && c.joined && c.asking {
		outs = s.m.Step(in)
		in = Input{Now: s.m.now, Want: c.want()}
	}
	outs = append(outs, s.tell(in)...)
	if refused = s.hear(outs); refused == "" {
		refused = s.robbed
	}
	return refused
}

// wrong says what must never be: that more is held than there is, or more than the machine knows, or that what the
// machine keeps does not add up.
func (s *system) wrong() string {
	held, known := 0, 0
	for _, c := range s.clients {
		held += c.kept.count()
		if k := s.m.jobs[c.name]; k == nil && c.kept != 0 || k != nil && k.hold < c.kept.count() {
			return fmt.Sprintf("%s holds %d, and the machine knows of %+v", c.name, c.kept.count(), k)
		} else if k != nil {
			known += k.hold
		}
	}
	if held > s.m.capacity || known > s.m.capacity {
		return fmt.Sprintf("%d pages are held, %d granted, of %d", held, known, s.m.capacity)
	}
	if at := promises(s.m); at != "" {
		return "the promise to " + at + " is broken"
	}
	return ""
}

// promises returns the first job for which (S), as doc.go has it, does not hold, "" if there is none.
func promises(m *Machine) string {
	for at, i := range m.order {
		sum := max(i.rest, i.hold)
		for _, k := range m.joined {
			switch pos := slices.Index(m.order, k); {
			case pos < 0 || pos < at:
				sum += k.Base
			case pos > at:
				sum += k.hold
			}
		}
		if sum > m.capacity {
			return string(i.Job)
		}
	}
	return ""
}

// robbed returns the oldest if another's iteration has begun though it waits, and would wait no more when the idle jobs
// held their Base; else "".
func robbed(m *Machine, outs []Output) string {
	first := func(out Output) bool { return out.Seniority > 0 }
	if len(m.order) == 0 || !slices.ContainsFunc(outs, first) {
		return ""
	}
	oldest := m.order[0]
	sum := max(oldest.rest, oldest.hold, oldest.want.Hold)
	for _, k := range m.joined {
		switch {
		case k.aside:
			return ""
		case !k.began:
			sum += k.Base
		case k != oldest:
			sum += k.hold
		}
	}
	if !oldest.asking || oldest.delayed || sum > m.capacity {
		return ""
	}
	return string(oldest.Job)
}

// safe is the banker's question, answered by search: whether the iterations that have begun can end in some order,
// each with what those that ended and the idle jobs leave. Pages of groups in flight of idle jobs come back by
// themselves.
func safe(m *Machine) bool {
	idle := 0
	for _, k := range m.joined {
		if !k.began {
			idle += k.Base
		}
	}
	var search func(left []*holder, idle int) bool
	search = func(left []*holder, idle int) bool {
		if len(left) == 0 {
			return true
		}
		held := 0
		for _, k := range left {
			held += k.hold
		}
		for n, k := range left {
			if idle+held-k.hold+max(k.rest, k.hold) <= m.capacity &&
				search(slices.Delete(slices.Clone(left), n, n+1), idle+k.Base) {
				return true
			}
		}
		return false
	}
	return search(m.order, idle)
}

// randomShape returns a shape within so many pages, whose first and last group hold Base.
func randomShape(r *rand.Rand, most, groups, bodies int) shape {
	all := pages(1)<<most - 1
	s := shape{bodies: 1 + r.IntN(bodies), weight: 1 + r.IntN(3)}
	few := r.Uint32() & r.Uint32()
	s.base = pages(few&r.Uint32()) & all
	for range 1 + r.IntN(groups) {
		g := pages(r.Uint32()) & all
		if r.IntN(3) == 0 {
			g &= pages(r.Uint32())
		}
		s.groups = append(s.groups, g)
	}
	s.groups[0] |= s.base
	s.groups[len(s.groups)-1] |= s.base
	return s
}

// least is the smallest capacity that admits all shapes together.
func least(shapes []shape) int {
	base, spread := 0, 0
	for _, s := range shapes {
		base += s.base.count()
		spread = max(spread, s.peak()-s.base.count())
	}
	return base + spread
}

// trail is how a state was reached.
type trail struct {
	from *trail
	step string
}

func (t *trail) String() string {
	if t == nil {
		return ""
	}
	return t.from.String() + " " + t.step
}

// explore walks every interleaving of a system and returns how many states there are. No move can be taken back, so
// that every way ends; problem says where one ends before all are done, or what was wrong on it.
func explore(s *system) (states int, problem string) {
	seen := make(map[string]bool)
	var walk func(s *system, t *trail) string
	walk = func(s *system, t *trail) string {
		key := s.key()
		if seen[key] {
			return ""
		}
		seen[key] = true
		if wrong := s.wrong(); wrong != "" {
			return fmt.Sprintf("%v: %s\n%s", t, wrong, s.m)
		}
		moved, done := false, true
		for i := range s.clients {
			done = done && s.clients[i].done
			for move := range moves {
				if !s.clients[i].can(move) {
					continue
				}
				moved = true
				next, t := s.clone(), &trail{t, string(s.clients[i].name) + moveNames[move]}
				if refused := next.do(i, move); refused != "" {
					return fmt.Sprintf("%v: %v", t, refused)
				}
				if problem := walk(next, t); problem != "" {
					return problem
				}
			}
		}
		if !moved && !done {
			return fmt.Sprintf("%v: nobody can go on\n%s", t, s.m)
		}
		return ""
	}
	problem = walk(s, nil)
	return len(seen), problem
}

// Every interleaving of three jobs with up to four groups of up to six pages ends, at the least capacity and above,
// with a group in flight or two. Nothing ever holds more than there is.
func TestExhaustive(t *testing.T) {
	total := 0
	for seed := range long.Rounds(1, 8) {
		r := rand.New(rand.NewPCG(seed, 17))
		shapes := make([]shape, 3)
		for i := range shapes {
			shapes[i] = randomShape(r, 6, 4, 2)
		}
		capacity, ahead := least(shapes)+r.IntN(3)*r.IntN(3), 1+r.IntN(2)
		states, problem := explore(newSystem(capacity, Options{Overtakes: 1 + r.IntN(2)}, shapes, ahead))
		total += states
		if problem != "" {
			t.Fatalf("seed %d, capacity %d, ahead %d, shapes %v: %s", seed, capacity, ahead, shapes, problem)
		}
	}
	t.Logf("%d states", total)
}
