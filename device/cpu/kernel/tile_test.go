package kernel

import (
	"fmt"
	"testing"

	"tensile/device/cpu/gemm"
	"tensile/graph"
	"tensile/internal/long"
)

// tiled are gradients of more than graph.TileBytes: of a linear layer from i to o for n rows, of a table of o rows of i
// for n ids.
var tiled = []struct{ n, i, o int }{
	{5, 2049, 2103},    // a tile of 2032 rows, the rest has 71
	{3, 130_001, 37},   // the rest has fewer rows
	{17, 1_000_003, 6}, // tiles of 4 rows
}

// checkTiles compares the bits of a gradient with those of its tiles, each made by itself.
func checkTiles[T gemm.Float](t *testing.T, e *gemm.Engine, kind graph.Kind, attrs graph.Attrs, in ...tensor[T]) {
	t.Helper()
	whole := apply(t, job{engine: e}, kind, attrs, in...)[0]
	rows, tile := whole.shape[0], whole.shape.TileRows()
	if tile >= rows {
		t.Fatalf("%v has one tile", whole.shape)
	}
	for begin := 0; begin < rows; begin += tile {
		attrs.Begin, attrs.Length = begin, min(tile, rows-begin)
		got := apply(t, job{engine: e}, kind, attrs, in...)[0].data
		if want := whole.data[begin*whole.shape[1]:][:len(got)]; !sameBits(got, want) {
			t.Errorf("rows %d to %d of %v have other bits by themselves", begin, begin+attrs.Length, whole.shape)
		}
	}
	attrs.Begin, attrs.Length = tile, rows-tile // several tiles at once
	if got := apply(t, job{engine: e}, kind, attrs, in...)[0].data; !sameBits(got, whole.data[tile*whole.shape[1]:]) {
		t.Errorf("rows from %d on of %v have other bits by themselves", tile, whole.shape)
	}
}

func testTiles[T gemm.Float](t *testing.T, e *gemm.Engine) {
	for _, s := range tiled {
		rng := randoms(uint64(s.n))
		x, dy := normal[T](rng, s.n, s.i), normal[T](rng, s.n, s.o)
		checkTiles(t, e, graph.LinearDW, graph.Attrs{}, x, dy)
		checkTiles(t, e, graph.EmbeddingDW, graph.Attrs{Extent: [2]int{s.o}}, randomIndices[T](rng, s.n, s.o),
			normal[T](rng, s.n, s.i))
	}
}

// A tile of a gradient has the bits that it has in the whole.
func TestTiles(t *testing.T) {
	for _, threads := range long.Or([]int{2}, []int{1, 2, 3}) {
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
			e := engine(t, threads)
			t.Run("float32", func(t *testing.T) { testTiles[float32](t, e) })
			if threads == 2 {
				t.Run("float64", func(t *testing.T) { testTiles[float64](t, e) })
			}
		})
	}
}
