package report

import (
	"fmt"
	"io"
	"strings"

	"tensile/internal/text"
	"tensile/models"
	"tensile/workload"
)

// WriteCatalog prints a catalog for people, a row per network.
func WriteCatalog(w io.Writer, networks []workload.Network) error {
	rows := [][]string{{"MODEL", "PARAMETERS", "GMACS", "OPS", "TENSORS", "VANILLA ALL", "VANILLA LIVE"}}
	for _, n := range networks {
		rows = append(rows, []string{n.Name, fmt.Sprint(n.Params), fmt.Sprintf("%.3f", n.GMACs), fmt.Sprint(n.Ops),
			fmt.Sprint(n.Tensors), text.Bytes(n.VanillaAll), text.Bytes(n.VanillaLive)})
	}
	if err := text.Table(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "Of any size: %s.\n", strings.Join(models.Families(), ", "))
	return err
}
