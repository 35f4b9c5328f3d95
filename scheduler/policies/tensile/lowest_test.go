package tensile

import (
	"math/rand/v2"
	"testing"

	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/jobtest"
)

// A plan for no budget is affordable if no job loses more than a hundredth of its time.
func TestAffordable(t *testing.T) {
	var free, within, above int
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 66))
		s, o := randomJobs(rng, 1+rng.IntN(2))
		h := newHybrid(s, o, s.EarlyUpdates, allGroups(s))
		h.prepare(roomy)
		target := draft.SumOfPeaks(s.Drafts(draft.EarlyUpdates, o.style())) * 7 / 10
		jobs := s.Ungroup(h.plan(h.sequenceWithin(4+rng.IntN(300), 8), target))
		result, err := s.Finish(jobs, draft.SumOfPeaks(jobs))
		if err != nil {
			continue
		}
		want := true
		for i, j := range result.Jobs {
			c := compile.Compile(jobs[i].Graph(), j.Plan, j.Layout, compile.Options{})
			out, in := jobs[i].Links()
			took := program.Time(c, program.Durations{Steps: j.Plan.Made, Out: out, In: in}).Iteration
			alone := s.UnplannedTime(i)
			switch {
			case took == alone:
				free++
			case took <= alone+alone/100:
				within++
			case took < alone+alone/4:
				above++
			}
			want = want && took <= alone+alone/100
		}
		if got := affordable(s, &result); got != want {
			t.Errorf("seed %d: affordable %v, want %v", seed, got, want)
		}
	}
	if t.Logf("%d jobs lose nothing, %d less than a hundredth, %d more", free, within, above); free < 20 || above < 20 {
		t.Errorf("%d jobs lose nothing, %d less than a hundredth, %d more", free, within, above)
	}
}

// randomJobs returns a session of random jobs and random options.
func randomJobs(rng *rand.Rand, count int) (s *draft.Session, o Options) {
	r := jobtest.New(rng, count)
	o = Options{LateOut: rng.IntN(3) == 0, OneChannel: rng.IntN(3) == 0}
	_, err := draft.Open(r, scheduler.Watch{}, func(it *draft.Session) (scheduler.Result, error) {
		s = it
		return scheduler.Result{}, nil
	})
	if err != nil {
		panic(err)
	}
	return s, o
}
