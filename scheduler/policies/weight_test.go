package policies_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/graphtest"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/scheduler"
)

// equals returns a request of n jobs with one graph and the same latencies.
func equals(rng *rand.Rand, n int) scheduler.Request {
	link := cost.Link{Rate: cost.BytesPerSecond(1e6 * (5 + rng.Float64()*50)), Latency: 100}
	j := scheduler.Job{Graph: graphtest.New(rng, graphtest.Options{})}
	for range j.Graph.Ops {
		j.Latency = append(j.Latency, time.Duration(1000+rng.IntN(10000)))
	}
	r := scheduler.Request{Policy: "tensile", Out: link, In: link, Align: align}
	for i := range n {
		j.Name = fmt.Sprint(i)
		r.Jobs = append(r.Jobs, j)
	}
	return r
}

func liveArena(t testing.TB, r scheduler.Request) graph.Bytes {
	t.Helper()
	r.Policy, r.Budget = "none-live", 0
	return schedule(t, "none-live", r).Arena
}

// lost is what the jobs' plans copy, and by how much their iterations exceed the sum of their ops.
type lost struct {
	copied graph.Bytes
	time   time.Duration
}

func lostBy(r scheduler.Request, result scheduler.Result) []lost {
	var all []lost
	for i, s := range result.Jobs {
		g := r.Jobs[i].Graph
		out, in := s.Plan.Copied(g)
		timing := program.Time(compile.Compile(g, s.Plan, s.Layout, compile.Options{}),
			program.Durations{Steps: s.Plan.Made,
				Out: s.Out, In: s.In})
		for _, l := range r.Jobs[i].Latency {
			timing.Iteration -= l
		}
		all = append(all, lost{out + in, timing.Iteration})
	}
	return all
}

// TestWeight plans two copies of a job, one of which weighs ten times as much: it moves fewer bytes and loses less time
// than the other one, and than it does among equals.
func TestWeight(t *testing.T) {
	var heavy, light, equal lost
	requests, fewer, more := 0, 0, 0
	for seed := range seeds(100) {
		rng := rand.New(rand.NewPCG(seed, 16))
		r := equals(rng, 2)
		r.Budget = liveArena(t, r) * graph.Bytes(60+rng.IntN(30)) / 100
		what := fmt.Sprintf("seed %d", seed)
		among, err := attempt(t, what, r)
		if err != nil {
			continue
		}
		h := rng.IntN(2)
		r.Jobs[h].Weight, r.Jobs[1-h].Weight = 30, 3
		result, err := attempt(t, what, r)
		if err != nil {
			continue
		}
		mustHold(t, what, r, result)
		requests++
		now, before := lostBy(r, result), lostBy(r, among)
		if now[h].copied < now[1-h].copied {
			fewer++
		} else if now[h].copied > now[1-h].copied {
			more++
		}
		heavy = lost{heavy.copied + now[h].copied, heavy.time + now[h].time}
		light = lost{light.copied + now[1-h].copied, light.time + now[1-h].time}
		equal = lost{equal.copied + before[h].copied, equal.time + before[h].time}
	}
	t.Logf("%d requests: heavy %+v, light %+v, among equals %+v; the heavy job moves fewer bytes in %d, more in %d",
		requests, heavy, light, equal, fewer, more)
	if requests < int(seeds(100))/2 || heavy.copied*5 > light.copied*4 || heavy.time*3 > light.time*2 ||
		heavy.copied >= equal.copied || heavy.time >= equal.time ||
		fewer < 4*more {
		t.Errorf("%d requests: heavy %+v, light %+v, among equals %+v; fewer bytes in %d, more in %d", requests, heavy,
			light, equal, fewer, more)
	}
}

// TestSameWeights shows that weights matter only beside others: the same weight for all gives the plans of none.
func TestSameWeights(t *testing.T) {
	for seed := range seeds(60) {
		r := random(rand.New(rand.NewPCG(seed, 17)))
		r.Budget = liveArena(t, r) * 3 / 4
		var texts [3]string
		for k, weight := range []int{0, 1, scheduler.MaxWeight} {
			for i := range r.Jobs {
				r.Jobs[i].Weight = weight
			}
			result, err := attempt(t, fmt.Sprintf("seed %d", seed), r)
			texts[k] = fmt.Sprint(err)
			for i, s := range result.Jobs {
				texts[k] += s.Plan.Text(r.Jobs[i].Graph) + fmt.Sprint(s.Decisions, s.Layout.Arena)
			}
			if len(r.Jobs) == 1 && err == nil && result.Jobs[0].Share != (scheduler.Share{Out: scheduler.Whole,
				In: scheduler.Whole}) {
				t.Fatalf("seed %d: a single job has %+v", seed, result.Jobs[0].Share)
			}
		}
		if texts[0] != texts[1] || texts[1] != texts[2] {
			t.Fatalf("seed %d: other plans for other equal weights:\n%s\n%s\n%s", seed, texts[0], texts[1], texts[2])
		}
	}
}

// TestIdleJob shows that a job that swaps nothing leaves the link to the one that does, unless even shares lose less
// time: its inputs are copied too.
func TestIdleJob(t *testing.T) {
	// other: there is no plan, or the job without swaps copies more, inputs and outputs, than that with
	given, kept, other := 0, 0, 0
	for seed := range seeds(40) {
		r := equals(rand.New(rand.NewPCG(seed, 18)), 2)
		r.Budget = liveArena(t, r) * 3 / 4
		r.Jobs[0].MaxSwapRate = 1e-9
		what := fmt.Sprintf("seed %d", seed)
		result, err := attempt(t, what, r)
		if err != nil {
			other++
			continue
		}
		mustHold(t, what, r, result)
		idleOut, _ := result.Jobs[0].Plan.Copied(r.Jobs[0].Graph)
		busyOut, _ := result.Jobs[1].Plan.Copied(r.Jobs[1].Graph)
		switch idle, busy := result.Jobs[0].Share.Out, result.Jobs[1].Share.Out; {
		case idleOut >= busyOut:
			other++
		case idle > busy:
			t.Errorf("%s: %v copied with %d parts of the link, %v with %d", what, idleOut, idle, busyOut, busy)
		case idle == busy:
			kept++
		default:
			given++
		}
	}
	t.Logf("given %d, kept %d, %d requests say nothing", given, kept, other)
	if given < int(seeds(40))/2 || given < 5*kept {
		t.Errorf("the idle job gave its share away in %d requests, kept it in %d", given, kept)
	}
}
