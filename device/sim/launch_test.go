package sim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/device"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
)

// launching is a device without links whose kernels take 10 ns per element alone, launch included.
func launching(launch time.Duration) *sim.Device {
	return sim.New(cost.Facts{Launch: launch}, sim.Options{Latency: func(g *graph.Graph, op graph.OpID) time.Duration {
		return time.Duration(10 * g.Tensors[g.Ops[op].Outputs[0]].Shape.Elements())
	}})
}

// Launches do not compete with work, and not with each other.
func TestLaunch(t *testing.T) {
	d := launching(6)
	long, short := open(t, d, chain(t, 3), "long"), open(t, d, chain(t, 1), "short")
	sim.Issue(long, section(kernel()), 0, false)
	sim.Issue(short, section(kernel(), kernel(), kernel()), 0, false)
	// Both launch from 0 to 6. The long kernel has 24 ns of work, each of the short ones 4. The first of these shares
	// the unit from 6 to 14, the second from 20 to 28, the third is launched at 34. The long one has worked 4 by 14,
	// alone
	// 10 by 20, 14 by 28, alone 20 by 34, and has 4 left: both end at 42.
	want := `short 0.0 kernel 0..14
short 0.1 kernel 14..28
long  0.0 kernel 0..42
short 0.2 kernel 28..42
`
	names := map[device.Job]string{long: "long ", short: "short"}
	if diff := cmp.Diff(want, trace(events(t, d, 4), names)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// stepwise is when the kernels of jobs end, job after job, on a unit that is looked at in each nanosecond: a job that
// launches comes nearer to its end, and those that work have equal parts of the unit.
func stepwise(launch time.Duration, jobs [][]time.Duration) (ends [][]time.Duration, most int) {
	const grain = 720720 // of the work of a nanosecond; up to 16 jobs have equal parts
	type kernel struct{ launch, work int64 }
	next := make([]kernel, len(jobs))
	ends = make([][]time.Duration, len(jobs))
	begin := func(i int) bool { // the next kernel of a job
		if len(ends[i]) == len(jobs[i]) {
			return false
		}
		alone := jobs[i][len(ends[i])]
		next[i] = kernel{int64(min(alone, launch)), int64(alone-min(alone, launch)) * grain}
		return true
	}
	left := 0
	for i := range jobs {
		if begin(i) {
			left++
		}
	}
	for now := time.Duration(1); left > 0; now++ {
		users := 0
		for i, k := range next {
			if len(ends[i]) < len(jobs[i]) && k.launch == 0 {
				users++
			}
		}
		most = max(most, users)
		for i := range next {
			k := &next[i]
			switch {
			case len(ends[i]) == len(jobs[i]):
				continue
			case k.launch > 0:
				k.launch--
			default:
				k.work -= int64(grain / users)
			}
			if k.launch <= 0 && k.work <= 0 {
				if ends[i] = append(ends[i], now); !begin(i) {
					left--
				}
			}
		}
	}
	return ends, most
}

// TestLaunchStepwise compares random jobs with the stepwise unit, to the nanosecond, and holds what follows from the
// model: the unit does no more work than there is time, no kernel is faster than alone, and a job that is alone takes
// as long as if there were no launches.
func TestLaunchStepwise(t *testing.T) {
	shared := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		launch := time.Duration(r.IntN(4) * r.IntN(60))
		jobs := make([][]time.Duration, 1+r.IntN(8))
		d, total := launching(launch), 0
		at := make(map[device.Job]int)
		var work time.Duration
		for i := range jobs {
			n := 1 + r.IntN(12)
			j := open(t, d, chain(t, n), "")
			at[j] = i
			for k := range 1 + r.IntN(9) {
				alone := time.Duration(10 * n)
				jobs[i] = append(jobs[i], alone)
				work += alone - min(alone, launch)
				sim.Issue(j, section(kernel()), k, false)
				total++
			}
		}
		want, most := stepwise(launch, jobs)
		got := make([][]time.Duration, len(jobs))
		for _, e := range events(t, d, total) {
			i := at[e.Job]
			if took, alone := e.End-e.Start, jobs[i][e.Iteration]; took < alone || len(jobs) == 1 && took != alone {
				t.Errorf("seed %d: a kernel of %d jobs takes %v, alone %v", seed, len(jobs), took, alone)
			}
			got[i] = append(got[i], e.End)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d, a launch of %v: ends (-stepwise +sim):\n%s", seed, launch, diff)
		}
		if d.Now() < work {
			t.Errorf("seed %d: %v of work took %v", seed, work, d.Now())
		}
		if most > 2 && launch > 0 {
			shared++
		}
	}
	if shared < 50 {
		t.Errorf("only %d of the seeds have launches and three jobs that work at once", shared)
	}
}

// A kernel's launch is the part of its duration up to that of the facts, whatever noise and pace make of the duration.
func TestLaunchOfNoise(t *testing.T) {
	const launch = 40
	kernels := func(o sim.Options, jobs int) (took []time.Duration) {
		o.Latency = func(*graph.Graph, graph.OpID) time.Duration { return 100 }
		d := sim.New(cost.Facts{Launch: launch}, o)
		for range jobs {
			j := open(t, d, chain(t, 1), "same")
			for i := range 5 {
				sim.Issue(j, section(kernel()), i, false)
			}
		}
		for _, e := range events(t, d, 5*jobs) {
			took = append(took, e.End-e.Start)
		}
		return took
	}
	for _, o := range []sim.Options{{}, {Noise: 0.9, Seed: 3}, {Pace: func(time.Duration) float64 { return 0.3 }}} {
		alone, together := kernels(o, 1), kernels(o, 2) // equal jobs of one name keep in step
		for i, a := range alone {
			if want := min(a, launch) + 2*(a-min(a, launch)); together[2*i] != want || together[2*i+1] != want {
				t.Errorf("%+v: kernel %d takes %v alone, and %v and %v beside its like, want %v", o, i, a,
					together[2*i], together[2*i+1], want)
			}
		}
	}
}
