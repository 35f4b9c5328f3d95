package executor_test

import (
	"testing"

	"tensile/device/cpu"
	"tensile/device/lease"
	"tensile/executor"
	"tensile/models"
	"tensile/plan/compile"
)

// BenchmarkGate trains a small network on the cpu, without groups and in as many as can be: the difference of two
// iterations, divided by the groups, is what a gate costs. A unit of b.N is an iteration.
func BenchmarkGate(b *testing.B) {
	for _, gated := range []bool{false, true} {
		name := map[bool]string{false: "gates=no", true: "gates=yes"}[gated]
		b.Run(name, func(b *testing.B) {
			d := openEngine(b, cpu.Options{Page: smallPage})
			k := newTask(b, "lenet", "lenet", models.Config{Image: 12, Batch: 2}, 1)
			p := k.plan(d, "none-live", 0)
			h := newHost(d, nil)
			if gated {
				groups, err := compile.ProveGroups(p, smallPage, 1)
				if err != nil {
					b.Fatal(err)
				}
				h.Share(executor.Sharing{Lease: lease.NewMachine(lease.Options{Still: -1}), Every: 1})
				h.Capacity(1<<30, 0)
				defer func() { b.ReportMetric(float64(len(groups.Groups().Body)), "groups/op") }()
			}
			h.Submit(k.spec(b.N), p)
			b.ResetTimer()
			if err := run(b.Context(), h.Host); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := h.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
