package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/device"
	"tensile/device/devicetest"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// TestEqualsTime runs random programs and compares every command of the fourth body with program.Time.
func TestEqualsTime(t *testing.T) {
	stalled := 0
	for _, g := range []*graph.Graph{devicetest.Tiny(), devicetest.Zoo()} {
		for seed := range uint64(150) {
			r := rand.New(rand.NewPCG(seed, 2))
			d, latency := randomDevice(r)
			p := devicetest.RandomPlan(r, g)
			for i := range p.Moves {
				p.Moves[i].Delay = 0 // Time leaves pauses out
			}
			compiled := devicetest.Build(t, d, g, p, compile.Options{Poison: seed%2 == 1})
			want := program.Time(compiled.Program(), durations(d, g, compiled.Program(), latency))
			if want.Stall > 0 {
				stalled++
			}
			got := fourth(t, d, g, compiled)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d: sim differs from program.Time (-want +got):\n%s\n%s", seed, diff,
					compiled.Program().Text())
			}
		}
	}
	if stalled < 100 {
		t.Errorf("only %d programs stall", stalled)
	}
}

type latencies = func(*graph.Graph, graph.OpID) time.Duration

// randomDevice has random latencies, some of them 0 and some no longer than a launch, and links of random rates.
func randomDevice(r *rand.Rand) (*sim.Device, latencies) {
	link := func() cost.Link {
		return cost.Link{Rate: cost.BytesPerSecond(r.IntN(3)) * 4e9, Latency: time.Duration(r.IntN(100))}
	}
	seed := r.Uint64()
	latency := func(_ *graph.Graph, op graph.OpID) time.Duration {
		return max(0, time.Duration(rand.New(rand.NewPCG(seed, uint64(op))).IntN(2000)-100))
	}
	facts := cost.Facts{Out: link(), In: link(), Launch: time.Duration(seed % 1500)}
	return sim.New(facts, sim.Options{Latency: latency}), latency
}

func durations(d *sim.Device, g *graph.Graph, p *program.Program, latency latencies) program.Durations {
	of := program.Durations{Out: d.Facts().Out, In: d.Facts().In}
	for _, step := range p.Plan.Steps {
		of.Steps = append(of.Steps, latency(g, step.Op))
	}
	return of
}

// fourth runs four bodies and returns the timing of the last, as Time gives it.
func fourth(t *testing.T, d *sim.Device, g *graph.Graph, proven proof.Proven) program.Timing {
	p := proven.Program()
	j, err := d.Open(g, device.JobOptions{})
	if err == nil {
		err = j.Load(proven)
	}
	if err == nil {
		err = j.Reserve(p.Arena)
	}
	if err != nil {
		t.Fatal(err)
	}
	j.Issue(&p.Prologue, 0, len(p.Prologue.Commands), 0, true)
	for i := range 4 {
		j.Issue(&p.Body, 0, len(p.Body.Commands), i, i == 0)
	}
	n := len(p.Body.Commands)
	timing := program.Timing{Start: make([]time.Duration, n), End: make([]time.Duration, n)}
	var before, free time.Duration
	for _, e := range events(t, d, len(p.Prologue.Commands)+4*n) {
		if e.Section != &p.Body {
			continue
		}
		compute := p.Body.Commands[e.Index].Kind.Unit() == program.Compute
		if e.Iteration == 2 && compute {
			before, free = e.End, e.End
		}
		if e.Iteration != 3 {
			continue
		}
		if compute {
			timing.Stall += e.Start - free
			free = e.End
		}
		timing.Start[e.Index], timing.End[e.Index] = e.Start, e.End
	}
	for i := range n {
		timing.Start[i] -= before
		timing.End[i] -= before
	}
	timing.Iteration = free - before
	return timing
}

// Two jobs share the compute unit and the links: what overlaps progresses at half the rate.
func TestContention(t *testing.T) {
	d := plain(0, sim.Options{})
	long, short := open(t, d, chain(t, 10), "long"), open(t, d, chain(t, 2), "short")
	names := map[device.Job]string{long: "long ", short: "short"}
	sim.Issue(long, section(kernel(), copies(program.Out, 7, 0, at(program.Compute, 1))), 0, false)
	sim.Issue(short, section(kernel(), copies(program.In, 17, 0), kernel(at(program.CopyIn, 1)),
		copies(program.Out, 97, 0, at(program.Compute, 2))), 0, false)
	// The long kernel has 100 ns of work. Beside it, the short job computes from 0 to 40 and, after its copy in, which
	// has its link to itself, again from 40 to 80: the long one has 40 left then. Of the copies out, the short job's
	// has 100 ns of work from 80 on, and 20 left at 140 when the long one's of 10 comes: that ends at 180.
	want := `short 0.1 in     0..20
short 0.0 kernel 0..40
short 0.2 kernel 40..80
long  0.0 kernel 0..140
long  0.1 out    140..160
short 0.3 out    80..190
`
	if diff := cmp.Diff(want, trace(events(t, d, 6), names)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Equal kernels end together, after the sum of their work, and one that is alone afterwards takes its own time.
func TestContentionOfMany(t *testing.T) {
	for jobs := 1; jobs <= 20; jobs++ {
		d := plain(0, sim.Options{})
		g := chain(t, 7)
		for range jobs {
			sim.Issue(open(t, d, g, ""), section(kernel()), 0, false)
		}
		last := open(t, d, g, "")
		for i, e := range events(t, d, jobs) {
			if want := time.Duration(70 * jobs); e.End != want {
				t.Errorf("kernel %d of %d ends at %d, want %d", i, jobs, e.End, want)
			}
		}
		sim.Issue(last, section(kernel()), 0, false)
		if e := events(t, d, 1)[0]; e.End-e.Start != 70 {
			t.Errorf("alone after %d: %d ns", jobs, e.End-e.Start)
		}
	}
}

// Work is conserved: jobs with kernels alone keep the unit busy, whatever their number and lengths.
func TestContentionConserves(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		d := plain(0, sim.Options{})
		jobs, total, work := 1+r.IntN(6), 0, time.Duration(0)
		for range jobs {
			n, kernels := 1+r.IntN(9), 1+r.IntN(5)
			j := open(t, d, chain(t, n), "")
			for i := range kernels {
				sim.Issue(j, section(kernel()), i, false)
			}
			total += kernels
			work += time.Duration(10 * n * kernels)
		}
		events(t, d, total)
		if now := d.Now(); now < work || now > work+time.Duration(total) {
			t.Errorf("seed %d: %d kernels with %v of work took %v", seed, total, work, now)
		}
	}
}

func TestNoise(t *testing.T) {
	const kernels = 400
	run := func(name string, seed uint64) []time.Duration {
		d := plain(0, sim.Options{Noise: 0.1, Seed: seed})
		j := open(t, d, chain(t, 1000), name)
		s := section(kernel(), kernel(), copies(program.In, 97, 0))
		for i := range kernels / 2 {
			sim.Issue(j, s, i, false)
		}
		var took []time.Duration
		for _, e := range events(t, d, 3*kernels/2) {
			switch s.Commands[e.Index].Kind {
			case program.Kernel:
				took = append(took, e.End-e.Start)
			default:
				if e.End-e.Start != 100 {
					t.Errorf("a copy takes %d ns", e.End-e.Start)
				}
			}
		}
		return took
	}
	first := run("a", 1)
	var sum time.Duration
	low, high := first[0], first[0]
	for _, d := range first {
		sum += d
		low, high = min(low, d), max(high, d)
	}
	if low < 9000 || high > 11000 || high-low < 1900 {
		t.Errorf("kernels of 10000 ns take from %d to %d ns with a noise of 0.1", low, high)
	}
	if mean := sum / kernels; mean < 9900 || mean > 10100 {
		t.Errorf("kernels of 10000 ns take %d ns in the mean", mean)
	}
	if diff := cmp.Diff(first, run("a", 1)); diff != "" {
		t.Errorf("not the same again:\n%s", diff)
	}
	if cmp.Equal(first, run("a", 2)) || cmp.Equal(first, run("b", 1)) {
		t.Error("seed or name make no difference")
	}
}

// What is mispredicted is so by the same for every iteration, job and device of a seed; kinds and ops differ, by as
// much as was asked for.
func TestMispredicted(t *testing.T) {
	const ops = 600
	b := graph.NewBuilder("ops")
	x := b.Input("x", graph.Anything, graph.Float32, graph.Shape{100_000})
	var s program.Section
	for i := range ops {
		kind := []graph.Kind{graph.ReLU, graph.Tanh}[i/(ops/2)]
		x = b.Op(fmt.Sprint("y", i), kind, graph.Attrs{}, x)[0]
		c := kernel()
		c.Op = graph.OpID(i)
		s.Commands = append(s.Commands, c)
	}
	b.Output(x)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	run := func(o sim.Options, name string) []time.Duration {
		d := plain(0, o)
		j := open(t, d, g, name)
		var took []time.Duration
		for i := range 2 {
			sim.Issue(j, section(s.Commands...), i, false)
		}
		for _, e := range events(t, d, 2*ops) {
			took = append(took, e.End-e.Start)
		}
		if !slices.Equal(took[:ops], took[ops:]) {
			t.Errorf("%+v: the second iteration is not as the first", o)
		}
		return took[:ops]
	}
	mean := func(took []time.Duration) (mean, deviation float64) {
		for _, d := range took {
			mean += math.Log(float64(d)/1e6) / float64(len(took))
		}
		for _, d := range took {
			deviation += math.Pow(math.Log(float64(d)/1e6)-mean, 2) / float64(len(took))
		}
		return mean, math.Sqrt(deviation)
	}
	first := run(sim.Options{Mispredicted: 0.1, Seed: 1}, "a")
	relu, spread := mean(first[:ops/2])
	tanh, spreadToo := mean(first[ops/2:])
	if min(spread, spreadToo) < 0.09 || max(spread, spreadToo) > 0.11 {
		t.Errorf("ops of a kind differ by %v and %v, want 0.1", spread, spreadToo)
	}
	if math.Abs(relu-tanh) < 0.02 || max(math.Abs(relu), math.Abs(tanh)) > 0.4 {
		t.Errorf("kinds are off by %v and %v", relu, tanh)
	}
	if !slices.Equal(first, run(sim.Options{Mispredicted: 0.1, Seed: 1}, "b")) {
		t.Error("another job has other errors")
	}
	if slices.Equal(first, run(sim.Options{Mispredicted: 0.1, Seed: 2}, "a")) {
		t.Error("another seed has the same errors")
	}
	if _, none := mean(run(sim.Options{Seed: 1}, "a")); none != 0 {
		t.Errorf("ops differ by %v where nothing is mispredicted", none)
	}
	if _, more := mean(run(sim.Options{Mispredicted: 0.3, Seed: 1}, "a")[:ops/2]); more < 0.27 || more > 0.33 {
		t.Errorf("ops of a kind differ by %v, want 0.3", more)
	}
}
