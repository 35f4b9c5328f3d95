package executor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tensile/graph"
)

// TestLedger plays what jobs do and says, after each, who may apply a program then. "ask a 60" asks for an arena of
// 60, "has a 60" an arena reserved, "ends a" the end of a job.
func TestLedger(t *testing.T) {
	tests := []struct {
		name   string
		budget graph.Bytes
		steps  []string // what happens: who may go on
	}{
		{"no limit", 0, []string{"ask a 1000: a1000", "ask b 5000: b5000"}},
		{"room for both", 100, []string{"ask a 60: a60", "ask b 40: b40"}},
		{"waits for the end", 100, []string{"ask a 60: a60", "has a 60:", "ask b 41:", "ends a: b41"}},
		{"shares are swapped", 100, []string{
			"ask a 60: a60", "ask b 40: b40", "has a 60:", "has b 40:",
			"ask b 60:", "ask a 40: a40", // granted, but a still has 60
			"has a 0: b60", // at home, on the way to 40
			"has a 40:", "has b 0:", "has b 60:"}},
		{"home between programs is room", 100, []string{"ask a 100: a100", "has a 100:", "ask b 50:", "ask a 50: a50",
			"has a 0: b50", "has a 50:"}},
		{"shrinks at once when all is taken", 100, []string{"ask a 60: a60", "ask b 40: b40", "has a 60:", "has b 40:",
			"ask a 60: a60", "ask a 59: a59", "ask b 40: b40"}},
		{"back to what it still has", 100, []string{"ask a 100: a100", "has a 100:", "ask a 50: a50", "ask a 90: a90",
			"ask b 20:", "has a 90:", "ends a: b20"}},
		{"first come first served", 100, []string{"ask a 100: a100", "ask b 30:", "ask c 30:", "ask d 80:",
			"ends a: b30 c30", "ends b:", "ends c: d80"}},
		{"a small one passes a large one", 100, []string{"ask a 50: a50", "ask b 60:", "ask c 50: c50", "ends a:",
			"ends c: b60"}},
		{"a request is replaced and goes to the end", 100, []string{"ask a 100: a100", "ask b 80:", "ask c 80:",
			"ask b 90:", "ends a: c80", "ends c: b90"}},
		{"a request that waits is replaced by one that fits", 100, []string{"ask a 50: a50", "ask b 60:",
			"ask b 50: b50", "ends a:"}},
		{"a job ends that waits", 100, []string{"ask a 100: a100", "ask b 60:", "ends b:", "ends a:"}},
		{"a job ends before it has its arena", 100, []string{"ask a 100: a100", "ask b 100:", "ends a: b100"}},
		{"too large", 100, []string{"ask a 101! job a: its plan needs an arena of 101B, the budget is 100B",
			"ask b 100: b100"}},
		{"too large a change leaves the request before", 100, []string{"ask a 100: a100", "ask b 50:",
			"ask b 200! job b: its plan needs an arena of 200B, the budget is 100B", "ends a: b50"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := newLedger(test.budget)
			for i, step := range test.steps {
				does := step[:strings.IndexAny(step, ":!")]
				if got := playLedger(l, strings.Fields(does)); got != step {
					t.Fatalf("step %d: %q, want %q", i, got, step)
				}
			}
		})
	}
}

// playLedger carries out a step and returns it with what came of it.
func playLedger(l *ledger, words []string) string {
	did := strings.Join(words, " ")
	job, arena := words[1], graph.Bytes(0)
	if len(words) == 3 {
		n, err := strconv.Atoi(words[2])
		if err != nil {
			panic(err)
		}
		arena = graph.Bytes(n)
	}
	switch words[0] {
	case "ask":
		if err := l.ask(request{job: job, arena: arena}); err != nil {
			return did + "! " + err.Error()
		}
	case "has":
		l.reserved(job, arena)
	case "ends":
		l.end(job)
	}
	did += ":"
	for _, r := range l.grant() {
		did += fmt.Sprintf(" %s%d", r.job, r.arena)
	}
	return did
}

// TestLedgerProperties lets a few jobs ask, go home, grow, shrink and end at random.
func TestLedgerProperties(t *testing.T) {
	var waited, shrunk int
	for seed := range uint64(3000) {
		b := &bank{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 0)), budget: 100, jobs: make([]account, 4)}
		b.l = newLedger(b.budget)
		for range 60 {
			b.move()
			b.settle()
		}
		for i := range b.jobs { // nobody waits for ever
			b.end(i)
			b.settle()
		}
		waited, shrunk = waited+b.waited, shrunk+b.shrunk
	}
	if waited < 10_000 || shrunk < 10_000 {
		t.Errorf("%d requests waited, %d programs shrank: too few to show much", waited, shrunk)
	}
}

// bank is a ledger and what each of its jobs really has.
type bank struct {
	t      *testing.T
	seed   uint64
	r      *rand.Rand
	l      *ledger
	budget graph.Bytes
	jobs   []account

	waited, shrunk int
}

// account is a job: it has an arena, and perhaps a grant that it has not applied or a request that was not granted.
type account struct {
	arena   graph.Bytes
	pending *request
	wanted  *request
}

func (a *account) counts() graph.Bytes {
	if a.pending != nil {
		return max(a.arena, a.pending.arena)
	}
	return a.arena
}

func name(i int) string { return string(rune('a' + i)) }

// move lets something happen to a job.
func (b *bank) move() {
	i := b.r.IntN(len(b.jobs))
	j := &b.jobs[i]
	switch n := b.r.IntN(10); {
	case n < 5:
		p := &request{job: name(i), arena: 1 + graph.Bytes(b.r.IntN(110))}
		if err := b.l.ask(*p); (err != nil) != (p.arena > b.budget) {
			b.t.Fatalf("seed %d: ask for %d of %d: %v", b.seed, p.arena, b.budget, err)
		} else if err == nil {
			j.wanted = p
			b.waited++
		}
	case n < 9 && j.pending != nil:
		b.l.reserved(name(i), 0)
		b.l.reserved(name(i), j.pending.arena)
		j.arena, j.pending = j.pending.arena, nil
	case n == 9:
		b.end(i)
	}
}

func (b *bank) end(i int) {
	b.l.end(name(i))
	b.jobs[i] = account{}
}

// settle takes what the ledger grants until that is nothing, and checks it. Of the ledger's own sums it uses none.
func (b *bank) settle() {
	for b.grant() {
	}
	sum := graph.Bytes(0)
	for i := range b.jobs {
		sum += b.jobs[i].counts()
	}
	if sum > b.budget {
		b.t.Fatalf("seed %d: jobs count with %d of %d: %+v", b.seed, sum, b.budget, b.jobs)
	}
	for i := range b.jobs {
		j := &b.jobs[i]
		if j.wanted != nil && sum-j.counts()+max(j.arena, j.wanted.arena) <= b.budget {
			b.t.Fatalf("seed %d: job %s waits for %d, and there is room: %+v", b.seed, name(i), j.wanted.arena, b.jobs)
		}
		if j.wanted != nil && j.wanted.arena <= j.counts() {
			b.t.Fatalf("seed %d: job %s waits with %d for %d", b.seed, name(i), j.counts(), j.wanted.arena)
		}
	}
}

// grant takes what is granted at once: last requests, in the order in which they came.
func (b *bank) grant() bool {
	order := slices.Clone(b.l.waiting)
	granted := b.l.grant()
	for _, r := range granted {
		i := int(r.job[0] - 'a')
		j := &b.jobs[i]
		if j.wanted == nil || r != *j.wanted {
			b.t.Fatalf("seed %d: job %s was granted %d, which is not its last request", b.seed, r.job, r.arena)
		}
		if r.arena < j.counts() {
			b.shrunk++
		}
		j.pending, j.wanted = j.wanted, nil
		at := slices.Index(order, r)
		if at < 0 {
			b.t.Fatalf("seed %d: job %s was granted before an earlier one of the same call", b.seed, r.job)
		}
		order = order[at+1:]
		b.waited--
	}
	return len(granted) > 0
}
