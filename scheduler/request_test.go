package scheduler_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
	"tensile/scheduler"
	"tensile/scheduler/jobtest"
)

// Lists that do not belong to a job's graph are refused by name.
func TestLists(t *testing.T) {
	for want, spoil := range map[string]func(*scheduler.Job){
		"": func(*scheduler.Job) {},
		"job 0: 3 latencies: give one per op, 11":             func(j *scheduler.Job) { j.Latency = j.Latency[:3] },
		"job 0: slack of 1 ops: give one per op, 11, or none": func(j *scheduler.Job) { j.Slack = j.Latency[:1] },
		"job 0: variants of 2 ops: give a list per op, 11, or none": func(j *scheduler.Job) {
			j.Variants = j.Variants[:2]
		},
		"job 0: op d5 has no variant: give one or more": func(j *scheduler.Job) { j.Variants[5] = nil },
	} {
		r := jobtest.New(rand.New(rand.NewPCG(1, 1)), 1)
		g := *r.Jobs[0].Graph
		r.Jobs[0].Graph, g.Ops = &g, slices.Clone(g.Ops)
		g.Ops[5].Name = "d5"
		spoil(&r.Jobs[0])
		if err := r.Check(); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A variant without a latency takes what the job says; a job without variants has one per op, of which nothing is
// known.
func TestVariant(t *testing.T) {
	j := scheduler.Job{Latency: []time.Duration{5, 7}, Variants: [][]scheduler.Variant{{{Name: "a", Scratch: 64}}, {{},
		{Name: "b", Latency: 3}}}}
	for _, test := range []struct {
		op, k int
		want  scheduler.Variant
	}{
		{0, 0, scheduler.Variant{Name: "a", Scratch: 64, Latency: 5}},
		{1, 0, scheduler.Variant{Latency: 7}},
		{1, 1, scheduler.Variant{Name: "b", Latency: 3}},
	} {
		if got := j.Variant(graph.OpID(test.op), test.k); got != test.want {
			t.Errorf("variant %d of op %d: %+v, want %+v", test.k, test.op, got, test.want)
		}
	}
	j.Variants = nil
	if got := j.Variant(1, 0); got != (scheduler.Variant{Latency: 7}) {
		t.Errorf("without variants: %+v", got)
	}
	one := scheduler.OneVariant([]graph.Bytes{1, 2})
	if !slices.Equal(one[1], []scheduler.Variant{{Scratch: 2}}) || len(one) != 2 {
		t.Errorf("one variant each: %+v", one)
	}
}

// Decisions have words for their kinds, in JSON too.
func TestKind(t *testing.T) {
	text, err := json.Marshal([]scheduler.Kind{scheduler.Keep, scheduler.Swap, scheduler.Recompute})
	if want := `["keep","swap","recompute"]`; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}

// Options of another policy are the recommended ones.
func TestOptionsOf(t *testing.T) {
	type mine struct{ A int }
	r := scheduler.Request{Options: scheduler.Options{Own: mine{3}}}
	if got := scheduler.OptionsOf[mine](&r); got.A != 3 {
		t.Errorf("own options: %+v", got)
	}
	if got := scheduler.OptionsOf[struct{ A int }](&r); got.A != 0 {
		t.Errorf("options of another policy: %+v", got)
	}
}

// TestWorkingSet: the working set of an op is with the variant that needs the least scratch, rounded up, wherever it
// stands; or with the first. Which op is largest may differ.
func TestWorkingSet(t *testing.T) {
	r := jobtest.New(rand.New(rand.NewPCG(1, 1)), 1)
	j := r.Jobs[0]
	j.Variants = nil
	plain := scheduler.WorkingSetOf(j, 512)
	if first := scheduler.FirstWorkingSetOf(j, 512); first != plain {
		t.Errorf("without variants %v and %v", plain, first)
	}
	j.Variants = scheduler.OneVariant(make([]graph.Bytes, len(j.Graph.Ops)))
	j.Variants[plain.Op] = []scheduler.Variant{{Scratch: 2000}, {Scratch: 700}, {Scratch: 900}}
	other := graph.OpID(0)
	if plain.Op == 0 {
		other = 1
	}
	j.Variants[other] = []scheduler.Variant{{Scratch: 1 << 30}, {}}
	want := scheduler.WorkingSet{Op: plain.Op, Bytes: plain.Bytes + 1024}
	if got := scheduler.WorkingSetOf(j, 512); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := scheduler.FirstWorkingSetOf(j, 512); got.Op != other || got.Bytes <= 1<<30 {
		t.Errorf("with first variants %v, want op %d", got, other)
	}
	r.Jobs, r.Align, r.Budget = []scheduler.Job{j, j}, 512, 2*(plain.Bytes+1024)
	if sum, err := r.CheckWorkingSets(); err != nil || sum != r.Budget {
		t.Errorf("%v, %v within %v", sum, err, r.Budget)
	}
	if _, err := r.CheckFirstWorkingSets(); err == nil {
		t.Errorf("first variants within %v", r.Budget)
	}
	r.Budget--
	if _, err := r.CheckWorkingSets(); err == nil {
		t.Errorf("working sets within %v", r.Budget)
	}
}
