package task

import (
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models"
	"tensile/peak"
)

// CatalogBatch is the batch of the graphs that a catalog describes.
const CatalogBatch = 16

// Network describes a network at the size that it was made for: its training graph with Adam at CatalogBatch, and the
// arithmetic of one example.
type Network struct {
	Name        string      `json:"name"`
	Params      int64       `json:"params"`
	GMACs       float64     `json:"gmacs"` // 1e9 multiply-adds of a forward pass at batch 1.
	Ops         int         `json:"ops"`
	Tensors     int         `json:"tensors"`
	VanillaAll  graph.Bytes `json:"vanilla_peak_all_bytes"`
	VanillaLive graph.Bytes `json:"vanilla_peak_live_bytes"`

	Alone *Alone `json:"alone,omitempty"` // nil: no device was named
}

// Alone is what an iteration without a plan takes by the roofline of a device that it has for itself, without copies.
type Alone struct {
	Milliseconds float64 `json:"iteration_ms"`
	Busy         float64 `json:"busy_share"` // share of Alone that is work, which jobs compete for
}

// Catalog describes every network that has a name; on, unless it is nil, is the device that they are to run on.
func Catalog(on *cost.Facts) ([]Network, error) {
	var all []Network
	for _, name := range models.Names() {
		g, err := models.Build(name, models.Config{Batch: CatalogBatch})
		if err != nil {
			return nil, err
		}
		n := Network{Name: name, Params: g.Parameters(), Ops: len(g.Ops), Tensors: len(g.Tensors),
			GMACs: float64(models.MACs(g)) / CatalogBatch / 1e9} // each example does the same
		n.VanillaAll, n.VanillaLive = peak.Vanilla(g)
		if on != nil {
			n.Alone = aloneOn(*on, g)
		}
		all = append(all, n)
	}
	return all, nil
}

func aloneOn(f cost.Facts, g *graph.Graph) *Alone {
	sharing := f.Sharing()
	var u cost.Use
	for op := range g.Ops {
		sharing.Add(&u, f.Roofline(g.Cost(graph.OpID(op))))
	}
	return &Alone{float64(u.Launch+u.Work) / float64(time.Millisecond), u.Busy()}
}
