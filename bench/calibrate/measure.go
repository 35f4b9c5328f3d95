package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"tensile/controller"
	"tensile/controller/local"
	"tensile/device"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/predictor"
	"tensile/scheduler/planner"
)

// Meter tells which share of the device others used since it was asked last, from 0 to 1.
type Meter interface {
	Load() (float64, error)
}

// Options say what is measured. The zero value is a full calibration.
type Options struct {
	Time time.Duration // to measure for; 0: 60 s
	// busy threads beside each network, in rotation; nil: none, none, half of the processors, all, twice as many
	Background []int
	Seed       uint64
	Meter      Meter                            // nil: others are taken to be idle
	Progress   func(done float64, networks int) // may be nil
}

// iterations of each network; the first is warm-up and not taken.
const iterations = 4

// maxIteration is how long an iteration of a network may take by the roofline.
const maxIteration = 150 * time.Millisecond

// measure measures ops of random networks on a device, named in the samples by its position 0. The result has an entry
// per network.
func measure(ctx context.Context, d device.Device, o Options) ([][]predictor.Sample, error) {
	o.Time = cmp.Or(o.Time, time.Minute)
	if o.Background == nil {
		n := runtime.NumCPU()
		o.Background = []int{0, 0, (n + 1) / 2, n, 2 * n}
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x63616c69))
	var networks [][]predictor.Sample
	started := time.Now()
	for n := 0; n < 3 || time.Since(started) < o.Time; n++ {
		g, err := draw(rng, d.Facts())
		if err != nil {
			return nil, err
		}
		some, err := measureUnderLoad(ctx, d, g, o.Background[n%len(o.Background)], o.Meter)
		if err != nil {
			return nil, err
		}
		networks = append(networks, some)
		if o.Progress != nil {
			o.Progress(min(1, time.Since(started).Seconds()/o.Time.Seconds()), n+1)
		}
	}
	return networks, nil
}

// draw makes a network that is short enough for the device.
func draw(rng *rand.Rand, facts cost.Facts) (*graph.Graph, error) {
	for range 1000 {
		g, err := network(rng)
		if err != nil {
			return nil, fmt.Errorf("a random network: %w", err)
		}
		var sum time.Duration
		for op := range g.Ops {
			sum += facts.Roofline(g.Cost(graph.OpID(op)))
		}
		if sum < maxIteration {
			return g, nil
		}
	}
	return nil, fmt.Errorf("no random network takes less than %v on %s", maxIteration, facts.Name)
}

// measureUnderLoad trains a network beside n busy threads and takes the latency of each op in each iteration but the
// first.
func measureUnderLoad(ctx context.Context, d device.Device, g *graph.Graph, n int, meter Meter) ([]predictor.Sample,
	error) {
	tasks := []task.Task{{Name: g.Name, Model: g.Name, Graph: g, Seed: 1, Data: task.Synthetic(g, 1)}}
	if meter != nil {
		if _, err := meter.Load(); err != nil { // starts a new period
			return nil, err
		}
	}
	var samples []predictor.Sample
	on := planner.Describe(d, planner.Roofline(d.Facts()))
	o := local.Options{Config: controller.Config{Policy: "none-live", NoReplan: true}, Iterations: iterations,
		Observe: func(it local.Iterated) {
			if it.Report.Iteration == 0 {
				return
			}
			for op, latency := range it.Report.Steps { // policy none-live executes each op once, in the graph's order
				samples = append(samples, predictor.Sample{Call: predictor.CallOf(g, graph.OpID(op), 0),
					Seconds: max(latency, 1).Seconds()})
			}
		}}
	begin := time.Now()
	background := startBackground(n)
	_, err := local.Train(ctx, d, on, tasks, o)
	load := float64(background.end()) / (time.Since(begin).Seconds() * 1e9 * float64(runtime.NumCPU()))
	if err != nil {
		return nil, err
	}
	if meter != nil {
		others, err := meter.Load()
		if err != nil {
			return nil, err
		}
		load += others
	}
	for i := range samples {
		samples[i].Load = min(load, 1)
	}
	return samples, nil
}
