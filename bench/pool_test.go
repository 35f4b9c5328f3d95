package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/plan/pool"
)

func TestRepeated(t *testing.T) {
	one := []pool.Buffer{{Size: 4, Spans: []pool.Span{{From: 0, To: 3}}},
		{Size: 5, Spans: []pool.Span{{From: 1, To: 2}, {From: 4, To: 6}}}}
	want := []pool.Buffer{one[0], one[1],
		{Size: 4, Spans: []pool.Span{{From: 6, To: 9}}}, {Size: 5, Spans: []pool.Span{{From: 7, To: 8},
			{From: 10, To: 12}}}}
	if diff := cmp.Diff(want, repeated(one, 2)); diff != "" {
		t.Error(diff)
	}
	if one[1].Spans[0].From != 1 {
		t.Errorf("the original was changed: %v", one)
	}
	for _, k := range []int{1, 3} {
		if got, want := pool.Load(repeated(one, k)), pool.Load(one); got != want {
			t.Errorf("load of %d: %d, want %d", k, got, want)
		}
	}
}

func TestSpansApart(t *testing.T) {
	got := spansApart([]pool.Buffer{{Size: 8, Align: 4, Spans: []pool.Span{{From: 0, To: 1}, {From: 3, To: 5}}}})
	want := []pool.Buffer{{Size: 8, Align: 4, Spans: []pool.Span{{From: 0, To: 1}}},
		{Size: 8, Align: 4, Spans: []pool.Span{{From: 3, To: 5}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCapacityOf(t *testing.T) {
	for _, c := range []struct {
		path, name string
		capacity   int64 // 0: refused
	}{
		{"folder/A.1048576.csv", "A", 1048576},
		{"in.put.12.csv", "in.put", 12},
		{"A.csv", "", 0},
		{"A.0.csv", "", 0},
		{"A.-5.csv", "", 0},
		{".12.csv", "", 0},
		{"A.12MiB.csv", "", 0},
	} {
		name, capacity, err := capacityOf(c.path)
		if name != c.name || capacity != c.capacity || (err != nil) != (c.capacity == 0) {
			t.Errorf("%s: %q, %d, %v; want %q, %d", c.path, name, capacity, err, c.name, c.capacity)
		}
		if err != nil && !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: the error does not name the file: %v", c.path, err)
		}
	}
}

// folder makes files in a folder of their own.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const fiveBuffers = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"

func TestHardPacking(t *testing.T) {
	dir := folder(t, map[string]string{
		"A.12.csv": fiveBuffers, "B.11.csv": fiveBuffers, "README.md": "no table",
		baselines: "instance,minimalloc_paper_ms,other,tvm_hillclimb_peak\nA,4910,>3600000,18\n"})
	m := &packer{ctx: t.Context()}
	rows, err := m.hard(dir, 4)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || m.checked != 2*(len(poolMethods())+1) {
		t.Fatalf("%d rows, %d layouts checked", len(rows), m.checked)
	}
	a, b := rows[0], rows[1]
	if a.Instance != "A" || a.Buffers != 5 || a.LowerBound != 12 || a.Capacity != 12 || !a.Met ||
		a.Within.Height != 12 || a.Within.Ratio != 1 {
		t.Errorf("A: %+v", a)
	}
	if b.Instance != "B" || b.Capacity != 11 || b.Met || b.MiniMalloc != nil || b.TVMHillClimb != nil {
		t.Errorf("B: %+v", b)
	}
	if a.MiniMalloc == nil || *a.MiniMalloc != 4910 || a.TVMHillClimb == nil || *a.TVMHillClimb != 1.5 {
		t.Errorf("published of A: %v, %v", a.MiniMalloc, a.TVMHillClimb)
	}
	for i, method := range poolMethods() {
		if got := a.Methods[i]; got.Method != method || got.Height < 12 || got.Ratio != float64(got.Height)/12 ||
			got.Time <= 0 {
			t.Errorf("%s: %+v", method, got)
		}
	}
}

func TestPackingCost(t *testing.T) {
	dir := folder(t, map[string]string{"step.csv": fiveBuffers})
	m := &packer{ctx: t.Context()}
	rows, err := m.costs(filepath.Join(dir, "step.csv"), []int{1, 3}, []int{200})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range rows {
		got = append(got, fmt.Sprintf("%s: %d", c.Instance, c.Buffers))
		if c.Time <= 0 || c.PerThousand != c.Time*1000/float64(c.Buffers) || c.Height < c.LowerBound || c.Ratio < 1 {
			t.Errorf("%+v", c)
		}
	}
	if diff := cmp.Diff([]string{"step x 1: 5", "step x 3: 15", "synthetic step: 200"}, got); diff != "" {
		t.Error(diff)
	}
	if rows[1].Height != 12 || rows[1].LowerBound != 12 {
		t.Errorf("%+v, want height 12", rows[1])
	}
}

// A row of each table, as people read it.
func TestPoolTables(t *testing.T) {
	p := Packing{Instance: "A", Buffers: 5, LowerBound: 8, Methods: []MethodPacking{{"search", 8, 1, 250.4},
		{"size", 10, 1.25, 0.5}}}
	ms, ratio := 4910.0, 1.5
	r := PoolReport{Methods: []string{"search", "size"}, Rounds: 7, Checked: 9,
		Hard: []HardPacking{
			{Packing: p, Capacity: 9, Within: MethodPacking{"search", 8, 1, 2}, Met: true, MiniMalloc: &ms,
				TVMHillClimb: &ratio},
			{Packing: p, Capacity: 7, Within: MethodPacking{"search", 8, 1, 2}},
		},
		Steps: []Packing{p},
		Networks: []NetworkPacking{{Packing: p, Apart: &MethodPacking{"online", 9, 1.125, 3}},
			{Packing: Packing{Instance: "B"}, Budget: 1024, Need: 2048}},
		Tighten: []Tightening{{"D", 1000, []MethodTightening{{Method: "search", Rounds: 2, Peak: 990, Time: 7},
			{Method: "size", Need: 1100}}}},
		Cost: []PackingCost{{"C", 2000, 5, 2.5, 8, 10, 1.25}},
	}
	var text strings.Builder
	if err := r.WriteTables(&text); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range strings.Split(text.String(), "\n") {
		if cells := strings.Fields(line); len(cells) > 0 {
			got = append(got, strings.Join(cells, " "))
		}
	}
	want := []string{
		"height to lower bound, and the ms of packing, per method; each of the 9 layouts was checked by a sweep " +
			"over its slots",
		"hard (capacity: a search of at most 7 rounds that ends when it is met; published: MiniMalloc's ms to meet " +
			"it, the ratio of TVM's hill climbing)",
		"instance buffers lower bound search ms size ms height capacity met ms MiniMalloc ms TVM",
		"A 5 8 1.00000 250 1.25000 0.500 8 9 yes 2.0 4910 1.50000",
		"A 5 8 1.00000 250 1.25000 0.500 8 7 NO 2.0 - -",
		"training steps",
		"instance buffers lower bound search ms size ms",
		"A 5 8 1.00000 250 1.25000 0.500",
		"our networks (batch 16, plans for sim:a6000; budgets in percent of the slot peak under none-live; spans " +
			"apart: online, each span a buffer of its own)",
		"instance buffers lower bound search ms size ms spans apart ms", "A 5 8 1.00000 250 1.25000 0.500 1.12500 3.0",
		"B: no plan fits into 1KiB, 2KiB needed",
		"rounds of planning and packing until the plan fits (-: no plan does), the plan's slot peak to the budget, " +
			"ms of both, by what packs",
		"instance budget search peak ms promote peak ms greedy peak ms smartpool peak ms first-fit peak ms",
		"D 1000B 2 0.9900 7.0 - - -",
		"cost against n (search)",
		"instance buffers ms ms per 1000 lower bound height ratio",
		"C 2000 5.0 2.5 8 10 1.25000",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPoolDataErrors(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"somas/x": ""}, "minimalloc"},
		{map[string]string{"minimalloc/README": ""}, "holds no instance"},
		{map[string]string{"minimalloc/A.csv": fiveBuffers}, "call it NAME.CAPACITY.csv"},
		{map[string]string{"minimalloc/A.12.csv": "a,b\n1,2\n"}, "A.12.csv"},
		{map[string]string{"minimalloc/A.12.csv": fiveBuffers, "minimalloc/" + baselines: ""}, baselines + " is empty"},
		{map[string]string{"minimalloc/A.12.csv": fiveBuffers, "minimalloc/" + baselines: "instance\nA\n"},
			"needs numbers in the columns"},
		{map[string]string{"minimalloc/A.12.csv": fiveBuffers}, "somas"},
	} {
		_, err := MeasurePool(t.Context(), PoolOptions{Data: folder(t, c.files), Rounds: 1})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", slices.Sorted(maps.Keys(c.files)), err, c.want)
		}
	}
}

// A plan that does not fit is a row that says what it needs; without data the rest is left out, and the report says so.
func TestMeasurePoolNetworks(t *testing.T) {
	r, err := MeasurePool(t.Context(), PoolOptions{Data: filepath.Join(t.TempDir(), "none"), Rounds: 1,
		Networks: []string{"mlp"}})
	if err != nil {
		t.Fatal(err)
	}
	var packed []string
	for _, n := range r.Networks {
		switch {
		case n.Need == 0:
			packed = append(packed, n.Instance)
			if len(n.Methods) != len(r.Methods) || n.Buffers == 0 || n.Apart == nil || n.Apart.Height < n.LowerBound {
				t.Errorf("%+v", n)
			}
		case n.Need <= n.Budget || n.Apart != nil || n.Buffers != 0:
			t.Errorf("%+v", n)
		}
	}
	if diff := cmp.Diff([]string{"mlp none-live", "mlp tensile 70%", "mlp tensile 50%"}, packed); diff != "" {
		t.Error(diff)
	}
	if len(r.Networks) != 4 || r.Checked != 3*(len(r.Methods)+1) {
		t.Errorf("%d rows, %d layouts checked", len(r.Networks), r.Checked)
	}
	var text strings.Builder
	if err := r.WriteTables(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"none does not exist: ", "\nour networks ", "\nmlp tensile 30%: no plan fits into "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in:\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "\nhard") || strings.Contains(text.String(), "\ncost against n") {
		t.Errorf("tables without data:\n%s", text.String())
	}
}

func TestMeasurePoolStops(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := MeasurePool(ctx, PoolOptions{Data: t.TempDir() + "/none", Rounds: 1,
		Networks: []string{"mlp"}}); !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
}

// The keys are what readers of recorded results go by.
func TestPoolJSONKeys(t *testing.T) {
	keys := func(v any) []string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(maps.Keys(fields))
	}
	packing := []string{"buffers", "instance", "lower_bound_bytes", "methods"}
	and := func(more ...string) []string { return slices.Sorted(slices.Values(slices.Concat(packing, more))) }
	for _, c := range []struct {
		value any
		want  []string
	}{
		{PoolReport{}, []string{"capacity_rounds", "cost", "hard", "layouts_checked", "methods", "networks",
			"tightening", "training_steps"}},
		{Packing{}, packing},
		{MethodPacking{}, []string{"height_bytes", "method", "ms", "ratio"}},
		{HardPacking{}, and("capacity_bytes", "capacity_met", "published_minimalloc_ms",
			"published_tvm_hillclimb_ratio", "within_capacity")},
		{NetworkPacking{Need: 1}, and("budget_bytes", "budget_percent", "need_bytes", "online_spans_apart", "policy")},
		{Tightening{}, []string{"budget_bytes", "instance", "methods"}},
		{MethodTightening{Need: 1}, []string{"method", "ms", "need_bytes", "rounds", "slot_peak_bytes"}},
		{PackingCost{}, []string{"buffers", "height_bytes", "instance", "lower_bound_bytes", "ms",
			"ms_per_1000_buffers", "ratio"}},
	} {
		if diff := cmp.Diff(c.want, keys(c.value)); diff != "" {
			t.Errorf("%T (-want +got):\n%s", c.value, diff)
		}
	}
}
