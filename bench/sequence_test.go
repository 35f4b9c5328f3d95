package bench

import (
	"math"
	"slices"
	"testing"

	"tensile/autodiff"
	"tensile/graph"
	"tensile/scheduler"
)

// TestTrainSequences trains every network that reads sequences at a small size: the loss is finite and falls, and a plan
// within 60 % of what the job needs changes no bit of any loss or weight.
func TestTrainSequences(t *testing.T) {
	const iterations = 20
	adam := autodiff.Adam{LearningRate: 0.01}
	for _, test := range []struct {
		model        string
		steps, batch int
	}{{"bert:1,16,2", 8, 32}, {"gpt:2,16,2", 8, 8}, {"gnmt:3,16", 4, 8}, {"rhn:4,32", 6, 8}, {"tacotron:1,16", 2, 3}} {
		t.Run(test.model, func(t *testing.T) {
			d := computing(t)
			w, err := Load([]string{test.model}, Settings{Sequence: test.steps, Vocabulary: 150, Batch: test.batch, Seed: 2, Optimizer: adam})
			if err != nil {
				t.Fatal(err)
			}
			planner := NewPlanner(w, d, scheduler.Options{})
			_, live, err := planner.Vanilla()
			if err != nil {
				t.Fatal(err)
			}
			train := func(policy string, budget graph.Bytes) (*Planned, JobRun) {
				planned, err := planner.Plan(policy, budget)
				if err != nil {
					t.Fatal(err)
				}
				run, err := Train(t.Context(), d, w, planned, budget, iterations, nil)
				if err != nil {
					t.Fatal(err)
				}
				return planned, run.Jobs[0]
			}
			_, plain := train("none-live", 0)
			planned, swapped := train("tensile", live[0]*60/100)
			if len(planned.Jobs[0].Plan.Moves) == 0 {
				t.Error("the plan moves nothing")
			}
			if !slices.Equal(plain.Losses, swapped.Losses) {
				t.Errorf("losses %v, under a plan %v", plain.Losses, swapped.Losses)
			}
			for _, s := range w[0].Graph.Storages {
				if plain.Weights[s.ID] != swapped.Weights[s.ID] {
					t.Errorf("%s differs under a plan", s.Name)
				}
			}
			first, last := mean(plain.Losses[:5]), mean(plain.Losses[iterations-5:])
			if !(last < 0.9*first) {
				t.Errorf("the loss went from %v to %v: %v", first, last, plain.Losses)
			}
		})
	}
}

// mean is NaN if any number is.
func mean(x []float32) (sum float64) {
	for _, v := range x {
		if math.IsInf(float64(v), 0) {
			return math.NaN()
		}
		sum += float64(v) / float64(len(x))
	}
	return sum
}
