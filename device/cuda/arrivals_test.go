package cuda_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/internal/fakecuda"
	"tensile/program"
)

// sums is a graph that adds up weights of 96 MiB, which take 4 ms to be copied. Its first op has the name of the job.
func sums(t *testing.T, job string, weights int) *graph.Graph {
	b := graph.NewBuilder("sums")
	weight := func(i int) graph.TensorID {
		return b.Persistent(fmt.Sprint("w", i), graph.Parameter, graph.Shape{24, 1 << 20}, graph.Init{})
	}
	sum := b.Op(job, graph.ReLU, graph.Attrs{}, weight(0))[0]
	for i := 1; i < weights; i++ {
		sum = b.Op(fmt.Sprint("sum", i), graph.Add, graph.Attrs{}, sum, weight(i))[0]
	}
	b.Output(b.Op("end", graph.Slice, graph.Attrs{Length: 1}, sum)[0])
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestArrivals lets a job leave Home that needs its weights at once, while another one copies in weights that it needs
// much later: those wait for the others, but for what is on the stream already.
func TestArrivals(t *testing.T) {
	const weights = 12
	d := open(t, fakecuda.New(fakecuda.Options{Dry: true, Latency: func(l cuda.Launch) time.Duration {
		if l.Op == "patient" {
			return time.Second
		}
		return time.Millisecond
	}}))
	defer closed(t, d)
	left := 0
	jobs := make(map[device.Job]string)
	for _, name := range []string{"patient", "hurried"} {
		g := sums(t, name, weights)
		plan := devicetest.KeepAll(g)
		plan.Made = slices.Repeat([]time.Duration{time.Millisecond}, len(plan.Steps))
		if name == "patient" {
			plan.Made[0] = time.Second
		}
		proven := devicetest.Build(t, d, g, plan, program.Options{})
		j, err := d.Open(g, device.JobOptions{Name: name, Output: func(int, graph.StorageID, []float32) {}})
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Load(proven); err != nil {
			t.Fatal(err)
		}
		p := proven.Program()
		if err := j.Reserve(p.Arena); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*program.Section{&p.Prologue, &p.Body} {
			left += len(s.Commands)
			j.Issue(s, 0, len(s.Commands), 0, s == &p.Prologue)
		}
		jobs[j] = name
	}
	starts := make(map[string][]time.Duration) // of the copies of prologues
	for left > 0 {
		events, err := d.Next(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		left -= len(events)
		for _, e := range events {
			if c := &e.Section.Commands[e.Index]; c.Kind == program.In {
				starts[jobs[e.Job]] = append(starts[jobs[e.Job]], e.Start)
			}
		}
	}
	if len(starts["patient"]) != weights || len(starts["hurried"]) != weights {
		t.Fatalf("copies at %v", starts)
	}
	before := 0
	for _, start := range starts["patient"] {
		if start < starts["hurried"][weights-1] {
			before++
		}
	}
	if before > 2 {
		t.Errorf("%d copies that are needed after a second go before those that are needed at once: %v", before, starts)
	}
}
