package torchtest

import (
	"testing"

	"tensile/controller"
	"tensile/controller/local"
	"tensile/device/cpu"
	"tensile/graph"
	"tensile/models/nettest"
	"tensile/models/task"
	"tensile/scheduler/planner"
)

// What is compared with torch is what the cpu device trains: the same weights and running statistics, to the bit.
func TestSameAsDevice(t *testing.T) {
	const iterations = 3
	for _, name := range []string{"resnet18", "gpt2", "gnmt"} {
		t.Run(name, func(t *testing.T) {
			g, err := nettest.Build(name)
			if err != nil {
				t.Fatal(err)
			}
			k, err := task.Open(nil, g, 1, "")
			if err != nil {
				t.Fatal(err)
			}
			m := begin[float32](t, k, 0, &notes{index: make(map[string][]int)}, "single")
			m.train(iterations)

			d, err := cpu.New(cpu.Options{Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			w := []task.Task{{Name: name, Model: name, Graph: g, Seed: k.Seed, Data: k.Data}}
			o := local.Options{Config: controller.Config{Policy: "none-live"}, Iterations: iterations}
			run, err := local.Train(t.Context(), d, planner.Describe(d, planner.Roofline(d.Facts())), w, o)
			if err != nil {
				t.Fatal(err)
			}
			m.storages(func(s graph.Storage, _ graph.Shape) {
				if got, want := task.Digest(m.content(s.ID)), run.Jobs[0].Weights[int32(s.ID)]; got != want {
					t.Errorf("%s has the digest %s, on the device %s", s.Name, got, want)
				}
			}, graph.Parameter, graph.State)
		})
	}
}
