package models

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tensile/graph"
)

// TestNASNetCells compares which cells each cell of NASNet-A reads with tables written by hand from Keras'
// keras.applications.nasnet: a cell reads the two before it; the first cell after a reduction reads the reduction and,
// of what the reduction read, the newer in NASNetMobile (skip_reduction=False) and the older in NASNetLarge
// (skip_reduction=True). Both have the same shape, so no size tells one from the other.
func TestNASNetCells(t *testing.T) {
	tests := []struct {
		model string
		want  string // a cell, then the cells that it reads
	}{
		{"nasnet-mobile", `
			stem1: conv0
			stem2: conv0 stem1
			row1.cell1: stem1 stem2
			row1.cell2: stem2 row1.cell1
			row1.cell3: row1.cell1 row1.cell2
			row1.cell4: row1.cell2 row1.cell3
			reduce1: row1.cell3 row1.cell4
			row2.cell1: row1.cell4 reduce1
			row2.cell2: reduce1 row2.cell1
			row2.cell3: row2.cell1 row2.cell2
			row2.cell4: row2.cell2 row2.cell3
			reduce2: row2.cell3 row2.cell4
			row3.cell1: row2.cell4 reduce2
			row3.cell2: reduce2 row3.cell1
			row3.cell3: row3.cell1 row3.cell2
			row3.cell4: row3.cell2 row3.cell3
			pool: row3.cell4
			fc: pool
			loss: fc`},
		{"nasnet-large", `
			stem1: conv0
			stem2: conv0 stem1
			row1.cell1: stem1 stem2
			row1.cell2: stem2 row1.cell1
			row1.cell3: row1.cell1 row1.cell2
			row1.cell4: row1.cell2 row1.cell3
			row1.cell5: row1.cell3 row1.cell4
			row1.cell6: row1.cell4 row1.cell5
			reduce1: row1.cell5 row1.cell6
			row2.cell1: row1.cell5 reduce1
			row2.cell2: reduce1 row2.cell1
			row2.cell3: row2.cell1 row2.cell2
			row2.cell4: row2.cell2 row2.cell3
			row2.cell5: row2.cell3 row2.cell4
			row2.cell6: row2.cell4 row2.cell5
			reduce2: row2.cell5 row2.cell6
			row3.cell1: row2.cell5 reduce2
			row3.cell2: reduce2 row3.cell1
			row3.cell3: row3.cell1 row3.cell2
			row3.cell4: row3.cell2 row3.cell3
			row3.cell5: row3.cell3 row3.cell4
			row3.cell6: row3.cell4 row3.cell5
			pool: row3.cell6
			fc: pool
			loss: fc`},
	}
	for _, test := range tests {
		want := strings.Fields(test.want)
		if got := strings.Fields(cells(build(t, test.model, Config{Batch: 1}))); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s", test.model, cells(build(t, test.model, Config{Batch: 1})))
		}
	}
}

// cells prints, for each layer of a graph's forward pass, which other layers it reads, in their order.
func cells(g *graph.Graph) string {
	maker := make(map[graph.StorageID]string)
	reads := make(map[string][]string)
	var layers []string
	for _, op := range g.Ops {
		if op.Phase != graph.Forward {
			continue
		}
		if !slices.Contains(layers, op.Layer) {
			layers = append(layers, op.Layer)
		}
		for _, in := range op.Inputs {
			from, made := maker[g.Tensors[in].Storage]
			if made && from != op.Layer && !slices.Contains(reads[op.Layer], from) {
				reads[op.Layer] = append(reads[op.Layer], from)
			}
		}
		for _, out := range op.Outputs {
			maker[g.Tensors[out].Storage] = op.Layer
		}
	}
	var text strings.Builder
	for _, layer := range layers {
		from := reads[layer]
		slices.SortFunc(from, func(a, b string) int { return slices.Index(layers, a) - slices.Index(layers, b) })
		if len(from) > 0 {
			fmt.Fprintf(&text, "%s: %s\n", layer, strings.Join(from, " "))
		}
	}
	return text.String()
}
