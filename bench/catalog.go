package bench

import (
	"fmt"
	"io"
	"strings"

	"tensile/graph"
	"tensile/internal/text"
	"tensile/models"
	"tensile/peak"
)

// CatalogBatch is the batch of the graphs whose sizes a catalog tells.
const CatalogBatch = 16

// Network is what a catalog tells of one network in its own size: the graph at CatalogBatch with Adam, the arithmetic of one
// example.
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

// WriteCatalog prints a catalog for people, a row per network.
func WriteCatalog(w io.Writer, networks []Network) error {
	rows := [][]string{{"MODEL", "PARAMETERS", "GMACS", "OPS", "TENSORS", "VANILLA ALL", "VANILLA LIVE"}}
	for _, n := range networks {
		rows = append(rows, []string{n.Name, fmt.Sprint(n.Params), fmt.Sprintf("%.3f", n.GMACs), fmt.Sprint(n.Ops), fmt.Sprint(n.Tensors),
			text.Bytes(n.VanillaAll), text.Bytes(n.VanillaLive)})
	}
	if err := text.Table(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "Of any size: %s.\n", strings.Join(models.Families(), ", "))
	return err
}
