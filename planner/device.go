package planner

import (
	"time"

	"tensile/cost"
	"tensile/device"
	"tensile/graph"
)

// Device is what plans depend on of a device, beside the profiles of graphs.
type Device struct {
	Identity string      `json:"device"`      // devices of equal identity execute the same plans
	Align    graph.Bytes `json:"align_bytes"` // of offsets
	Out      cost.Link   `json:"out"`         // to the host; jobs share it
	In       cost.Link   `json:"in"`          // from the host
}

// Profile is what each op of a graph takes on a device, before anything was measured. Slices have an entry per op.
type Profile struct {
	Latency []time.Duration `json:"latency_ns"`
	Slack   []time.Duration `json:"slack_ns"` // by how much the latency may be off; may be nil
	Scratch []graph.Bytes   `json:"scratch"`  // of the device's variant
	Variant []string        `json:"variant"`
}

// Profiler returns what a graph's ops take, or an error if the device cannot execute one of them.
type Profiler func(*graph.Graph) (Profile, error)

// Latencies predicts how long a graph's ops take, and by how much each prediction may be off; slack may be nil.
type Latencies func(*graph.Graph) (latency, slack []time.Duration)

// Roofline predicts latencies by the roofline model. It knows no slack.
func Roofline(facts cost.Facts) Latencies {
	return func(g *graph.Graph) (latency, slack []time.Duration) {
		latency = make([]time.Duration, len(g.Ops))
		for op := range latency {
			latency[op] = facts.Roofline(g.Cost(graph.OpID(op)))
		}
		return latency, nil
	}
}

// Of describes a device.
func Of(d device.Device) Device {
	facts := d.Facts()
	return Device{Identity: d.Identity(), Align: d.Align(), Out: facts.Out, In: facts.In}
}

// Profiles returns what makes profiles for a device with some latencies. It can be asked until the device is closed.
func Profiles(d device.Device, latencies Latencies) Profiler {
	return func(g *graph.Graph) (Profile, error) {
		if err := device.Supports(d, g); err != nil {
			return Profile{}, err
		}
		var p Profile
		p.Latency, p.Slack = latencies(g)
		for op := range g.Ops {
			variant := d.Variants(g, graph.OpID(op))[0]
			p.Scratch, p.Variant = append(p.Scratch, variant.Scratch), append(p.Variant, variant.Name)
		}
		return p, nil
	}
}
