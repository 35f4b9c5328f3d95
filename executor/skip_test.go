package executor_test

import (
	"context"
	"testing"

	"tensile/device/sim"
	"tensile/executor"
	"tensile/graph/cost"
)

// Iterations that are skipped count: a job ends as many earlier, and each report says which iteration it is of.
func TestSkip(t *testing.T) {
	const iterations, skipped = 20, 9
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	d := sim.New(facts, sim.Options{})
	k := lenet(t)
	var reported []int
	var h *host
	h = newHost(d, func(r *executor.Report) {
		if reported = append(reported, r.Iteration); len(reported) == 3 {
			h.Skip(k.name, skipped)
		}
	})
	defer closeHost(t, h.Host)
	h.Submit(k.spec(iterations), k.plan(d, "none-live", 0))
	if err := run(context.Background(), h.Host); err != nil {
		t.Fatal(err)
	}
	if len(reported) != iterations-skipped || reported[2] != 2 || reported[3] != 3+skipped {
		t.Errorf("iterations %v are reported", reported)
	}
	if n := h.ended[k.name].Iterations; n != iterations {
		t.Errorf("the job has ended after %d iterations, want %d", n, iterations)
	}
}
