package planner

import (
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan"
	"tensile/scheduler"
)

// Device is all that plans depend on of a device.
type Device struct {
	// Identity is equal for devices that execute the same plans.
	Identity string
	// Align is what offsets are multiples of, in bytes.
	Align graph.Bytes
	// Out and In are the links to the host and back, which jobs share.
	Out, In cost.Link
	// Sharing is how ops slow each other down.
	Sharing cost.Sharing
	// Gates says that jobs share memory by gates. Requests are then for jobs that need the device one at a time: with
	// latencies of a job alone and the whole link. Where two use the device at once, both compute and link are shared,
	// so that a copy still takes as long as the same ops; only launches, which do not compete, are then shorter for it.
	Gates bool
	// Turns says that jobs take turns on the device, from Home to Home. Requests are then as with Gates.
	Turns bool
	// Page is the size of the pages in which the device backs arenas, in bytes; 0: it backs whole ones only.
	Page graph.Bytes

	// Profile returns what a graph's ops take, or an error if the device cannot execute one of them.
	Profile func(*graph.Graph) (Profile, error)

	// Loaded predicts what a graph's ops take while our other jobs use a share of the device, 0 to 1. An op of which
	// that is not known has 0: it is by Sharing, as all are where Loaded is nil.
	Loaded func(g *graph.Graph, load float64) []time.Duration
}

// Unshared returns the device for jobs that have an arena each.
func (d Device) Unshared() Device {
	d.Gates, d.Turns = false, false
	return d
}

// Profile is what each op of a graph takes on a device that no other job of ours uses, before anything was measured.
// Slices have an entry per op.
type Profile struct {
	Latency  []time.Duration       // the latency of each op's first variant
	Slack    []time.Duration       // by how much the latency may be off; may be nil
	Variants [][]scheduler.Variant // that the device has, the default one first; nil: one each, without scratch

	// Signatures are those of the ops in their first variants, by which latencies that were measured are found again;
	// nil: none are.
	Signatures []graph.Signature
}

// Latencies predicts how long a graph's ops take while no other job of ours runs, and by how much each prediction may
// be off; slack may be nil.
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

// Describe returns the Device of a device. It keeps the device: profiles can be asked for until that is closed.
func Describe(d device.Device, latencies Latencies) Device {
	facts := d.Facts()
	var page graph.Bytes
	if pager, ok := d.(device.Pager); ok {
		page = pager.Page()
	}
	return Device{Page: page, Identity: d.Identity(), Align: d.Align(), Out: facts.Out, In: facts.In,
		Sharing: facts.Sharing(),
		Profile: func(g *graph.Graph) (Profile, error) {
			if err := device.Supports(d, g); err != nil {
				return Profile{}, err
			}
			var p Profile
			p.Latency, p.Slack = latencies(g)
			for op := range g.Ops {
				if g.Ops[op].Kind == graph.AllReduce { // nobody measures or learns it: see executor.Report
					p.Latency[op] = facts.Roofline(g.Cost(graph.OpID(op)))
					if p.Slack != nil {
						p.Slack[op] = 0
					}
				}
				all := variants(d.Variants(g, graph.OpID(op)))
				p.Variants = append(p.Variants, all)
				p.Signatures = append(p.Signatures, g.Signature(graph.OpID(op), all[0].Name))
			}
			return p, nil
		}}
}

// variants are the variants of an op as the scheduler takes them: those that have the bits of the first, so that a
// plan changes no result.
func variants(of []device.Variant) []scheduler.Variant {
	all := make([]scheduler.Variant, 0, len(of))
	for _, v := range of {
		if v.Bits == of[0].Bits {
			all = append(all, scheduler.Variant{Name: v.Name, Scratch: v.Scratch, Share: v.Share})
		}
	}
	return all
}

// Variant returns the variant of an op that a plan names; the first one, which is like every other, where the profile
// knows of none.
func (p Profile) Variant(op graph.OpID, name string) scheduler.Variant {
	if p.Variants != nil {
		for _, v := range p.Variants[op] {
			if v.Name == name {
				return v
			}
		}
	}
	return scheduler.Variant{}
}

// FirstVariantTime returns what a step of a plan would have taken in the first variant of its op, which latencies are
// of.
func (p Profile) FirstVariantTime(s plan.Step, took time.Duration) time.Duration {
	return p.Variant(s.Op, s.Variant).FirstTime(took)
}
