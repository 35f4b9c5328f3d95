package randtest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/scheduler/policies"
)

// The options of a run are bits of FuzzPlans' second argument.
const (
	twoJobs = 1 << iota
	changing
	small
	lasting
)

// vanilla returns the plan that frees everything after its last use and moves nothing.
func vanilla(t testing.TB, d device.Device, g *graph.Graph) *plan.Plan {
	r, err := policies.Schedule(request(d, "none-live", g), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.Jobs[0].Plan
}

// tight returns a plan of the policy tensile for less than the vanilla plan needs, or the vanilla plan if there is
// none.
func tight(t testing.TB, d device.Device, rng *rand.Rand, g *graph.Graph) *plan.Plan {
	live, err := policies.Schedule(request(d, "none-live", g), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := request(d, "tensile", g)
	r.Budget = live.Arena * graph.Bytes(60+rng.IntN(40)) / 100
	if planned, err := policies.Schedule(r, nil); err == nil {
		return planned.Jobs[0].Plan
	}
	return live.Jobs[0].Plan
}

// checkSeed trains the graph of a seed by its vanilla plan and then by random plans or by the scheduler's, alone or
// beside another job, with one plan or changing ones, and compares the bits of everything that the user gets to see.
func checkSeed(t testing.TB, d device.Device, seed uint64, options byte) {
	t.Helper()
	iterations, o := 3, graphtest.Options{}
	if options&lasting != 0 {
		iterations = 5
	}
	if options&small != 0 {
		o.Ops = 10
	}
	rng, g := seeded(seed, o)
	what := fmt.Sprintf("seed %d options %d", seed, options)
	want := train(t, d, iterations, what+" vanilla", job{g: g, seed: seed, programs: programs(t, d, what, g,
		vanilla(t, d, g))})[0]
	mustBeFinite(t, what+" vanilla", g, iterations, want)

	jobs := []job{randomJob(t, d, rng, what, g, seed, options)}
	if options&twoJobs != 0 {
		jobs = append(jobs, randomJob(t, d, rng, what, g, seed, options))
	}
	for i, got := range train(t, d, iterations, what, jobs...) {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s job %d: other bits than by the vanilla plan (-want +got):\n%s\n%s", what, i, diff,
				jobs[i].programs[0].Program().Plan.Text(g))
		}
	}
}

func randomJob(t testing.TB, d device.Device, rng *rand.Rand, what string, g *graph.Graph, seed uint64,
	options byte) job {
	j := job{g: g, seed: seed}
	plans := []*plan.Plan{New(rng, g, scratchOf(d, g))}
	if rng.IntN(4) == 0 {
		plans[0] = tight(t, d, rng, g)
	}
	if options&changing != 0 {
		plans = append(plans, New(rng, g, scratchOf(d, g)), vanilla(t, d, g))
		first := rng.IntN(2)
		j.changes = []int{first, first + rng.IntN(2)}
		if j.changes[1] == j.changes[0] {
			plans, j.changes = plans[:2], j.changes[:1]
		}
	}
	j.programs = programs(t, d, what, g, plans...)
	return j
}

// TestSameBits is the project's safety property: whatever the plan, the bits are those of the plain one, no command
// touches bytes outside of the arena, and nothing that was dropped is seen again.
func TestSameBits(t *testing.T) {
	seeds := long.Rounds(64, 800)
	engines(t, func(t *testing.T, d *cpu.Device) {
		for seed := range seeds {
			checkSeed(t, d, seed, byte(seed%16))
		}
	})
}

func FuzzPlans(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(seed, byte(seed))
	}
	d := openCPU(f)
	f.Fuzz(func(t *testing.T, seed uint64, options byte) { checkSeed(t, d, seed, options) })
}
