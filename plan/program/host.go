package program

import (
	"fmt"
	"slices"
	"strings"

	"tensile/graph"
	"tensile/plan"
)

// HostSlots returns the offsets in the host region of the storages that live there, by name: persistent storages,
// inputs and outputs. They take the first kept bytes, and lie at the same places in all graphs that Match pairs. Other
// storages have none: -1.
func HostSlots(g *graph.Graph) (slots []graph.Bytes, kept graph.Bytes) {
	slots = slices.Repeat([]graph.Bytes{-1}, len(g.Storages))
	for _, s := range onHost(g) {
		slots[s.ID] = kept
		kept += HostBytes(s.Bytes)
	}
	return slots, kept
}

// SlotsOf returns the offsets in the host region under a plan, and the region's size: those of HostSlots, and behind
// them, in the order of their numbers, the slots of the other storages that the plan copies out.
func SlotsOf(g *graph.Graph, p *plan.Plan) (slots []graph.Bytes, size graph.Bytes) {
	slots, size = HostSlots(g)
	spilled := make([]bool, len(g.Storages))
	for _, m := range p.Moves {
		if s := m.Storage; m.Kind == plan.Out && s >= 0 && int(s) < len(slots) && slots[s] < 0 {
			spilled[s] = true
		}
	}
	for s := range spilled {
		if spilled[s] {
			slots[s] = size
			size += HostBytes(g.Storages[s].Bytes)
		}
	}
	return slots, size
}

// HostBytes is what a slot of so many bytes takes of the host: whole pages.
func HostBytes(b graph.Bytes) graph.Bytes {
	const page = 4096
	return (b + page - 1) / page * page
}

// SnapshotSlots returns the offset of every persistent storage in the snapshot region, -1 of other storages, and the
// region's size. They are the same in all graphs that Match pairs.
func SnapshotSlots(g *graph.Graph) (slots []graph.Bytes, size graph.Bytes) {
	const align = 256
	slots = slices.Repeat([]graph.Bytes{-1}, len(g.Storages))
	for _, s := range onHost(g) {
		if s.Role.Persistent() {
			slots[s.ID] = size
			size += (s.Bytes + align - 1) / align * align
		}
	}
	return slots, size
}

func livesOnHost(s *graph.Storage) bool { return s.Role.FromHost() || s.Role == graph.Output }

// onHost returns the storages that live on the host, by name.
func onHost(g *graph.Graph) []*graph.Storage {
	var all []*graph.Storage
	for i := range g.Storages {
		if s := &g.Storages[i]; livesOnHost(s) {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *graph.Storage) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Match returns, for every storage of g, the storage of a job's graph that is the same one, or -1 if it has none. It
// fails unless the job can change from one graph to the other: both have the same persistent storages, inputs and
// outputs, which are known by their names, and each has one role, size, element type and, as an input, meaning. Ops,
// their order, and what they make within an iteration may differ. That both train to the same result is for the one to
// know who made g.
func Match(job, g *graph.Graph) ([]graph.StorageID, error) {
	ids := slices.Repeat([]graph.StorageID{-1}, len(g.Storages))
	have, want := onHost(g), onHost(job)
	first, wanted := firstTensors(g), firstTensors(job)
	for len(have) > 0 || len(want) > 0 {
		switch {
		case len(have) == 0 || len(want) > 0 && want[0].Name < have[0].Name:
			return nil, fmt.Errorf("graph %q has no %s %s, the job's has one", g.Name, want[0].Role, want[0].Name)
		case len(want) == 0 || have[0].Name < want[0].Name:
			return nil, fmt.Errorf("graph %q has %s %s, the job's has none", g.Name, have[0].Role, have[0].Name)
		case len(have) > 1 && have[1].Name == have[0].Name:
			return nil, fmt.Errorf("graph %q has two storages %s on the host, whose names must differ", g.Name,
				have[0].Name)
		}
		if got, is := describe(have[0], first[have[0].ID]), describe(want[0], wanted[want[0].ID]); got != is {
			return nil, fmt.Errorf("%s is %s in graph %q and %s in the job's", want[0].Name, got, g.Name, is)
		}
		ids[have[0].ID] = want[0].ID
		have, want = have[1:], want[1:]
	}
	return ids, nil
}

// firstTensors returns the first tensor of each storage, nil where there is none.
func firstTensors(g *graph.Graph) []*graph.Tensor {
	first := make([]*graph.Tensor, len(g.Storages))
	for i := range g.Tensors {
		if t := &g.Tensors[i]; first[t.Storage] == nil {
			first[t.Storage] = t
		}
	}
	return first
}

// describe says what must agree of a storage that lives on the host, whose first tensor is t.
func describe(s *graph.Storage, t *graph.Tensor) string {
	text := fmt.Sprintf("%s of %d bytes", s.Role, s.Bytes)
	if t != nil {
		text += fmt.Sprintf(" of %s", t.DType)
	}
	if s.Role == graph.Input {
		text += fmt.Sprintf(" with %q", string(s.Holds))
	}
	return text
}
