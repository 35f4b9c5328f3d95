package scheduler_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/randjobs"
	"tensile/scheduler"
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
		r := randjobs.New(rand.New(rand.NewPCG(1, 1)), 1)
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
