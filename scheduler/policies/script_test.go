package policies_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/scheduler"
)

// scripts is a request for one or two scripts, with bytes that they hold and a least size of what moves.
func scripts(rng *rand.Rand) scheduler.Request {
	link := cost.Link{Rate: cost.BytesPerSecond(1e6 * (1 + rng.Float64()*200)), Latency: time.Duration(rng.IntN(3000))}
	r := scheduler.Request{Policy: "tensile", Out: link, In: link, Align: align}
	for i := range 1 + rng.IntN(2) {
		j := scheduler.Job{Name: fmt.Sprint(i), Graph: graphtest.Script(rng), Least: graph.Bytes(rng.IntN(1000)),
			Held: graph.Bytes(rng.IntN(3000))}
		for range j.Graph.Ops {
			j.Latency = append(j.Latency, time.Duration(rng.IntN(10000)))
		}
		r.Jobs = append(r.Jobs, j)
	}
	return r
}

// TestScripts schedules what scripts do, within budgets from their working sets to what they need without a plan: ops
// keep their order, an op that runs again has room for what it makes beside its storages, what is held stays until it
// is let go, nothing small moves, and the budget is for held bytes too.
func TestScripts(t *testing.T) {
	var planned, refused, moved, again, tight int
	for seed := range seeds(40) {
		rng := rand.New(rand.NewPCG(seed, 20))
		r := scripts(rng)
		var held graph.Bytes
		for _, j := range r.Jobs {
			held += j.Held
		}
		low, _ := r.WorkingSets()
		plain := schedule(t, fmt.Sprintf("seed %d", seed), r)
		if plain.Least != plain.Arena+held {
			t.Fatalf("seed %d: %d bytes are needed, arenas of %d, %d are held", seed, plain.Least, plain.Arena, held)
		}
		for _, percent := range []graph.Bytes{-10, 10, 30, 50, 75, 100} {
			r.Budget = held + low + (plain.Arena-low)*percent/100
			what := fmt.Sprintf("seed %d, %d %%", seed, percent)
			result, err := attempt(t, what, r)
			if over := (*scheduler.OverBudgetError)(nil); errors.As(err, &over) {
				if over.Budget != r.Budget || over.Need <= r.Budget {
					t.Fatalf("%s: %v, of a budget of %d", what, err, r.Budget)
				}
				refused++
				continue
			} else if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			planned++
			if result.Least != result.Arena+held || result.Least > r.Budget {
				t.Fatalf("%s: %d bytes are needed of %d, arenas of %d, %d are held", what, result.Least, r.Budget,
					result.Arena, held)
			}
			arenas := r
			arenas.Budget -= held
			mustHold(t, what, arenas, result)
			if result.Least < plain.Least {
				tight++
			}
			for i, s := range result.Jobs {
				moves, repeated := smallest(t, what, &r.Jobs[i], s.Plan)
				moved, again = moved+moves, again+repeated
			}
		}
		r.Policy = "capuchin"
		if _, err := attempt(t, "capuchin", r); err == nil || !strings.Contains(err.Error(), "take policy tensile") {
			t.Fatalf("seed %d: policy capuchin plans a script: %v", seed, err)
		}
	}
	t.Logf("%d planned, %d lower, %d refused, %d moves, %d ops run again", planned, tight, refused, moved, again)
	if long.On() && (planned < 100 || tight < 50 || refused < 40 || moved < 100 || again < 30) {
		t.Errorf("%d planned, %d lower, %d refused, %d moves, %d ops run again: too few", planned, tight, refused,
			moved, again)
	}
}

// smallest fails if a storage below the least size moves, and counts copies and repeated ops.
func smallest(t *testing.T, what string, j *scheduler.Job, p *plan.Plan) (moves, again int) {
	t.Helper()
	for _, m := range p.Moves {
		if m.Kind == plan.Drop {
			continue
		}
		if moves++; j.Graph.Storages[m.Storage].Bytes < j.Least {
			t.Fatalf("%s: %s of %s, which is smaller than %d\n%s", what, m.Kind, j.Graph.Storages[m.Storage].Name,
				j.Least, p.Text(j.Graph))
		}
	}
	return moves, len(p.Steps) - len(j.Graph.Ops)
}
