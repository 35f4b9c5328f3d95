package randtest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/executor"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/graph/invariants"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/models/task"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
	"tensile/scheduler"
)

func openCPU(t testing.TB) *cpu.Device { return openEngine(t, cpu.Options{}) }

// engines runs a test on the cpu device with one thread, and at full length with three.
func engines(t *testing.T, test func(t *testing.T, d *cpu.Device)) {
	for _, threads := range long.Or([]int{1}, []int{1, 3}) {
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
			test(t, openEngine(t, cpu.Options{Threads: threads}))
		})
	}
}

func openEngine(t testing.TB, o cpu.Options) *cpu.Device {
	d, err := cpu.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// scratchOf returns what the device's default variants need.
func scratchOf(d device.Device, g *graph.Graph) []graph.Bytes {
	scratch := make([]graph.Bytes, len(g.Ops))
	for op := range g.Ops {
		scratch[op] = d.Variants(g, graph.OpID(op))[0].Scratch
	}
	return scratch
}

// request asks a policy for plans of graphs, with latencies by the roofline.
func request(d device.Device, policy string, graphs ...*graph.Graph) scheduler.Request {
	f := d.Facts()
	r := scheduler.Request{Policy: policy, Align: d.Align(), Out: cost.Link{Rate: f.Out.Rate},
		In: cost.Link{Rate: f.In.Rate}}
	for i, g := range graphs {
		j := scheduler.Job{Name: fmt.Sprintf("job%d", i), Graph: g, Variants: scheduler.OneVariant(scratchOf(d, g))}
		for op := range g.Ops {
			j.Latency = append(j.Latency, f.Roofline(g.Cost(graph.OpID(op))))
		}
		r.Jobs = append(r.Jobs, j)
	}
	return r
}

// optionsOf makes programs with snapshot sections.
func optionsOf(d device.Device) compile.Options {
	return compile.Options{Poison: invariants.Enabled, Snapshot: true,
		Durations: program.Durations{Out: d.Facts().Out, In: d.Facts().In, Host: d.Facts().Host}}
}

// proven turns a plan into a program through every proof.
func proven(t testing.TB, d device.Device, g *graph.Graph, p *plan.Plan, what string) proof.Proven {
	t.Helper()
	if err := proof.Validate(g, p); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, p.Text(g))
	}
	layout, err := compile.Place(g, p, d.Align())
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, p.Text(g))
	}
	made, err := compile.Prove(g, p, layout, optionsOf(d))
	if err != nil {
		t.Fatalf("%s: %s\n%s%s", what, err, p.Text(g), compile.Compile(g, p, layout, optionsOf(d)).Text())
	}
	return made
}

// job is a graph with the programs that it is trained with, one after the other.
type job struct {
	g        *graph.Graph
	seed     uint64
	programs []proof.Proven
	changes  []int      // for each program but the first, the iteration whose report brings it
	task     *task.Task // nil: weights and inputs are those of graphtest

	// Per number of iterations what a run of as many comes to. If it is set snapshots are taken, at the boundary after
	// the bodies that are issued first and soon after the third iteration, and their weights compared.
	before []outcome
	taken  *int // counts them; nil: nobody does
}

// compare compares a snapshot with the weights of a run that ended there.
func (j *job) compare(t testing.TB, what string, s *executor.Snapshot) {
	t.Helper()
	if s.Err != nil {
		t.Fatalf("%s: %v", what, s.Err)
	}
	defer s.Release()
	for id, want := range j.before[s.Iteration].Weights {
		if !slices.Equal(bits(s.Contents[id]), want) {
			t.Fatalf("%s: the snapshot after %d iterations has other bits of %s", what, s.Iteration,
				j.g.Storages[id].Name)
		}
	}
	if j.taken != nil {
		*j.taken++
	}
}

// outcome is all that a job's user gets to see, as bits.
type outcome struct {
	Weights map[graph.StorageID][]uint32
	Outputs map[string][]uint32 // by iteration and storage
}

func bits(f []float32) []uint32 {
	b := make([]uint32, len(f))
	for i, v := range f {
		b[i] = math.Float32bits(v)
	}
	return b
}

// train trains jobs together on the device.
func train(t testing.TB, d device.Device, iterations int, what string, jobs ...job) []outcome {
	t.Helper()
	var h *executor.Host
	names := make([]string, len(jobs))
	next := make([]int, len(jobs))
	ended := make(map[string]*executor.Ended)
	h = executor.NewHost(d, func(e executor.Event) {
		switch {
		case e.Report != nil:
			i := slices.Index(names, e.Job)
			if j := jobs[i]; next[i] < len(j.changes) && j.changes[next[i]] == e.Report.Iteration {
				next[i]++
				h.Change(e.Job, j.programs[next[i]])
			}
			if jobs[i].before != nil && e.Report.Iteration == 2 {
				h.Checkpoint(e.Job, 0)
			}
		case e.Applied != nil:
			if jobs[slices.Index(names, e.Job)].before != nil {
				h.Checkpoint(e.Job, 0)
			}
		case e.Snapshot != nil:
			jobs[slices.Index(names, e.Job)].compare(t, what, e.Snapshot)
		case e.Ended != nil:
			ended[e.Job] = e.Ended
		case e.Refused != nil:
			t.Fatalf("%s: %v", what, e.Refused)
		}
	})
	outcomes := make([]outcome, len(jobs))
	for i, j := range jobs {
		names[i] = fmt.Sprintf("job%d", i)
		out := outcome{Weights: map[graph.StorageID][]uint32{}, Outputs: map[string][]uint32{}}
		outcomes[i] = out
		init, input := graphtest.Init(j.seed), graphtest.Input(j.g, j.seed)
		if j.task != nil {
			init, input = j.task.Init, j.task.Feeder(nil)
		}
		h.Submit(executor.Spec{Graph: j.g, Iterations: iterations, Init: init,
			JobOptions: device.JobOptions{Name: names[i], Seed: j.seed, Input: input,
				Output: func(iteration int, s graph.StorageID, from []float32) {
					out.Outputs[fmt.Sprint(iteration, " ", j.g.Storages[s].Name)] = bits(from)
				}}}, j.programs[0])
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of a deadlock
	defer cancel()
	for busy := true; busy; {
		var err error
		if busy, err = h.Poll(ctx); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for i, j := range jobs {
		var arena graph.Bytes
		for _, p := range j.programs {
			arena = max(arena, p.Program().Arena)
		}
		e := ended[names[i]]
		if e == nil || e.Err != nil || e.Iterations != iterations {
			t.Fatalf("%s: %s has ended as %+v", what, names[i], e)
		}
		if e.Touched > arena {
			t.Fatalf("%s: touched %v of %v", what, e.Touched, arena)
		}
		for s, content := range e.Weights {
			outcomes[i].Weights[s] = bits(content)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return outcomes
}

// mustBeFinite fails the test if a result is NaN or infinite, or if an output is missing.
func mustBeFinite(t testing.TB, what string, g *graph.Graph, iterations int, o outcome) {
	t.Helper()
	outputs := 0
	for _, s := range g.Storages {
		if s.Role == graph.Output {
			outputs++
		}
	}
	if len(o.Outputs) != outputs*iterations {
		t.Fatalf("%s: %d outputs delivered in %d iterations, the graph has %d", what, len(o.Outputs), iterations,
			outputs)
	}
	check := func(name string, values []uint32) {
		for i, b := range values {
			if v := float64(math.Float32frombits(b)); math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("%s: element %d of %s is %v", what, i, name, v)
			}
		}
	}
	for name, values := range o.Outputs {
		check(name, values)
	}
	for s, values := range o.Weights {
		check(g.Storages[s].Name, values)
	}
}

// seeded returns a generator and a graph.
func seeded(seed uint64, o graphtest.Options) (*rand.Rand, *graph.Graph) {
	o.Passes = seed/2%2 == 1
	rng := rand.New(rand.NewPCG(seed, 3))
	return rng, graphtest.New(rng, o)
}

func programs(t testing.TB, d device.Device, what string, g *graph.Graph, plans ...*plan.Plan) []proof.Proven {
	var all []proof.Proven
	for _, p := range plans {
		all = append(all, proven(t, d, g, p, what))
	}
	return all
}
