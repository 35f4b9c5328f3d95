package executor_test

import (
	"strings"
	"testing"

	"tensile/device"
	"tensile/models"
)

// BenchmarkIteration trains a small network with swaps, an iteration an op.
func BenchmarkIteration(b *testing.B) {
	for _, bench := range []struct {
		device device.Device
		task   *task
	}{
		{openSim(b), newTask(b, "resnet50", "resnet50", models.Config{Image: 32, Batch: 2}, 1)},
		{openCPU(b), newTask(b, "lenet", "lenet", models.Config{Image: 12, Batch: 2}, 1)},
	} {
		d, k := bench.device, bench.task
		p := k.plan(d, "tensile", k.plan(d, "none-live", 0).Program().Arena*7/10)
		b.Run("device="+strings.Fields(d.Name())[0], func(b *testing.B) {
			h := newHost(d, nil)
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
