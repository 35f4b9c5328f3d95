package planner

import (
	"strings"
	"testing"
	"time"

	"tensile/device/cpu"
	"tensile/graph"
	"tensile/models"
	"tensile/models/task"
	"tensile/scheduler"
)

// A profile holds the latencies that were given, the scratch and the name of the variant of each op, and becomes a job.
func TestProfile(t *testing.T) {
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	g, err := models.Build("lenet", models.Config{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	on := Describe(d, func(g *graph.Graph) (latency, slack []time.Duration) {
		asked++
		return make([]time.Duration, len(g.Ops)), make([]time.Duration, len(g.Ops))
	})
	r, err := on.FirstRequest([]task.Task{{Name: "a", Graph: g}, {Name: "b", Graph: g}})
	if err != nil {
		t.Fatal(err)
	}
	if facts := d.Facts(); on.Identity != d.Identity() || r.Align != d.Align() || r.Out != facts.Out ||
		r.In != facts.In {
		t.Errorf("device %+v, request of %v, %v, %v", on, r.Align, r.Out, r.In)
	}
	if asked != 1 {
		t.Errorf("two copies of a network: latencies were asked for %d times", asked)
	}
	var scratch graph.Bytes
	for i, j := range r.Jobs {
		if j.Name != []string{"a", "b"}[i] || j.Epoch != 1 || j.Graph != g || len(j.Latency) != len(g.Ops) ||
			len(j.Slack) != len(g.Ops) {
			t.Errorf("job %d: %+v", i, j)
		}
		for op := range g.Ops {
			for k, v := range d.Variants(g, graph.OpID(op)) {
				scratch += v.Scratch
				if got := j.Variants[op][k]; got != (scheduler.Variant{Name: v.Name, Scratch: v.Scratch,
					Share: v.Share}) {
					t.Errorf("op %d: variant %d is %+v, want %+v", op, k, got, v)
				}
			}
		}
	}
	if scratch == 0 {
		t.Error("no op of lenet wants scratch: the test shows nothing")
	}
}

// A device that cannot execute an op has no profile of its graph.
func TestProfileRefuses(t *testing.T) {
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	g := &graph.Graph{Name: "strange", Ops: []graph.Op{{Name: "op", Kind: graph.Opaque}}}
	if _, err := Describe(d, Roofline(d.Facts())).FirstRequest([]task.Task{{Name: "a", Graph: g}}); err == nil ||
		!strings.Contains(err.Error(), "cannot execute op op of strange") {
		t.Errorf("an op that the device does not know: %v", err)
	}
}
