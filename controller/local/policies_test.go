package local

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/controller"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/nettest"
	"tensile/models/task"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/scheduler/policies"
	"tensile/scheduler/rivals/autoswap"

	_ "tensile/scheduler/rivals"
)

// TestEveryPolicyTrains trains small networks on the cpu device by every policy of the table, within as small a part
// of their memory as it takes, or without a budget: losses and weights are those of the run that frees nothing, to the
// bit.
func TestEveryPolicyTrains(t *testing.T) {
	for _, name := range long.Or([]string{"lenet"}, []string{"lenet", "resnet18", "gpt2"}) {
		g, err := nettest.BuildBatch(name, 16) // activations outweigh parameters
		if err != nil {
			t.Fatal(err)
		}
		w := []task.Task{{Name: name, Model: name, Graph: g, Seed: 1, Data: task.Synthetic(g, 1)}}
		d := computing(t)
		vanilla, err := planner.Vanilla(t.Context(), asked(t, w, d))
		if err != nil {
			t.Fatal(err)
		}
		losses, weights := overfit(t, d, w, "none-all", 0)
		for _, policy := range policies.Names() {
			r := asked(t, w, d)
			if policy == "autoswap" {
				r.Options.Own = autoswap.Options{Smallest: -1} // the networks are small
			}
			var planned scheduler.Result
			err := scheduler.ErrNoPlan
			for _, percent := range []graph.Bytes{60, 80, 90, 95, 0} {
				if errors.Is(err, scheduler.ErrNoPlan) {
					r.Policy, r.Budget = policy, vanilla.Live[0]*percent/100
					planned, err = policies.Schedule(r, nil)
				}
			}
			if err != nil {
				t.Fatal(name, policy, err)
			}
			t.Logf("%s by %s within %v: %v swapped, %v recomputed", name, policy, r.Budget,
				planned.Jobs[0].Plan.Swapped(g), planned.Jobs[0].Plan.Recomputation())
			got, same := overfitBy(t, d, w, controller.Config{Policy: policy, Budget: r.Budget, Options: r.Options})
			if diff := cmp.Diff(losses, got) + cmp.Diff(weights, same); diff != "" {
				t.Errorf("%s by %s within %v (-none-all +%s):\n%s", name, policy, r.Budget, policy, diff)
			}
		}
	}
}
