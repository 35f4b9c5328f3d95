package main

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/observe/report"
	"tensile/wire"
)

// The keys of run --json. Programs depend on them.
const (
	reportKeys = "device policy budget_bytes link_bytes_per_second latencies plan_ms pack_ms prove_ms " +
		"planning_steps planning_limited worst_first_iteration_eor worst_start_eor jobs total"
	metricsKeys = "vanilla_peak_all_bytes vanilla_peak_live_bytes slot_peak_bytes arena_bytes touched_bytes " +
		"working_set_bound_bytes zero_stall_bound_bytes " +
		"msr_all msr_live eor eor_low eor_high cbr stall_ms plans transition_ms"
	jobKeys = "job model iterations loss_first loss_last bit_identical digest first_iteration_eor start_ms start_eor " +
		"predictor_mape accuracy test_images " + metricsKeys
)

func checkKeys(t *testing.T, where string, object map[string]any, want string) {
	t.Helper()
	wanted := strings.Fields(want)
	slices.Sort(wanted)
	if diff := cmp.Diff(wanted, slices.Sorted(maps.Keys(object))); diff != "" {
		t.Errorf("keys of %s (-want +got):\n%s", where, diff)
	}
}

func TestReportKeys(t *testing.T) {
	t.Parallel()
	for _, device := range []string{"cpu", "sim:a6000"} {
		out := tensile(t, t.TempDir(), "run", "lenet:2", "--batch", "4", "--iterations", "2", "--json", "--device",
			device)
		var r map[string]any
		document(t, out, &r)
		checkKeys(t, "the report", r, reportKeys)
		checkKeys(t, "total", r["total"].(map[string]any), metricsKeys)
		jobs := r["jobs"].([]any)
		if len(jobs) != 2 {
			t.Errorf("%s: %d jobs, want 2", device, len(jobs))
		}
		for _, j := range jobs {
			checkKeys(t, "a job", j.(map[string]any), jobKeys)
		}
	}
}

// TestRunReport trains two networks in 60 % of their memory and checks each figure against the others: with arenas of
// their own, and as a run takes it, which depends on how fast this machine is.
func TestRunReport(t *testing.T) {
	t.Parallel()
	if r := runReport(t, "--memory-sharing", "none"); r.Sharing != wire.NoSharing {
		t.Errorf("jobs share memory by %s, which a flag forbids", r.Sharing)
	}
	runReport(t)
}

// runReport is what TestRunReport checks of one run.
func runReport(t *testing.T, flags ...string) *report.Training {
	t.Helper()
	dir := t.TempDir()
	var r report.Training
	document(t, tensile(t, dir, append([]string{"run", "mlp", "lenet", "--batch", "32", "--iterations", "12",
		"--budget", "60%", "--compare", "--json"}, flags...)...), &r)
	if names := files(t, dir); len(names) > 0 {
		t.Errorf("the run left %q behind", names)
	}
	if len(r.Jobs) != 2 || r.Jobs[0].Model != "mlp" || r.Jobs[1].Model != "lenet" {
		t.Fatalf("jobs are %+v", r.Jobs)
	}
	if !strings.HasPrefix(r.Device, "cpu") || r.Policy != "tensile" || r.Link != 0 {
		t.Errorf("device %s, policy %s, link %v", r.Device, r.Policy, r.Link)
	}
	var sum report.Metrics
	atOnce := r.Sharing == wire.NoSharing // all jobs had their arenas at the same time
	for _, j := range r.Jobs {
		if j.BitIdentical == nil || !*j.BitIdentical {
			t.Errorf("%s: bit_identical is not true", j.Job)
		}
		if j.Iterations != 12 || j.LossFirst == nil || j.LossLast == nil || j.Plans < 1 {
			t.Errorf("%s: %d iterations, losses %v and %v, %d plans", j.Job, j.Iterations, j.LossFirst, j.LossLast,
				j.Plans)
		}
		checkMetrics(t, j.Job, j.Metrics)
		atOnce = atOnce && j.Plans == 1
		sum.VanillaAll += j.VanillaAll
		sum.VanillaLive += j.VanillaLive
		sum.SlotPeak += j.SlotPeak
		sum.Arena += j.Arena
		sum.Touched += j.Touched
		sum.WorkingSet += j.WorkingSet
		sum.ZeroStall += j.ZeroStall
		sum.Stall += j.Stall
		sum.Gate += j.Gate
		sum.Plans += j.Plans
		sum.Transition += j.Transition
	}
	checkMetrics(t, "total", r.Total)
	got := r.Total
	got.MSRAll, got.MSRLive, got.EOR, got.EORLow, got.EORHigh, got.CBR = 0, 0, nil, nil, nil, nil
	if got.ZeroStall < sum.ZeroStall {
		t.Errorf("the zero-stall bound of all jobs is %d, the sum of theirs %d", got.ZeroStall, sum.ZeroStall)
	}
	sum.ZeroStall = got.ZeroStall // each of the jobs could have the whole link
	if !atOnce {                  // the jobs were at their largest at different times
		sum.SlotPeak, sum.Arena, sum.Touched = min(sum.SlotPeak, got.Arena), min(sum.Arena, r.Budget),
			min(sum.Touched, got.Arena)
	}
	if diff := cmp.Diff(sum, got); diff != "" {
		t.Errorf("total is not the sum of the jobs (-sum +total):\n%s", diff)
	}
	want := r.Total.VanillaLive * 6 / 10
	switch r.Sharing {
	case wire.NoSharing:
		if r.Total.Gate != 0 {
			t.Errorf("jobs with arenas of their own waited %v ms for memory of others", r.Total.Gate)
		}
	case wire.Gates:
		want -= want % (2 * graph.MiB) // a lease grants whole pages
	default:
		t.Errorf("jobs share memory by %s", r.Sharing)
	}
	if r.Budget != want {
		t.Errorf("memory sharing %s: budget %d, want %d: 60 %% of %d", r.Sharing, r.Budget, want, r.Total.VanillaLive)
	}
	if r.Total.Arena > r.Budget {
		t.Errorf("the arenas of %d bytes exceed the budget of %d", r.Total.Arena, r.Budget)
	}
	return &r
}

// checkMetrics checks what holds for the figures of every job, and of all together.
func checkMetrics(t *testing.T, name string, m report.Metrics) {
	t.Helper()
	order := []graph.Bytes{1, m.WorkingSet, m.Arena}
	if !slices.IsSorted(order) || m.Touched > m.Arena || m.SlotPeak > m.Arena || m.Touched <= 0 ||
		m.VanillaLive > m.VanillaAll {
		t.Errorf("%s: figures are out of order: %+v", name, m)
	}
	near := func(what string, got, want float64) {
		if !(math.Abs(got-want) < 1e-12) {
			t.Errorf("%s: %s is %v, want %v", name, what, got, want)
		}
	}
	near("msr_all", m.MSRAll, float64(m.VanillaAll-m.SlotPeak)/float64(m.VanillaAll))
	near("msr_live", m.MSRLive, float64(m.VanillaLive-m.SlotPeak)/float64(m.VanillaLive))
	if m.EOR == nil || m.EORLow == nil || m.EORHigh == nil || m.CBR == nil ||
		!(0 < *m.EORLow && *m.EORLow <= *m.EOR && *m.EOR <= *m.EORHigh) {
		t.Errorf("%s: eor %v from %v to %v, cbr %v", name, m.EOR, m.EORLow, m.EORHigh, m.CBR)
	} else {
		near("cbr", *m.CBR, m.MSRLive / *m.EOR)
	}
}

// TestLossFalls trains long enough to learn something.
func TestLossFalls(t *testing.T) {
	t.Parallel()
	var r report.Training
	document(t, tensile(t, t.TempDir(), "run", "lenet", "--batch", "16", "--iterations", "30", "--budget", "70%",
		"--json"), &r)
	j := r.Jobs[0]
	if !(*j.LossLast < *j.LossFirst/2) {
		t.Errorf("the loss went from %v to %v in 30 iterations", *j.LossFirst, *j.LossLast)
	}
	if j.EOR != nil || j.CBR != nil || j.BitIdentical != nil {
		t.Errorf("without --compare there are eor %v, cbr %v, bit_identical %v", j.EOR, j.CBR, j.BitIdentical)
	}
}

// TestSimReport runs in virtual time: no bits to compare, but an overhead, which there is exact.
func TestSimReport(t *testing.T) {
	t.Parallel()
	args := []string{"run", "resnet:1,1,1,1", "--batch", "4", "--image", "64", "--iterations", "12", "--compare",
		"--json", "--device", "sim:a6000"}
	var free, tight report.Training
	document(t, tensile(t, t.TempDir(), args...), &free)
	j := free.Jobs[0]
	if j.BitIdentical != nil || j.LossFirst != nil || j.LossLast != nil {
		t.Errorf("bit_identical %v, losses %v and %v without data", j.BitIdentical, j.LossFirst, j.LossLast)
	}
	if j.EOR == nil || *j.EOR != 1 || free.Budget != 0 {
		t.Errorf("without a budget (%d) the overhead is %v, want 1", free.Budget, j.EOR)
	}
	checkMetrics(t, j.Job, j.Metrics)

	document(t, tensile(t, t.TempDir(), append(args, "--budget", "50%")...), &tight)
	j = tight.Jobs[0]
	checkMetrics(t, j.Job, j.Metrics)
	if j.EOR == nil || *j.EOR < 1 || j.Arena > tight.Budget || j.MSRLive < 0.5 {
		t.Errorf("in half of the memory: eor %v, arena %d of %d, msr_live %v", j.EOR, j.Arena, tight.Budget, j.MSRLive)
	}
}

// TestPlanReport checks the figures of plan --json against each other and against a run in virtual time.
func TestPlanReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	of := []string{"lenet", "mlp", "--batch", "16", "--budget", "70%", "--device", "sim:a6000", "--json"}
	var p report.Plan
	document(t, tensile(t, dir, append([]string{"plan", "--explain"}, of...)...), &p)
	var r report.Training
	document(t, tensile(t, dir, append([]string{"run", "--iterations", "2"}, of...)...), &r)
	if !p.Validated || p.Budget != r.Budget || p.Rounds < 1 || p.Total.Arena > p.Budget {
		t.Errorf("validated %v, budget %d (run: %d), %d rounds, arena %d", p.Validated, p.Budget, r.Budget, p.Rounds,
			p.Total.Arena)
	}
	var sum report.PlanFigures
	for i, j := range p.Jobs {
		sum.Memory.Add(j.Memory)
		sum.Out, sum.In = sum.Out+j.Out, sum.In+j.In
		if j.SlotPeak != r.Jobs[i].SlotPeak || j.Arena != r.Jobs[i].Arena || j.MSRLive != r.Jobs[i].MSRLive {
			t.Errorf("%s: planned %+v, run %+v", j.Job, j.PlanFigures, r.Jobs[i].Metrics)
		}
		if len(j.Decisions) != j.Swaps+j.Recomputes {
			t.Errorf("%s: %d decisions for %d swaps and %d recomputations", j.Job, len(j.Decisions), j.Swaps,
				j.Recomputes)
		}
		for _, d := range j.Decisions {
			if d.Bytes <= 0 || d.FreeSlots <= 0 || d.From == "" || d.To == "" || d.Reason == "" {
				t.Errorf("%s: decision %+v", j.Job, d)
			}
		}
		var held graph.Bytes
		for _, h := range j.Peak {
			held += h.Bytes
		}
		if held > j.SlotPeak || held == 0 {
			t.Errorf("%s: %d bytes are held at the peak of %d", j.Job, held, j.SlotPeak)
		}
		if !(j.Iteration > 0) || !(j.EOR >= 1) {
			t.Errorf("%s: predicted iteration of %v ms, eor %v", j.Job, j.Iteration, j.EOR)
		}
	}
	if p.Total.ZeroStall < sum.ZeroStall {
		t.Errorf("the zero-stall bound of all jobs is %d, the sum of theirs %d", p.Total.ZeroStall, sum.ZeroStall)
	}
	sum.ZeroStall = p.Total.ZeroStall // each of the jobs could have the whole link
	if diff := cmp.Diff(sum, p.Total); diff != "" {
		t.Errorf("total is not the sum of the jobs (-sum +total):\n%s", diff)
	}
}

// A planned run whose bits differ is an error, with --json too; the message names the job.
func TestDiffers(t *testing.T) {
	yes, no := true, false
	good := &report.Training{Jobs: []report.JobMetrics{{Job: "a", BitIdentical: &yes}, {Job: "b"}}}
	if err := differs(good); err != nil {
		t.Errorf("differs of equal runs: %v", err)
	}
	bad := &report.Training{Jobs: []report.JobMetrics{{Job: "a", BitIdentical: &yes}, {Job: "b", BitIdentical: &no}}}
	if err := differs(bad); err == nil || !strings.HasPrefix(err.Error(), "job b: ") {
		t.Errorf("differs of a run that went wrong: %v", err)
	}
}

// TestStarts simulates two networks that start together. Their first iterations run beside their prologues, so that
// both are over before the copies of the prologues and the iterations could be, one after the other: after 19 ms and
// not 26.
func TestStarts(t *testing.T) {
	long.Only(t)
	t.Parallel()
	var r report.Training
	document(t, tensile(t, t.TempDir(), "run", "resnet50", "densenet121", "--image", "64", "--batch", "4", "--device",
		"sim:a6000", "--budget", "60%", "--iterations", "3", "--no-calibrate", "--compare", "--json"), &r)
	for _, j := range r.Jobs {
		if j.Start == nil || *j.Start <= 0 || *j.Start > 21 || j.StartEOR == nil || *j.StartEOR > *r.StartEOR {
			t.Errorf("%s: a start of %v ms, %v of the vanilla run's", j.Job, j.Start, j.StartEOR)
		}
	}
}
