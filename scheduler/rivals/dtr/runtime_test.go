package dtr

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/jobtest"
)

var heuristics = []string{DTR, Eq, Local, LRU, Size, MSPS}

// TestNeighbourhoods executes random graphs and chains, and compares after each op what is known of the
// neighbourhoods with their definition, the victim with the least of all scores, and the sums of what is used.
func TestNeighbourhoods(t *testing.T) {
	victims, around := 0, 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 31))
		j, align := chain(3+rng.IntN(20)), graph.Bytes(512)
		if seed%3 > 0 {
			r := jobtest.New(rng, 1)
			j, align = &r.Jobs[0], r.Align
		}
		h := heuristics[rng.IntN(len(heuristics))]
		r := newRuntime(j, h, 1<<50, align, func(int) {})
		if err := r.run(); err != nil {
			t.Fatal(err)
		}
		persistent, most := r.used, r.used
		for _, s := range r.storages {
			if s.resident {
				persistent -= s.bytes
			}
			if !s.persists {
				most += s.bytes
			}
		}
		r = newRuntime(j, h, persistent+(most-persistent)*graph.Bytes(10+rng.IntN(60))/100, align, func(int) {})
		for id := range r.ops {
			if r.overwrite(graph.OpID(id)) != nil || r.perform(graph.OpID(id), 0, false) != nil {
				break
			}
			for _, s := range r.ops[id].dying {
				r.release(s)
			}
			var used graph.Bytes
			for i := range r.storages {
				s := &r.storages[i]
				if s.resident {
					used += s.bytes
				}
				if s.valid && s.place >= 0 && s.around != slowAround(r, s) {
					t.Fatalf("seed %d, %s: around %s after op %d: %v, want %v", seed, h, r.g.Storages[i].Name, id,
						s.around, slowAround(r, s))
				} else if s.valid && s.around > 0 {
					around++
				}
				if (s.class >= 0) != (h == Eq && s.evicted()) {
					t.Fatalf("seed %d, %s: after op %d %s is in class %d", seed, h, id, r.g.Storages[i].Name, s.class)
				}
			}
			if used += persistent; used != r.used {
				t.Fatalf("seed %d: %v are used, not %v", seed, r.used, used)
			}
			if len(r.pool) > 0 {
				victims++
				if got, want := r.victim(), slowVictim(r); got != want {
					t.Fatalf("seed %d, %s: victim %d after op %d, want %d", seed, h, got, id, want)
				}
			}
		}
	}
	if victims < 1000 || around < 1000 {
		t.Errorf("%d victims and %d neighbourhoods were compared", victims, around)
	}
}

// slowAround is the sum over e* by its definition.
func slowAround(r *runtime, s *storage) (sum time.Duration) {
	e := make(map[graph.StorageID]bool)
	var walk func(ids []graph.StorageID, next func(*storage) []graph.StorageID)
	walk = func(ids []graph.StorageID, next func(*storage) []graph.StorageID) {
		for _, id := range ids {
			if x := &r.storages[id]; x.evicted() && !e[id] {
				e[id] = true
				sum += x.cost
				walk(next(x), next)
			}
		}
	}
	walk(s.parents, func(x *storage) []graph.StorageID { return x.parents })
	if r.heuristic == DTR {
		walk(s.children, func(x *storage) []graph.StorageID { return x.children })
	}
	return sum
}

// slowVictim is the last unlocked of the storages with the least h, in fractions.
func slowVictim(r *runtime) graph.StorageID {
	best := graph.StorageID(-1)
	var least *big.Rat // nil: infinite
	for _, id := range r.pool {
		s := &r.storages[id]
		c, m, stale := s.cost, int64(s.bytes), int64(r.clock-s.access)
		switch r.heuristic {
		case DTR:
			c += slowAround(r, s)
		case MSPS:
			c, stale = c+slowAround(r, s), 1
		case Eq:
			c += r.classSum(s)
		case LRU:
			c, m = 1, 1
		case Size:
			c, stale = 1, 1
		}
		var h *big.Rat
		if m*stale > 0 {
			h = big.NewRat(int64(c), m)
			h.Quo(h, big.NewRat(stale, 1))
		}
		order := -1
		switch {
		case best < 0:
		case h == nil && least == nil:
			order = 0
		case h == nil:
			order = 1
		case least != nil:
			order = h.Cmp(least)
		}
		if order < 0 || order == 0 && s.unlocked > r.storages[best].unlocked {
			best, least = id, h
		}
	}
	return best
}

// TestClasses compares the classes with sets that are relabelled at each merge.
func TestClasses(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 32))
		var c classes
		var label []int
		var cost []time.Duration
		for range 80 {
			switch k := rng.IntN(3); {
			case k == 0 || len(label) < 2:
				label = append(label, len(label))
				cost = append(cost, time.Duration(rng.IntN(100)))
				c.add(cost[len(cost)-1])
			case k == 1:
				x, y := rng.IntN(len(label)), rng.IntN(len(label))
				c.merge(x, y)
				from, to := label[x], label[y]
				for i := range label {
					if label[i] == from {
						label[i] = to
					}
				}
			default:
				x := rng.IntN(len(label))
				c.leave(x, cost[x])
				cost[x] = 0
			}
			for x := range label {
				var want time.Duration
				for y := range label {
					same := label[x] == label[y]
					if same != (c.find(x) == c.find(y)) {
						t.Fatalf("seed %d: members %d and %d are in classes %d and %d", seed, x, y, c.find(x),
							c.find(y))
					}
					if same {
						want += cost[y]
					}
				}
				if got := c.sum[c.find(x)]; got != want {
					t.Fatalf("seed %d: the class of %d sums up to %v, want %v", seed, x, got, want)
				}
			}
		}
	}
}

// A class keeps its links when what made them comes back: of a1, a2 that is made of it and d1 that is, the latter two
// stay in one class when a1 is there again, and count both for d0, though a2 is no part of its e*.
func TestSpuriousLink(t *testing.T) {
	for h, want := range map[string][2]time.Duration{Eq: {3, 2}, DTR: {2, 1}} {
		r := newRuntime(chain(3), h, 1<<40, 512, func(int) {})
		for id := range r.ops {
			if err := r.perform(graph.OpID(id), 0, false); err != nil {
				t.Fatal(err)
			}
		}
		const a1, a2, d1, d0 = 1, 2, 5, 6
		around := func() time.Duration {
			if h == Eq {
				return r.classSum(&r.storages[d0])
			}
			return r.neighbourhood(&r.storages[d0])
		}
		for _, s := range []graph.StorageID{a1, a2, d1} {
			r.evict(s)
		}
		if got := around(); got != want[0]*time.Millisecond {
			t.Errorf("%s: %v around d0 with three away, want %dms", h, got, want[0])
		}
		if err := r.rematerialise(a1); err != nil {
			t.Fatal(err)
		}
		if got := around(); got != want[1]*time.Millisecond {
			t.Errorf("%s: %v around d0 with a1 back, want %dms", h, got, want[1])
		}
	}
}

// TestRefusals: nothing is left to evict; repetitions take longer than the iteration; and an unknown heuristic.
func TestRefusals(t *testing.T) {
	_, err := execute(chain(64), DTR, 3*graph.MiB, 512, func(int) {})
	if out, ok := errors.AsType[*outOfMemory](err); !ok || out.need != 4*graph.MiB {
		t.Errorf("three tensors: %v", err)
	}
	if _, err = execute(chain(64), DTR, 5*graph.MiB, 512, func(int) {}); !errors.Is(err, errThrash) {
		t.Errorf("five tensors: %v", err)
	}
	r := scheduler.Request{Policy: "dtr", Jobs: []scheduler.Job{*chain(64)}, Align: 512, Budget: 5 * graph.MiB}
	plan := func() error {
		_, err := draft.Open(r, scheduler.Watch{}, Plan)
		return err
	}
	over, ok := errors.AsType[*scheduler.OverBudgetError](plan())
	if !ok || !strings.Contains(over.Reason, "job chain by policy dtr: repetitions take longer") {
		t.Fatalf("five tensors: %v", over)
	}
	if r.Budget = over.Need; plan() != nil {
		t.Errorf("what a refusal asks for: %v", plan())
	}
	r.Options.Own = Options{Heuristic: "newest"}
	if err := plan(); err == nil || err.Error() != `heuristic "newest": choose dtr, eq, local, lru, size or msps` {
		t.Error(err)
	}
}

// TestAccess executes a chain with room for all: a storage was last accessed when the last op that reads it began, or,
// where none does, when the op that makes it had ended (simrd, runtime v2).
func TestAccess(t *testing.T) {
	r := newRuntime(chain(5), DTR, graph.GiB, 512, func(int) {})
	if err := r.run(); err != nil {
		t.Fatal(err)
	}
	for i := range r.storages {
		var want time.Duration
		for id := range r.ops {
			began := time.Duration(id) * time.Millisecond
			for _, w := range r.ops[id].writes {
				if w.Storage == graph.StorageID(i) {
					want = began + time.Millisecond
				}
			}
			for _, v := range r.ops[id].reads {
				if v.Storage == graph.StorageID(i) {
					want = began
				}
			}
		}
		if got := r.storages[i].access; got != want {
			t.Errorf("%s was last accessed at %v, want %v", r.g.Storages[i].Name, got, want)
		}
	}
}
