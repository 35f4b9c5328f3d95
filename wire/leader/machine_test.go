package leader

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	_ "tensile/internal/long" // the flag -long
	"tensile/wire"
)

// errLost is for a request or an answer that was lost.
var errLost = errors.New("no answer")

// key is the store: one key, with a revision.
type key struct {
	holds    wire.Leadership
	revision uint64
}

func (k *key) read() Got {
	if k.revision == 0 {
		return Got{Err: wire.ErrNotFound}
	}
	return Got{Holds: k.holds, Revision: k.revision}
}

func (k *key) set(s *Set) Got {
	if s.Revision != k.revision {
		return Got{Err: wire.ErrConflict}
	}
	k.holds = s.Value
	k.revision++
	return Got{Revision: k.revision}
}

// candidate is a controller with a clock of its own.
type candidate struct {
	*Machine
	ahead time.Duration // its clock, against that of the world
	leads *wire.Leadership
}

func newCandidate(id string) *candidate {
	return &candidate{Machine: New(Config{ID: id, Where: "host " + id, Lease: "lease " + id})}
}

// step steps a machine, and gives it what the store answers at once, or errLost where that is cut off.
func (c *candidate) step(now time.Duration, k *key, cut func() (request, answer bool), in Input) {
	for todo := []Input{in}; len(todo) > 0; todo = todo[1:] {
		for _, o := range c.Step(now+c.ahead, todo[0]) {
			request, answer := cut()
			got := Got{Err: errLost}
			switch {
			case o.Lead != nil:
				c.leads = o.Lead
				continue
			case o.Lost != nil:
				c.leads = nil
				continue
			case request:
			case o.Read:
				got = k.read()
			case o.Set != nil:
				got = k.set(o.Set)
			}
			if answer {
				got = Got{Err: errLost}
			}
			todo = append(todo, Input{Got: &got})
		}
	}
}

func whole() (request, answer bool) { return false, false }

func dead() (request, answer bool) { return true, true }

// TestElection goes through what becomes of two controllers, beat by beat.
func TestElection(t *testing.T) {
	k := new(key)
	a, b := newCandidate("a"), newCandidate("b")
	now := time.Duration(0)
	tick := func(beats int, with ...*candidate) {
		for range beats {
			now += time.Second
			for _, c := range with {
				c.step(now, k, whole, Input{Tick: true})
			}
		}
	}
	want := func(what string, aLeads, bLeads bool, term int64) {
		t.Helper()
		if (a.leads != nil) != aLeads || (b.leads != nil) != bLeads || k.holds.Term != term {
			t.Fatalf("%s at %v: a leads %+v, b leads %+v, the key has %+v", what, now, a.leads, b.leads, k.holds)
		}
	}
	tick(1, a, b)
	want("the first that comes leads", true, false, 1)
	tick(100, a, b)
	want("it goes on", true, false, 1)
	tick(4, b) // a has stopped
	want("b waits until the word of a is old", true, false, 1)
	tick(1, b)
	want("b leads when it is", true, true, 2)
	if now+a.ahead < a.Until() || now+b.ahead >= b.Until() {
		t.Errorf("at %v a may remove things until %v, b until %v", now, a.Until(), b.Until())
	}
	if k.holds.Lease != "lease a" {
		t.Errorf("the lease is called %q in the second term", k.holds.Lease)
	}
	tick(1, a, b)
	want("a goes on, and notices", false, true, 2)
	b.step(now, k, whole, Input{Resign: true})
	b.leads = nil
	tick(1, a, b)
	want("a leads at once when b resigns", true, false, 3)
	a.step(now, k, whole, Input{Deposed: true})
	want("a stream has refused what a writes", false, false, 3)
}

// A leader whose answers are lost, but not its requests, finds that it leads.
func TestLostAnswers(t *testing.T) {
	k, a := new(key), newCandidate("a")
	deaf := func() (bool, bool) { return false, true }
	a.step(1*time.Second, k, deaf, Input{Tick: true})
	for now := 2 * time.Second; now < 20*time.Second; now += time.Second {
		cut := whole
		if now%(2*time.Second) > 0 {
			cut = deaf
		}
		a.step(now, k, cut, Input{Tick: true})
		if now > 4*time.Second && (a.leads == nil || now >= a.Until()) {
			t.Errorf("at %v a leads %+v until %v", now, a.leads, a.Until())
		}
	}
	if k.holds.Term != 1 {
		t.Errorf("the key has %+v, want term 1", k.holds)
	}
}

// While the store is away for all, nobody's term ends.
func TestStoreAway(t *testing.T) {
	k, a, b := new(key), newCandidate("a"), newCandidate("b")
	a.step(0, k, whole, Input{Tick: true})
	for now := time.Second; now < time.Minute; now += time.Second {
		cut := whole
		if now > 10*time.Second && now < 40*time.Second {
			cut = dead
		}
		for _, c := range []*candidate{b, a} { // b looks before a speaks
			c.step(now, k, cut, Input{Tick: true})
		}
		if now == 10*time.Second { // so that one more look would be enough
			b.step(now, k, cut, Input{Tick: true})
			b.step(now, k, cut, Input{Tick: true})
		}
	}
	if k.holds.Term != 1 || k.holds.ID != "a" || a.leads == nil || b.leads != nil {
		t.Errorf("the key has %+v, a leads %+v, b leads %+v", k.holds, a.leads, b.leads)
	}
}

// One who has waited long enough, and whose try to take over was lost with the store, waits again when that is back.
func TestLostTry(t *testing.T) {
	k, a, b := new(key), newCandidate("a"), newCandidate("b")
	a.step(0, k, whole, Input{Tick: true})
	now := time.Second
	for ; now < 6*time.Second; now += time.Second {
		b.step(now, k, whole, Input{Tick: true})
	}
	b.step(now, k, func() (bool, bool) { // what is read comes, what is to be set does not
		return b.pending.Set != nil, false
	}, Input{Tick: true})
	if b.pending != (Output{}) || b.tried != now {
		t.Fatalf("at %v b has tried to lead at %v: %+v", now, b.tried, b.pending)
	}
	b.step(now+time.Second, k, whole, Input{Tick: true})
	if b.leads != nil {
		t.Errorf("b leads before a was able to say that it does: %+v", k.holds)
	}
}

// A clock that jumps ahead between two looks takes no leader's place, and one that jumps back keeps nobody from it.
func TestClocksThatJump(t *testing.T) {
	k, a, b := new(key), newCandidate("a"), newCandidate("b")
	a.step(0, k, whole, Input{Tick: true})
	b.step(time.Second, k, whole, Input{Tick: true})
	b.ahead = time.Minute
	b.step(2*time.Second, k, whole, Input{Tick: true})
	if b.leads != nil {
		t.Error("b leads at its second look")
	}
	b.ahead = -time.Hour
	for now := 3 * time.Second; now < 10*time.Second; now += time.Second {
		b.step(now, k, whole, Input{Tick: true})
	}
	if b.leads == nil {
		t.Errorf("b does not lead: %+v", k.holds)
	}
}

// A leader whose key was removed leads no longer. It may remove nothing for a beat before others may take over.
func TestKeyIsGone(t *testing.T) {
	k, a := new(key), newCandidate("a")
	a.step(0, k, whole, Input{Tick: true})
	a.step(time.Second, k, whole, Input{Tick: true})
	if want := time.Second + a.config.TTL - a.config.Beat; a.Until() != want {
		t.Errorf("a may remove things until %v, want %v", a.Until(), want)
	}
	*k = key{}
	a.step(2*time.Second, k, whole, Input{Tick: true})
	if a.leads != nil || k.revision != 0 {
		t.Errorf("a leads %+v, the key has %+v", a.leads, k.holds)
	}
}

// TestLeadership has candidates meet lost requests, lost answers, pauses, and clocks that jump. No two lead in the same
// term; while no clock jumps, no two may remove something at the same time; and once there is peace one leads.
func TestLeadership(t *testing.T) {
	for seed := range uint64(3000) {
		leadershipOf(t, seed)
	}
}

func FuzzLeadership(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { leadershipOf(t, seed) })
}

func leadershipOf(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	k := new(key)
	var all []*candidate
	jumps := seed%2 == 1
	for i := range 2 + rng.IntN(2) {
		c := newCandidate(fmt.Sprint("c", i))
		c.ahead = time.Duration(rng.IntN(1e12))
		all = append(all, c)
	}
	terms := make(map[int64]string)
	paused := make(map[*candidate]time.Duration) // until when
	now := time.Duration(0)
	run := func(beats int, trouble bool) {
		for i := range beats * len(all) {
			now += time.Second / time.Duration(len(all))
			c := all[i%len(all)]
			if trouble {
				c = all[rng.IntN(len(all))]
			}
			if trouble && rng.IntN(20) == 0 {
				paused[c] = now + time.Duration(rng.IntN(15))*time.Second
			}
			if trouble && jumps && rng.IntN(30) == 0 {
				c.ahead += time.Duration(rng.IntN(60)-30) * time.Second
			}
			if now < paused[c] {
				continue
			}
			c.step(now, k, func() (bool, bool) {
				return trouble && rng.IntN(6) == 0, trouble && rng.IntN(6) == 0
			}, Input{Tick: true})
			if c.leads != nil {
				if other := terms[c.leads.Term]; other != "" && other != c.leads.ID {
					t.Fatalf("seed %d: %s and %s lead in term %d", seed, other, c.leads.ID, c.leads.Term)
				}
				terms[c.leads.Term] = c.leads.ID
			}
			sure := slices.DeleteFunc(slices.Clone(all), func(c *candidate) bool { return now+c.ahead >= c.Until() })
			if !jumps && len(sure) > 1 {
				t.Fatalf("seed %d: at %v both %+v and %+v may remove things", seed, now, sure[0].mine, sure[1].mine)
			}
		}
	}
	run(60, true)
	clear(paused)
	run(40, false)
	before := k.holds.Term
	run(40, false)
	leads := slices.DeleteFunc(slices.Clone(all), func(c *candidate) bool { return c.leads == nil })
	if len(leads) != 1 || leads[0].config.ID != k.holds.ID || k.holds.Term != before {
		t.Fatalf("seed %d: in peace %d lead, in term %d and then in %d: %+v", seed, len(leads), before, k.holds.Term,
			k.holds)
	}
}
