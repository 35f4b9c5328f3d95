package explain_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
	"tensile/peak"
	"tensile/plan"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/explain"
	"tensile/scheduler/jobtest"
	"tensile/scheduler/planner"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// planned plans a random job within a random budget; nil: there is no plan.
func planned(t *testing.T, seed uint64) (scheduler.Request, *planner.Planned) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	r := jobtest.New(rng, 1)
	r.Explain = true
	free, err := planner.Schedule(t.Context(), r)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	r.Budget = max(1, free.Arena*graph.Bytes(30+rng.IntN(71))/100)
	p, err := planner.Plan(t.Context(), r)
	if errors.Is(err, scheduler.ErrNoPlan) {
		return r, nil
	} else if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return r, p
}

// durations are random, so that copies and steps are late.
func durations(rng *rand.Rand, p *plan.Plan, s *scheduler.Scheduled) program.Durations {
	d := program.Durations{Out: s.Out, In: s.In}
	for _, made := range p.Made {
		d.Steps = append(d.Steps, max(1, time.Duration(float64(made)*rng.Float64())))
	}
	return d
}

const seeds = 300

// What stalls are said to take adds up to what the timing says, and each but those of kernels names a storage, its size
// and an op that waits.
func TestStalls(t *testing.T) {
	said := 0
	for seed := range uint64(seeds) {
		r, p := planned(t, seed)
		if p == nil {
			continue
		}
		proven := p.Programs[0].Program()
		stalls, timing := explain.Stalls(proven, durations(rand.New(rand.NewPCG(seed, 2)), proven.Plan, &p.Jobs[0]))
		var sum time.Duration
		for i, s := range stalls {
			sum += s.Stall
			if i > 0 && s.Stall > stalls[i-1].Stall || s.Stall <= 0 || s.Op == "" ||
				(s.Storage == "") != (s.Bytes == 0) || s.Kind == "" {
				t.Errorf("seed %d: stall %d of %+v", seed, i, stalls)
			}
			for _, storage := range r.Jobs[0].Graph.Storages {
				if storage.Name == s.Storage && storage.Bytes != s.Bytes {
					t.Errorf("seed %d: %+v has %d bytes", seed, s, storage.Bytes)
				}
			}
		}
		if sum != timing.Stall {
			t.Errorf("seed %d: stalls of %v are named, %v are there", seed, sum, timing.Stall)
		}
		said += len(stalls)
	}
	if said < seeds {
		t.Errorf("%d stalls in %d plans", said, seeds)
	}
}

// The parts of an iteration add up to it, whatever was measured.
func TestTimeOf(t *testing.T) {
	again := 0
	for seed := range uint64(seeds) {
		_, p := planned(t, seed)
		if p == nil {
			continue
		}
		rng := rand.New(rand.NewPCG(seed, 3))
		steps := make([]time.Duration, len(p.Jobs[0].Plan.Steps))
		for i := range steps {
			steps[i] = time.Duration(rng.IntN(1e6))
		}
		m := explain.Measured{Number: 7, Steps: steps, Stall: time.Duration(rng.IntN(1e6)), Gate: 5, Wall: 1e9}
		x := explain.TimeOf(p.Jobs[0].Plan, m, func(op graph.OpID, variant string, first bool) time.Duration {
			if first {
				return time.Duration(op) * 1000
			}
			return time.Duration(op)*1000 + 300
		})
		if sum := x.Alone + x.Variants + x.Again + x.Beside + x.Stall + x.Gate + x.Rest; sum != x.Iteration ||
			x.Iteration != m.Wall || x.Number != 7 {
			t.Errorf("seed %d: the parts of %+v add up to %v", seed, x, sum)
		}
		ops := 0
		for _, step := range p.Jobs[0].Plan.Steps {
			ops = max(ops, int(step.Op)+1)
		}
		if want := time.Duration(ops) * 300; x.Variants != want {
			t.Errorf("seed %d: variants take %v more, want %v", seed, x.Variants, want)
		}
		if more := len(steps) - ops; (more > 0) != (x.Again > 0) {
			t.Errorf("seed %d: %d steps are repeated and take %v", seed, more, x.Again)
		} else {
			again += more
		}
	}
	if again == 0 {
		t.Error("no plan repeats an op")
	}
}

// The lives of all storages have every move of the plan and every use by an op, in the order of the steps; what leaves
// comes back before it is used, and where a storage is on the device agrees with the plan.
func TestLifeOf(t *testing.T) {
	swapped, remade := 0, 0
	for seed := range uint64(seeds) {
		r, p := planned(t, seed)
		if p == nil {
			continue
		}
		g, proven := r.Jobs[0].Graph, p.Programs[0].Program()
		d := durations(rand.New(rand.NewPCG(seed, 4)), proven.Plan, &p.Jobs[0])
		moves := 0
		for _, s := range g.Storages {
			life := explain.LifeOf(proven, d, s.ID, d.Steps)
			on, touched := life.Begins, life.Begins
			last := -1
			for _, e := range life.Events {
				if e.Step < last || e.Takes < 0 {
					t.Fatalf("seed %d: %+v is out of order in %+v", seed, e, life)
				}
				last = e.Step
				switch e.What {
				case explain.Leaves:
					moves++
				case explain.Dropped:
					on = false
					moves++
				case explain.Returns:
					on, touched = true, true
					moves++
					swapped++
				default:
					if e.Measured == nil || *e.Measured != d.Steps[e.Step] || e.Takes != *e.Measured {
						t.Fatalf("seed %d: %+v took %v", seed, e, d.Steps[e.Step])
					}
					if e.What == explain.Again {
						remade++
					}
					on = on || e.What == explain.Made || e.What == explain.Again
					if touched = true; !on {
						t.Fatalf("seed %d: %s of %s is not there in %+v", seed, e.What, s.Name, life)
					}
				}
			}
			if on != life.Begins || s.Role.Persistent() && !touched && g.LastTouches()[s.ID] >= 0 {
				t.Errorf("seed %d: an iteration ends otherwise than it begins: %+v", seed, life)
			}
		}
		if moves != len(proven.Plan.Moves) {
			t.Errorf("seed %d: %d moves in the lives of storages, %d in the plan", seed, moves, len(proven.Plan.Moves))
		}
	}
	if swapped == 0 || remade == 0 {
		t.Errorf("%d copies back and %d recomputations: the plans have no point", swapped, remade)
	}
}

// A decision names ops of its graph, also over the boundary of an iteration.
func TestDecisionOf(t *testing.T) {
	for seed := range uint64(seeds) {
		r, p := planned(t, seed)
		if p == nil {
			continue
		}
		for _, d := range p.Jobs[0].Decisions {
			line := explain.DecisionOf(r.Jobs[0].Graph, p.Jobs[0].Plan, d).String()
			want := fmt.Sprintf("%s %s (", d.Kind, r.Jobs[0].Graph.Storages[d.Storage].Name)
			if !strings.HasPrefix(line, want) {
				t.Errorf("seed %d: %s", seed, line)
			}
		}
		if peak.Of(r.Jobs[0].Graph, p.Jobs[0].Plan).Peak != p.Jobs[0].Footprint.Peak {
			t.Errorf("seed %d: the peak is another", seed)
		}
	}
}

// text is an answer that prints sentences.
type text interface{ WriteText(io.Writer) error }

// The sentences, with fixed figures.
func TestText(t *testing.T) {
	ms := func(x float64) time.Duration { return time.Duration(x * 1e6) }
	mib := func(x int) graph.Bytes { return graph.Bytes(x) * graph.MiB }
	took := ms(1.5)
	jobs := []explain.Outcome{{Job: "b", Arena: mib(300), Iteration: ms(80), Stall: ms(2), Swapped: mib(64),
		Recomputes: 3, Speed: 0.5}, {Job: "a", Arena: mib(200), Iteration: ms(40), Speed: 0.45}}
	faster := []explain.Outcome{{Job: "b", Arena: mib(400), Iteration: ms(72)}, {Job: "a", Arena: mib(200),
		Iteration: ms(40), Speed: 0.45}, {Job: "c", Arena: mib(9), Iteration: ms(1)}}
	runs := explain.Job{Job: "b", Model: "vgg16", Device: "sim:a6000", State: "running", Iteration: 12, Of: 50,
		Budget: mib(512), Taken: mib(500), Shared: true,
		Holders: []explain.Holder{{Job: "b", State: "running", Priority: 1, Bytes: mib(300), Base: mib(10)},
			{Job: "gone", Bytes: mib(5), Away: true}, {Bytes: mib(20)}},
		Has: &explain.Plan{Epoch: 3, Stands: explain.InForce, Outcome: jobs[0]},
		Time: &explain.Time{Number: 11, Iteration: ms(90), Alone: ms(60), Again: ms(5), Beside: ms(15), Stall: ms(6),
			Gate: ms(3), Rest: ms(1)},
		Stalls: []explain.Stall{{Kind: "in", Storage: "w", Bytes: mib(64), Op: "fc", Stall: ms(4), Takes: ms(8)},
			{Kind: "out", Storage: "x", Bytes: mib(32), Op: "conv", Stall: ms(1.5), Takes: ms(3)},
			{Kind: "load", Storage: "input", Bytes: mib(1), Op: "conv1", Stall: ms(0.25), Takes: ms(0.5)}},
		StallsRest: ms(0.25),
		Plans: []explain.Alternative{{Budget: mib(512), Priority: 1, Jobs: jobs, Waiting: []string{"c"}},
			{Budget: mib(640), Priority: 1, Jobs: faster, Same: true},
			{Budget: mib(384), Priority: 1, Error: "budget 384MiB is too small",
				Waiting: []string{"b", "a", "c"}},
			{Budget: mib(512), Priority: 7, Jobs: jobs, Waiting: []string{"c"}}}}
	waits := explain.Job{Job: "c", Model: "mlp", Device: "cpu", State: "queued", Of: 5, Taken: mib(3),
		Reason: "waits for 1MiB: it and the running jobs need 4MiB of 3MiB", Holders: []explain.Holder{},
		Plans: []explain.Alternative{{Priority: 1, Error: "it is too large", Jobs: jobs[1:], Waiting: []string{"c"}},
			{Budget: mib(9), Priority: 1, Jobs: faster}}}
	claim := []explain.Outcome{{Job: "s", Arena: mib(30)}, jobs[1]}
	records := explain.Job{Job: "s", Model: "train.py", Device: "cpu", State: "running", Iteration: 2, Budget: mib(512),
		Taken: mib(230), Has: &explain.Plan{Epoch: 1, Stands: explain.InForce, Outcome: claim[0]},
		Plans: []explain.Alternative{{Budget: mib(512), Priority: 1, Jobs: claim, Same: true},
			{Budget: mib(384), Priority: 1, Jobs: claim, Same: true}}}
	past := &explain.Past{Iterations: 8, Alone: ms(480), Took: ms(90), Stall: ms(6), Gate: ms(3), Out: mib(5),
		In: mib(6), Waited: map[string]time.Duration{"memory": 3e9, "plans": 2e9, "parked": 9e9}, Restarts: 1,
		Arena: mib(300),
		Plans: map[string]int64{"drift": 2, "arrival": 1}, Touched: mib(290)}
	over := explain.Job{Job: "f", Model: "vgg16", Device: "cpu", State: "failed", Over: true,
		Reason: "its executor is lost", Iteration: 7, Of: 50, Past: past}
	waits.Remedy, waits.Past = "raise the budget", &explain.Past{}
	for name, x := range map[string]text{
		"runs": &runs, "waits": &waits, "records": &records, "over": &over,
		"storage": &explain.Storage{Job: "b", Storage: "w", Role: graph.Parameter, Bytes: mib(64), Epoch: 3,
			Stands: explain.InForce, Iteration: ms(80), Begins: true,
			Events: []explain.Event{{What: explain.Dropped, Step: -1}, {What: explain.Returns, Step: 2, Start: ms(4),
				Takes: ms(5)}, {What: explain.Used, Step: 9, Op: "fc", Start: ms(20), Takes: ms(1), Measured: &took}},
			Decisions: []explain.Decision{{Storage: "w", Bytes: mib(64), Kind: "swap", From: "a", To: "b", FreeSlots: 4,
				Away: 20, Cost: 0.5, Reason: "both copies fit into free link time"},
				{Storage: "w", Bytes: mib(64), Kind: "keep", Reason: "the step at the peak uses it"}}},
		"kept": &explain.Storage{Job: "b", Storage: "b", Role: graph.Activation, Bytes: 512, Epoch: 1,
			Iteration: ms(80), Stands: explain.Now},
		"unsaid": &explain.Storage{Job: "b", Storage: "b", Role: graph.Activation, Bytes: 512, Epoch: 1,
			Iteration: ms(80), Stands: explain.ToCome, Unsaid: true},
	} {
		var out strings.Builder
		if err := x.WriteText(&out); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", out.String())
	}
	if err := runs.WriteText(failing{}); err == nil {
		t.Error("what cannot be written is no error")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

// golden compares a text with a file of testdata, or writes it.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s:\n%s\nwant\n%s", name, text, want)
	}
}
