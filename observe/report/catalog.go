package report

import (
	"fmt"
	"io"
	"strings"

	"tensile/graph/text"
	"tensile/models"
	"tensile/models/task"
)

// WriteCatalog prints a catalog for people, a row per network. What networks take on a device stands there if it is
// known of the first of them.
func WriteCatalog(w io.Writer, networks []task.Network) error {
	rows := [][]string{{"MODEL", "PARAMETERS", "GMACS", "OPS", "TENSORS", "VANILLA ALL", "VANILLA LIVE"}}
	device := len(networks) > 0 && networks[0].Alone != nil
	if device {
		rows[0] = append(rows[0], "ITERATION MS", "BUSY")
	}
	for _, n := range networks {
		row := []string{n.Name, fmt.Sprint(n.Params), fmt.Sprintf("%.3f", n.GMACs), fmt.Sprint(n.Ops),
			fmt.Sprint(n.Tensors), text.Bytes(n.VanillaAll), text.Bytes(n.VanillaLive)}
		if device {
			row = append(row, fmt.Sprintf("%.1f", n.Alone.Milliseconds), fmt.Sprintf("%.2f", n.Alone.Busy))
		}
		rows = append(rows, row)
	}
	if err := text.Table(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "Of any size: %s.\n", strings.Join(models.Families(), ", "))
	return err
}
