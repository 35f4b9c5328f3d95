package learn

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/plan"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// The first report of an incarnation teaches nothing, and what no variant of the profile has taken neither.
func TestWarmUpTeachesNothing(t *testing.T) {
	k := Restore("x", nil)
	profile := &planner.Profile{Signatures: []graph.Signature{"a", "b", "a"}}
	p := &plan.Plan{Steps: []plan.Step{{Op: 0}, {Op: 1, Variant: "another"}, {Op: 2}}}
	incarnation := int64(1)
	var j Teacher
	hear := func(took time.Duration) { k.Hear(&j, incarnation, profile, p, []time.Duration{took, took, 3 * took}) }
	hear(time.Second)
	if len(k.lessons) != 0 {
		t.Errorf("the first report has taught %v", k.lessons)
	}
	hear(10)
	if took, ok := k.LatencyOf("a"); !ok || took != 20 {
		t.Errorf("a takes %v (%v), want the average of 10 ns and 30 ns", took, ok)
	}
	if _, ok := k.LatencyOf("b"); ok {
		t.Error("a step in another variant has taught what the first one takes")
	}
	incarnation = 2
	hear(time.Second)
	if took, _ := k.LatencyOf("a"); took != 20 {
		t.Errorf("the first report of the second incarnation has taught %v", took)
	}
	hear(40)
	if took, _ := k.LatencyOf("a"); took != 50 {
		t.Errorf("after 20 ns and 80 ns it is %v on average", took)
	}
	hear(math.MaxInt64)
	if took, _ := k.LatencyOf("a"); took > 50+50*8 {
		t.Errorf("an outlier makes it %v", took)
	}
}

// Whatever reports say: no more signatures are kept than may be, those that were heard of last stay, each latency lies
// between the least and the most that was reported, and what is stored is found again.
func TestLearntBounds(t *testing.T) {
	const universe = 3 * wire.MaxLearnt
	signature := func(i int) graph.Signature {
		const digits = "0123456789abcdef"
		s := []byte("00000000000000000000000000000000")
		for at := 31; i > 0; at, i = at-1, i/16 {
			s[at] = digits[i%16]
		}
		return graph.Signature(s)
	}
	for seed := range long.Rounds(3, 20) {
		rng := rand.New(rand.NewPCG(seed, 5))
		k := Restore("x", nil)
		least, most := map[graph.Signature]time.Duration{}, map[graph.Signature]time.Duration{}
		heard := map[graph.Signature]int{} // the newest round in which it was
		rounds := 40
		for round := range rounds {
			j, profile, p := &Teacher{warm: 1}, new(planner.Profile), new(plan.Plan)
			var steps []time.Duration
			from := rng.IntN(universe)
			for op := range 1 + rng.IntN(wire.MaxLearnt/2) {
				s := signature((from + op*(1+int(seed%3))) % universe)
				took := time.Duration(rng.Int64N(1 << (1 + rng.IntN(45))))
				if rng.IntN(100) == 0 {
					took = math.MaxInt64
				}
				profile.Signatures = append(profile.Signatures, s)
				p.Steps = append(p.Steps, plan.Step{Op: graph.OpID(op)})
				steps = append(steps, took)
				if _, kept := k.lessons[s]; !kept {
					delete(least, s)
					delete(most, s)
				}
				took = min(took, wire.MaxLatency)
				if old, ok := least[s]; !ok || took < old {
					least[s] = took
				}
				most[s], heard[s] = max(most[s], took), round
			}
			for range 1 + rng.IntN(3) {
				k.Hear(j, 1, profile, p, steps)
			}
			if len(k.lessons) > wire.MaxLearnt {
				t.Fatalf("seed %d: %d signatures are kept", seed, len(k.lessons))
			}
			for s, x := range k.lessons {
				if x.latency < least[s] || x.latency > most[s] {
					t.Fatalf("seed %d: %s takes %v, of %v to %v that were reported", seed, s, x.latency, least[s],
						most[s])
				}
			}
		}
		oldest := rounds
		for s := range k.lessons {
			oldest = min(oldest, heard[s])
		}
		for s, round := range heard {
			if k.lessons[s] == nil && round > oldest {
				t.Fatalf("seed %d: a signature of round %d was forgotten, one of round %d is kept", seed, round, oldest)
			}
		}
		stored, err := wire.DecodeAs[wire.Learnt](wire.Encode(k.Stored("x")))
		if err != nil {
			t.Fatal(err)
		}
		again := Restore("x", &stored)
		if !slices.Equal(again.oldestFirst(), k.oldestFirst()) {
			t.Errorf("seed %d: after a restart they would be forgotten in another order", seed)
		}
		if got, want := again.AllLatencies(), k.AllLatencies(); !maps.Equal(got, want) {
			t.Errorf("seed %d: %d latencies are stored, %d come back", seed, len(want), len(got))
		}
		if !slices.IsSortedFunc(stored.Ops, func(a, b wire.LearntOp) int {
			return cmp.Compare(k.lessons[a.Signature].lastReport, k.lessons[b.Signature].lastReport)
		}) {
			t.Errorf("seed %d: they are not stored by when they were heard of", seed)
		}
	}
}
