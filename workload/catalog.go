package workload

import (
	"tensile/graph"
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
	GMACs       float64     `json:"gmacs"` // of a forward pass at batch 1, in 1e9 multiply-adds
	Ops         int         `json:"ops"`
	Tensors     int         `json:"tensors"`
	VanillaAll  graph.Bytes `json:"vanilla_peak_all_bytes"`
	VanillaLive graph.Bytes `json:"vanilla_peak_live_bytes"`
}

// Catalog describes every network that has a name.
func Catalog() ([]Network, error) {
	var all []Network
	for _, name := range models.Names() {
		g, err := models.Build(name, models.Config{Batch: CatalogBatch})
		if err != nil {
			return nil, err
		}
		n := Network{Name: name, Params: g.Parameters(), Ops: len(g.Ops), Tensors: len(g.Tensors),
			GMACs: float64(models.MACs(g)) / CatalogBatch / 1e9} // each example does the same
		n.VanillaAll, n.VanillaLive = peak.Vanilla(g)
		all = append(all, n)
	}
	return all, nil
}
