package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/observe/report"
)

// Noise and wrong predictions change the times of a simulated run, from seed to seed, and neither its plan nor what it
// uses: all is as planned but for times. With the same seed they are the same.
func TestMistime(t *testing.T) {
	t.Parallel()
	run := func(flags ...string) report.Training {
		var r report.Training
		document(t, tensile(t, t.TempDir(), append([]string{"run", "lenet", "--batch", "16",
			"--iterations", "12", "--budget", "60%", "--link", "1GB/s", "--compare", "--json", "--device", "sim:a6000",
			"--no-replan"},
			flags...)...), &r)
		return r
	}
	timeless := func(r report.Training) report.Training {
		r.PlanTime, r.PackTime, r.Proof, r.FirstEOR, r.StartEOR = 0, 0, 0, nil, nil
		still := func(m *report.Metrics) {
			m.EOR, m.EORLow, m.EORHigh, m.CBR, m.Stall, m.Transition = nil, nil, nil, nil, 0, 0
		}
		jobs := []report.JobMetrics{}
		for _, j := range r.Jobs {
			still(&j.Metrics)
			j.FirstEOR, j.StartEOR, j.Start, j.Prediction = nil, nil, nil, nil
			jobs = append(jobs, j)
		}
		still(&r.Total)
		r.Jobs = jobs
		return r
	}
	right := run()
	seen := []float64{*right.Jobs[0].EOR}
	for _, flags := range [][]string{{"--noise", "5%"}, {"--mispredict", ".3"}, {"--mispredict", ".3", "--seed", "2"},
		{"--mispredict", ".1", "--noise", "20%"}} {
		wrong := run(flags...)
		if diff := cmp.Diff(timeless(right), timeless(wrong)); diff != "" {
			t.Errorf("%v change more than times (-without +with):\n%s", flags, diff)
		}
		if j := wrong.Jobs[0]; j.Touched > j.Arena || j.Arena > wrong.Budget {
			t.Errorf("%v: %d bytes touched of %d, within %d", flags, j.Touched, j.Arena, wrong.Budget)
		}
		eor := *wrong.Jobs[0].EOR
		for _, other := range seen {
			if eor == other {
				t.Errorf("%v: EOR %v, as before", flags, eor)
			}
		}
		seen = append(seen, eor)
		if again := run(flags...); *again.Jobs[0].EOR != eor {
			t.Errorf("%v: EOR %v, then %v", flags, eor, *again.Jobs[0].EOR)
		}
	}
}
