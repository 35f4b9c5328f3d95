package cuda_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/program"
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

// arrival is a job that leaves Home, with a graph of sums. All of its ops but the first take a millisecond.
type arrival struct {
	name    string
	weights int
	planned time.Duration // of the first op
	takes   time.Duration // what the first op does take
}

// arrive has two jobs leave Home, the second at once or when the first op of the first has ended, and returns when the
// copies of their prologues have started.
func arrive(t *testing.T, jobs [2]arrival, late bool) (starts [2][]time.Duration) {
	d := open(t, fakecuda.New(fakecuda.Options{Dry: true, Latency: func(l cuda.Launch) time.Duration {
		for _, a := range jobs {
			if l.Op == a.name {
				return a.takes
			}
		}
		return time.Millisecond
	}}))
	defer closed(t, d)
	left := 0
	number := make(map[device.Job]int)
	for i, a := range jobs {
		g := sums(t, a.name, a.weights)
		plan := devicetest.KeepAll(g)
		plan.Made = slices.Repeat([]time.Duration{time.Millisecond}, len(plan.Steps))
		plan.Made[0] = a.planned
		s := sit(t, d, devicetest.Build(t, d, g, plan, compile.Options{}))
		number[s.j] = i
		for _, section := range []*program.Section{&s.p.Prologue, &s.p.Body} {
			left += len(section.Commands)
			s.j.Issue(section, 0, len(section.Commands), 0, section == &s.p.Prologue)
		}
		for waits := i == 0 && late || i == 1; waits && left > 0; {
			events, err := d.Next(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			left -= len(events)
			for _, e := range events {
				switch c := &e.Section.Commands[e.Index]; c.Kind {
				case program.In:
					n := number[e.Job]
					starts[n] = append(starts[n], e.Start)
				case program.Kernel:
					waits = i == 1
				}
			}
		}
	}
	for i, a := range jobs {
		if len(starts[i]) != a.weights {
			t.Fatalf("copies at %v", starts)
		}
	}
	return starts
}

// before counts times before an instant.
func before(times []time.Duration, t time.Duration) (n int) {
	for _, time := range times {
		if time < t {
			n++
		}
	}
	return n
}

// A job needs its weights at once while another one copies in weights that it needs much later: those wait for the
// others, but for what is on the stream already.
func TestArrivals(t *testing.T) {
	const weights = 12
	starts := arrive(t, [2]arrival{{"patient", weights, time.Second, time.Second},
		{"hurried", weights, time.Millisecond, time.Millisecond}}, false)
	if n := before(starts[0], starts[1][weights-1]); n > 2 {
		t.Errorf("%d copies that are needed after a second go before those that are needed at once: %v", n, starts)
	}
}

// A job has come far when another one leaves Home. It needs its weights sooner, though later in its iteration.
func TestArrivalsLate(t *testing.T) {
	const weights = 20
	starts := arrive(t, [2]arrival{{"old", weights, 40 * time.Millisecond, 40 * time.Millisecond},
		{"new", weights, 45 * time.Millisecond, 45 * time.Millisecond}}, true)
	if last := starts[0][weights-1]; last < starts[1][0] {
		t.Fatalf("the second job leaves Home when the copies of the first are over: %v", starts)
	} else if n := before(starts[1], last); n > 2 {
		t.Errorf("%d copies that are needed after 45 ms go before those that are needed within 20 ms: %v", n, starts)
	}
}
