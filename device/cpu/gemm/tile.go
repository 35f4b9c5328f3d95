package gemm

import "unsafe"

// A tile of C is what is computed at once: its sums stay in registers while the products of a block of K are added up.
const (
	tileRows  = 6
	tileBytes = 64 // of a row: 16 of float32 or 8 of float64
)

// width is the number of columns of a tile.
func width[T Float]() int {
	var zero T
	return tileBytes / int(unsafe.Sizeof(zero))
}

// strip is rows of A and how far a row, and an element of a row, lies after that before.
type strip[T Float] struct {
	data      []T
	row, step int
}

// panel is columns, as many as a tile has, and how far a row lies after that before.
type panel[T Float] struct {
	data []T
	next int
}

// computeTiles computes tiles of C below one another, each of a number of rows: each element is the sum of k products,
// added one after the other with one rounding each, and that is added to what is there if add says so.
func computeTiles[T Float](tiles, rows, k int, a strip[T], b, c panel[T], add bool) {
	if !wide {
		plainTile(tiles*rows, k, a, b, c, add)
		return
	}
	last, more := tiles*rows-1, 0
	_, _, _ = a.data[last*a.row+(k-1)*a.step], b.data[(k-1)*b.next+width[T]()-1], c.data[last*c.next+width[T]()-1]
	if add {
		more = 1
	}
	if single[T]() {
		tiles32[rows](&as32(a.data)[0], &as32(b.data)[0], &as32(c.data)[0], tiles, k, 4*a.row, 4*a.step, 4*b.next,
			4*c.next, more)
	} else {
		tiles64[rows](&as64(a.data)[0], &as64(b.data)[0], &as64(c.data)[0], tiles, k, 8*a.row, 8*a.step, 8*b.next,
			8*c.next, more)
	}
}

// tileFunction computes tiles of some number of rows from k products each. In bytes, rows of a lie row apart, the
// factors of a product step in a and next in b after those before, rows of c line apart. Unless add is 0 sums are added
// to c.
type tileFunction[T Float] func(a, b, c *T, tiles, k, row, step, next, line, add int)

var (
	tiles32 = [tileRows + 1]tileFunction[float32]{nil, tile32x1AVX2, tile32x2AVX2, tile32x3AVX2, tile32x4AVX2,
		tile32x5AVX2, tile32x6AVX2}
	tiles64 = [tileRows + 1]tileFunction[float64]{nil, tile64x1AVX2, tile64x2AVX2, tile64x3AVX2, tile64x4AVX2,
		tile64x5AVX2, tile64x6AVX2}
)

// plainTile is the definition of computeTiles.
func plainTile[T Float](rows, k int, a strip[T], b, c panel[T], add bool) {
	var room [tileBytes]T
	sums := room[:width[T]()]
	for i := range rows {
		clear(sums)
		for l := range k {
			factor := a.data[i*a.row+l*a.step]
			for j, v := range b.data[l*b.next:][:len(sums)] {
				sums[j] = fused(factor, v, sums[j])
			}
		}
		to := c.data[i*c.next:][:len(sums)]
		for j, v := range sums {
			if add {
				v += to[j]
			}
			to[j] = v
		}
	}
}
