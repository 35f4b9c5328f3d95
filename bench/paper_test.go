package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/controller/plans"
	"tensile/device/cpu"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/scheduler"
	"tensile/scheduler/policies"
)

// tinyPaper has a scene of each sort with networks that take no time.
func tinyPaper() PaperOptions {
	o := paperOptions(2, 6)
	o.Data = "none"
	o.Scenes = []PaperScene{
		{Models: []string{"lenet"}, Copies: 1, Batch: 16, Shares: []int{90}},
		{Models: []string{"lenet"}, Copies: 1, Batch: 4, Few: true},
		{Models: []string{"lenet"}, Copies: 2, Batch: 16, Few: true},
		{Models: []string{"lenet", "mlp"}, Copies: 1, Batch: 16},
	}
	return o
}

// measureTiny measures it and forgets what planning took.
func measureTiny(t *testing.T) *PaperReport {
	t.Helper()
	o := tinyPaper()
	least := 0.0
	o.Progress = func(done float64) {
		if done < least || done > 1+1e-9 {
			t.Errorf("%v of the work is done after %v", done, least)
		}
		least = done
	}
	r, err := MeasurePaper(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if least < 1-1e-9 {
		t.Errorf("the progress ends at %v", least)
	}
	for _, table := range r.Tables.Tables {
		for i := range table.Rows {
			table.Rows[i].Plan = nil
		}
	}
	return r
}

// All tables and figures have rows, each with figures or the reason why there are none; every policy of the table takes
// part, none is over its budget, and jobs without a plan take what they take. A second run prints the same bytes, and
// draws the same.
func TestPaperTables(t *testing.T) {
	long.Only(t)
	r := measureTiny(t)
	names := []string{"table-1", "table-2", "table-3", "table-4", "figure-2", "figure-6", "figure-7", "budgets"}
	seen := make(map[string]bool)
	for i, table := range r.Tables.Tables {
		if table.Name != names[i] || table.Title == "" || table.Free == nil && len(table.Rows) == 0 {
			t.Errorf("table %d is %s with %d rows, want %s", i, table.Name, len(table.Rows), names[i])
		}
		for _, row := range table.Rows {
			seen[row.Policy] = true
			if (row.EOR == nil) != (row.Why != "") || row.EOR != nil && (row.MSRAll == nil || *row.EOR < 0.7 ||
				*row.MSRLive > *row.MSRAll || *row.MSRAll >= 1) {
				t.Errorf("%s: %+v", table.Name, row)
			}
			if row.Budget != nil && row.Peak != nil && *row.Peak > *row.Budget {
				t.Errorf("%s: %s has %d bytes within %d", table.Name, row.Policy, *row.Peak, *row.Budget)
			}
			if row.Policy == "none-live" && *row.EOR != 1 {
				t.Errorf("%s: jobs without a plan have EOR %v against themselves", table.Name, *row.EOR)
			}
		}
	}
	for _, p := range policies.Names() {
		if !seen[p] {
			t.Errorf("policy %s takes no part", p)
		}
	}
	for _, p := range slices.Concat(stopping, few) {
		if !slices.Contains(policies.Names(), p) {
			t.Errorf("there is no policy %s", p)
		}
	}
	if note := r.Tables.Tables[6].Notes; len(note) != 1 || !strings.Contains(note[0], "folder none does not exist") {
		t.Errorf("the authors' logs are absent, and the notes of figure 7 are %q", note)
	}
	again := measureTiny(t)
	if diff := cmp.Diff(printed(t, r), printed(t, again)); diff != "" {
		t.Errorf("a second run has other tables:\n%s", diff)
	}
	first, second := drawings(t, r), drawings(t, again)
	if len(first) != 4 {
		t.Errorf("%d files are drawn, want 4", len(first))
	}
	for name, drawn := range first {
		if drawn != second[name] {
			t.Errorf("a second run draws another %s", name)
		}
	}
}

func printed(t *testing.T, r *PaperReport) string {
	t.Helper()
	document, err := json.Marshal(r.Tables)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	return string(document) + "\n" + b.String()
}

// drawings are the files that a report draws.
func drawings(t *testing.T, r *PaperReport) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if err := r.Draw(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil || len(data) == 0 {
			t.Errorf("%s has %d bytes: %v", f.Name(), len(data), err)
		}
		all[f.Name()] = string(data)
	}
	return all
}

// What the paper has stands beside its methods, and beside no other: from its tables, and from its authors' logs.
func TestKnownFigures(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"BatchSizeMSR.csv":                 ",2,16\nVGG,0.1,\nDenseNet,0.3,0.4\nother,1,1\n",
		"BatchSizeEOR.csv":                 ",2,16\nVGG,0.5,\nDenseNet,0.6,0.7\nother,1,1\n",
		"MultiWorkloadsMSR.csv":            ",x1,x2\nTENSILE:ResNet,0.25,0.35\nvDNN:ResNet,0.0,0.0\n",
		"MultiWorkloadsEOR.csv":            ",x1,x2\nTENSILE:ResNet,0.5,0.25\nvDNN:ResNet,0.0,0.0\n",
		"MultiWorkloadsMSR_cold_start.csv": ",x1\nTENSILE:ResNet,0.125\n",
		"MultiWorkloadsEOR_cold_start.csv": ",x1\nTENSILE:ResNet,0.75\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	l, err := readLogs(dir)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[size]known{{"vgg16", 2}: {.1, 1.5}, {"densenet121", 2}: {.3, 1.6}, {"densenet121", 16}: {.4, 1.7}}
	several := map[copies]known{{"resnet50", 1, wholeRun}: {.25, 1.5}, {"resnet50", 2, wholeRun}: {.35, 1.25},
		{"resnet50", 1, coldStart}: {.125, 1.75}}
	if diff := cmp.Diff(sizes, l.sizes, cmp.AllowUnexported(known{}, size{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(several, l.copies, cmp.AllowUnexported(known{}, copies{})); diff != "" {
		t.Error(diff)
	}
	for policy, want := range map[string]known{"vdnn-tensile": {.1733, 2.2981}, "capuchin": {.3859, 2.2320},
		"tensile-paper": {.4258, 1.5540}, "tensile-authors": {.4258, 1.5540}, "tensile": {}, "vdnn-conv": {}} {
		if got := single("resnet50", policy); got != want {
			t.Errorf("table III has %v for %s, want %v", got, policy, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "BatchSizeEOR.csv"), []byte(",2,16\nVGG,x,\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := readLogs(dir); err == nil || !strings.Contains(err.Error(), "--data: BatchSizeMSR.csv: line 2: ") {
		t.Errorf("a cell that is no number: %v", err)
	}
}

// What the papers explain comes out on resnet50 with their batch: vDNN as TENSILE's authors ran it saves least of all
// that plan; first iterations, in passive mode, are where Capuchin loses; plans after drift are no slower than the
// first ones; the waits of the authors' executor are their overhead. Capuchin's overhead does not grow with the jobs:
// everything of two copies takes twice as long, what they wait for too, or one computes while the other waits.
func TestPaperOrderings(t *testing.T) {
	long.Only(t)
	o := paperOptions(1, 14)
	o.Data = "none"
	o.Scenes = []PaperScene{{Models: []string{"resnet50"}, Copies: 1, Batch: 16, Few: true},
		{Models: []string{"resnet50"}, Copies: 2, Batch: 16, Few: true}}
	r, err := MeasurePaper(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	row := func(table, policy, phase string, jobs int) Row {
		t.Helper()
		i := slices.IndexFunc(r.Tables.Tables, func(x Table) bool { return x.Name == table })
		for _, row := range r.Tables.Tables[i].Rows {
			if row.Policy == policy && row.Phase == phase && row.Jobs == jobs && row.EOR != nil {
				return row
			}
		}
		t.Fatalf("%s has no figures of %s, %s, %d jobs", table, policy, phase, jobs)
		return Row{}
	}
	worst := row("table-3", "vdnn-tensile", wholeRun, 1)
	for _, p := range few {
		if got := row("table-3", p, wholeRun, 1); p != worst.Policy && *got.MSRAll <= *worst.MSRAll {
			t.Errorf("%s saves %.3f, and %s %.3f", p, *got.MSRAll, worst.Policy, *worst.MSRAll)
		}
	}
	for _, p := range []string{paperPolicy, "tensile"} {
		cold, updated := row("table-1", p, coldStart, 1), row("table-1", p, updated, 1)
		if *updated.EOR > *cold.EOR {
			t.Errorf("%s: EOR %.3f with the last plans, %.3f with the first", p, *updated.EOR, *cold.EOR)
		}
	}
	passive, planned := row("table-2", "capuchin", wholeRun, 1), row("table-2", paperPolicy, wholeRun, 1)
	if *passive.FirstEOR < 1.5**planned.FirstEOR {
		t.Errorf("first iterations: capuchin %.3f, %s %.3f", *passive.FirstEOR, paperPolicy, *planned.FirstEOR)
	}
	waits, none := row("table-3", "tensile-authors", wholeRun, 1), row("table-3", paperPolicy, wholeRun, 1)
	if *waits.EOR < 1.3 || *none.EOR > 1.1 {
		t.Errorf("EOR with the authors' waits %.3f, without %.3f", *waits.EOR, *none.EOR)
	}
	one, two := row("figure-6", "capuchin", wholeRun, 1), row("figure-6", "capuchin", wholeRun, 2)
	if *two.EOR > 1.02**one.EOR {
		t.Errorf("capuchin: EOR %.3f of one job, %.3f of two", *one.EOR, *two.EOR)
	}
}

// Quick and whole have the scenes that they promise.
func TestPaperScenes(t *testing.T) {
	quick, whole := PaperQuick(), PaperWhole()
	for _, o := range []PaperOptions{quick, whole} {
		var alone, together, mixed, full int
		for _, s := range o.Scenes {
			switch {
			case len(s.Models) > 1:
				mixed++
			case s.Copies > 1:
				together++
			case s.Batch == o.Batch:
				alone++
			}
			if !s.Few {
				full++
			}
		}
		if alone < 3 || together < 1 || mixed != 1 || full < 5 {
			t.Errorf("%d networks alone, %d together, %d mixed, %d by all policies", alone, together, mixed, full)
		}
	}
	if quick.Repeats != 1 || whole.Repeats != 3 {
		t.Errorf("%d and %d repeats", quick.Repeats, whole.Repeats)
	}
}

// The middle of the rounds is what a row has, and a remark says where they are too far apart.
func TestSpread(t *testing.T) {
	for _, test := range []struct {
		eors   []float64
		want   float64
		remark bool
	}{
		{[]float64{1.04, 1, 1.05}, 1.04, false},
		{[]float64{1.5, 0.9, 1}, 1, true},
		{[]float64{2}, 2, false},
	} {
		var rounds []*outcome
		for _, eor := range test.eors {
			rounds = append(rounds, &outcome{phases: map[string]figures{wholeRun: {eor: eor}}})
		}
		mean, saved := 1.2, 0.5
		row := Row{EOR: &mean, MSRAll: &saved, MSRLive: &saved}
		row.spread(rounds)
		if *row.EOR != test.want || *row.CBR != 0.5/test.want || *row.EORLow != slices.Min(test.eors) ||
			*row.EORHigh != slices.Max(test.eors) || (row.Remark != "") != test.remark {
			t.Errorf("%v: %v of %v to %v, cbr %v, remark %q", test.eors, *row.EOR, *row.EORLow, *row.EORHigh, *row.CBR,
				row.Remark)
		}
	}
}

// One job that can never run and several that do not fit together are refused in one form.
func TestRefusals(t *testing.T) {
	over := &scheduler.OverBudgetError{Need: 3 * graph.MiB, Budget: 2 * graph.MiB, Reason: "it packs into that"}
	plan := &plans.Request{Jobs: make([]plans.Candidate, 1)}
	const want = "needs 3MiB: it packs into that"
	for _, p := range []plans.Result{
		{NoPlan: &plans.NoPlan{Why: over.Error()}},
		{NeverFit: map[int]string{0: "job a cannot run here, even alone: it needs 3MiB and the budget is 2MiB; it " +
			"packs into that; try a smaller --batch or --image"}},
	} {
		if got := refusal(plan, &p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	at := plans.Result{NeverFit: map[int]string{0: "job a cannot run here, even alone: it needs 3MiB at " +
		"conv1 and the budget is 2MiB; try a smaller --batch or --image"}}
	if got := refusal(plan, &at); got != "needs 3MiB at conv1" {
		t.Errorf("%q", got)
	}
}

// On a device with data every policy of the table trains to the bits of the run without a plan, or is refused.
func TestRealBits(t *testing.T) {
	d, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	o, err := RealSmall()
	if err != nil {
		t.Fatal(err)
	}
	o.Iterations, o.Rounds, o.Settings.Image = 3, 2, 0
	o.Scenes = []PaperScene{{Models: []string{"lenet"}, Copies: 2, Batch: 8, Shares: []int{90}}}
	r, err := MeasureReal(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	trained := 0
	for _, row := range r.Tables[0].Rows {
		if row.EOR != nil && (*row.EORLow > *row.EOR || *row.EOR > *row.EORHigh ||
			(*row.EORHigh-*row.EORLow > meaningless) != (row.Remark != "")) {
			t.Errorf("%s: eor %v of %v to %v, remark %q", row.Policy, *row.EOR, *row.EORLow, *row.EORHigh, row.Remark)
		}
		if row.Why == "" {
			trained++
		}
		if (row.Identical == nil) != (row.Why != "") || row.Identical != nil && !*row.Identical {
			t.Errorf("%+v", row)
		}
	}
	if trained < 4 {
		t.Errorf("%d policies of %d rows train", trained, len(r.Tables[0].Rows))
	}
}
