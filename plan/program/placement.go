package program

import (
	"tensile/graph"
	"tensile/plan"
)

// Placement places every residency and every step's scratch in the arena.
type Placement struct {
	Stays   *plan.Stays
	Offsets []graph.Bytes // per residency
	Scratch []graph.Bytes // per step; 0 where it has none
	Arena   graph.Bytes   // packed height
	Align   graph.Bytes   // offsets and Arena are multiples of it
	Work    int           // steps that packing took: the same on every machine
	Load    graph.Bytes   // largest sum of aligned bytes over the slots: no layout is lower
}
