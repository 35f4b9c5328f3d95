package planner

import (
	"time"

	"tensile/device"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/predictor"
)

// Sources are where latencies come from before the jobs of a session have run. Of a graph the first that is known
// counts: what was measured, what was recorded, what the model predicts, the roofline.
type Sources struct {
	Model *predictor.Model // nil: roofline
	Load  float64          // the share of the device that others use while no job of ours runs; 0: it is not known

	measured, recorded map[graph.Digest][]time.Duration // per op; they are not predicted
}

// Record takes latencies from tasks whose graphs were recorded, and reports whether any was.
func (s *Sources) Record(tasks []task.Task) bool {
	for _, t := range tasks {
		if t.Latency == nil {
			continue
		}
		if s.recorded == nil {
			s.recorded = make(map[graph.Digest][]time.Duration)
		}
		s.recorded[t.Graph.Digest()] = t.Latency
	}
	return s.recorded != nil
}

// Describe describes a device for plans. Of latencies that a model predicts it also knows what they are under a load.
func (s *Sources) Describe(d device.Device) Device {
	on := Describe(d, s.latencies(d.Facts()))
	profile := on.Profile
	on.Profile = func(g *graph.Graph) (Profile, error) {
		recorded := s.recorded[g.Digest()]
		if recorded == nil || len(d.Variants(g, 0)) > 0 {
			return profile(g)
		}
		return Profile{Latency: recorded}, nil // its script executes the ops, the device only has the memory
	}
	if s.Model != nil && s.measured == nil {
		on.Loaded = s.loaded
	}
	return on
}

// latencies are those that a graph's ops are taken to have while no other job of ours runs, and by how much they may be
// off: what p95 is above p50. The slack of the roofline is not known, that of measured ones is none: nil.
func (s *Sources) latencies(facts cost.Facts) Latencies {
	roofline := Roofline(facts)
	return func(g *graph.Graph) (latency, slack []time.Duration) {
		digest := g.Digest()
		for _, known := range [][]time.Duration{s.measured[digest], s.recorded[digest]} {
			if known != nil {
				return known, nil
			}
		}
		if s.Model == nil {
			return roofline(g)
		}
		return s.predict(g, 0)
	}
}

// predict asks the model what a graph's ops take while our other jobs use a share of the device, beside what others do
// there.
func (s *Sources) predict(g *graph.Graph, load float64) (latency, slack []time.Duration) {
	latency, slack = make([]time.Duration, len(g.Ops)), make([]time.Duration, len(g.Ops))
	for op, p := range s.Model.Predict(&s.Model.Devices[0], predictor.CallsOf(g, min(1, s.Load+load))) {
		latency[op], slack[op] = p.P50, p.P95-p.P50
	}
	return latency, slack
}

// loaded asks the model what a graph's ops take while our other jobs use a share of the device; 0: it was not trained
// under such a load.
func (s *Sources) loaded(g *graph.Graph, load float64) []time.Duration {
	latency, _ := s.predict(g, load)
	for op, c := range predictor.CallsOf(g, min(1, s.Load+load)) {
		if !s.Model.KnowsLoad(&c) {
			latency[op] = 0
		}
	}
	return latency
}

// Simulated returns a simulated device on which the ops of recorded graphs take what was recorded.
func (s *Sources) Simulated(facts cost.Facts, o sim.Options) *sim.Device {
	if s.recorded != nil {
		known := make(map[*graph.Graph][]time.Duration)
		o.Latency = func(g *graph.Graph, op graph.OpID) time.Duration {
			if _, asked := known[g]; !asked {
				known[g] = s.recorded[g.Digest()]
			}
			if latency := known[g]; latency != nil {
				return max(1, latency[op])
			}
			return facts.Roofline(g.Cost(op))
		}
	}
	return sim.New(facts, o)
}
