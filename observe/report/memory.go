package report

import (
	"tensile/graph"
	"tensile/scheduler/planner"
)

// Memory is what a plan saves, of one job or of all together.
type Memory struct {
	VanillaAll  graph.Bytes `json:"vanilla_peak_all_bytes"`
	VanillaLive graph.Bytes `json:"vanilla_peak_live_bytes"`
	SlotPeak    graph.Bytes `json:"slot_peak_bytes"`
	Arena       graph.Bytes `json:"arena_bytes"`
	WorkingSet  graph.Bytes `json:"working_set_bound_bytes"`
	ZeroStall   graph.Bytes `json:"zero_stall_bound_bytes"`
	MSRAll      float64     `json:"msr_all"`
	MSRLive     float64     `json:"msr_live"`
}

// Add adds the bytes of another job and works out the savings of both (TENSILE, V-A).
func (m *Memory) Add(n Memory) {
	m.VanillaAll += n.VanillaAll
	m.VanillaLive += n.VanillaLive
	m.SlotPeak += n.SlotPeak
	m.Arena += n.Arena
	m.WorkingSet += n.WorkingSet
	m.ZeroStall += n.ZeroStall
	saving := func(of graph.Bytes) float64 { return float64(of-m.SlotPeak) / float64(max(of, 1)) }
	m.MSRAll, m.MSRLive = saving(m.VanillaAll), saving(m.VanillaLive)
}

// limit caps the bytes of all jobs at what they had together.
func (m *Memory) limit(together graph.Bytes) {
	m.Arena = min(m.Arena, together)
	m.SlotPeak = min(m.SlotPeak, m.Arena)
	m.Add(Memory{})
}

// MemoryOf returns what the plan of each job saves against its vanilla peaks.
func MemoryOf(p *planner.Planned, vanilla planner.Peaks) []Memory {
	saved := make([]Memory, len(p.Jobs))
	for i, j := range p.Jobs {
		saved[i].Add(Memory{VanillaAll: vanilla.All[i], VanillaLive: vanilla.Live[i], SlotPeak: j.Footprint.Peak,
			Arena: j.Layout.Arena, WorkingSet: j.Bounds.WorkingSet, ZeroStall: j.Bounds.ZeroStall})
	}
	return saved
}
