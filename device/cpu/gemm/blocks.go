package gemm

import "unsafe"

// A product is computed in blocks. blockK products of each element of C are added up before the sum is added to C,
// which is part of what a product is; the other sizes say what stays in which cache.
const (
	blockK = 256
	blockM = 96   // rows of A, which stay in the second-level cache
	blockN = 1024 // columns of B, whose panels stay in the third

	fewColumns = 64 // of C, for which rows of A are read too seldom to be laid out

	// stride lies between rows of A that are laid out: more than they have, so that they use all sets of a cache.
	stride = blockK + 16
)

// panelSize lies between panels of B that are laid out, for the same reason.
func panelSize[T Float]() int { return blockK*width[T]() + 16 }

// room is what a goroutine needs to lay out operands: 2.3 MiB, of which float32 uses half.
type room struct {
	a    [blockM * stride]float64
	b    [blockN / 8 * (blockK*8 + 16)]float64
	c    [blockM * 8]float64
	rows [8 * blockK]float64
}

// elementsOf shows room as elements of T.
func elementsOf[T Float](room []float64) []T {
	var zero T
	n := len(room) * int(unsafe.Sizeof(room[0])/unsafe.Sizeof(zero))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(room))), n)
}

// multiplyBlocks computes the product, whose C may be stored as its transpose, on the calling goroutine.
func multiplyBlocks[T Float](e *Engine, p *Product[T]) {
	r := e.takeRoom()
	defer e.giveRoom(r)
	w := width[T]()
	bRoom, aRoom := elementsOf[T](r.b[:]), elementsOf[T](r.a[:])
	for j := 0; j < p.N; j += blockN {
		n := min(blockN, p.N-j)
		strips, depth := count(p.M, blockM), count(p.K, blockK)
		for step := range strips * depth {
			i, l := step%strips*blockM, step/strips*blockK
			if n <= fewColumns { // B is small: rows of A are read to their ends
				i, l = step/depth*blockM, step%depth*blockK
			}
			m, k := min(blockM, p.M-i), min(blockK, p.K-l)
			if i == 0 || n <= fewColumns {
				layPanels(bRoom, &p.B, l, j, k, n, elementsOf[T](r.rows[:]))
			}
			a := layStrip(aRoom, &p.A, i, l, m, k, n)
			for q := 0; q < n; q += w {
				b := panel[T]{bRoom[q/w*panelSize[T]():], w}
				placeTiles(p.C.submatrix(i, j+q), m, min(w, n-q), k, a, b, p.Add || l > 0, elementsOf[T](r.c[:]))
			}
		}
	}
}

func count(n, size int) int { return (n + size - 1) / size }

// placeTiles computes m rows of C and as many columns as a tile has, or those that C has, in tiles of as many rows or
// one less. What is not stored as a tile is computed beside it.
func placeTiles[T Float](c Matrix[T], m, columns, k int, a strip[T], b panel[T], add bool, beside []T) {
	w, tiles := width[T](), count(m, tileRows)
	rows := count(m, tiles)
	less := tiles*rows - m
	whole := columns == w && !c.Transposed && (c.Segment == 0 || c.column+w <= c.Segment)
	to := panel[T]{beside, w}
	if whole {
		to = panel[T]{c.Data[c.column:], c.Stride}
	}
	computeTiles(tiles-less, rows, k, a, b, to, add && whole)
	done := (tiles - less) * rows
	if less > 0 && rows > 1 {
		a.data = a.data[done*a.row:]
		computeTiles(less, rows-1, k, a, b, panel[T]{to.data[done*to.next:], to.next}, add && whole)
	}
	if whole {
		return
	}
	line, step := c.Stride, 1
	if c.Transposed {
		line, step = 1, c.Stride
	}
	for done := 0; done < columns; {
		n, first := columns-done, c.column+done*step
		if c.Segment > 0 {
			n = min(n, c.Segment-(c.column+done)%c.Segment)
			first = (c.column+done)/c.Segment*c.Jump + (c.column+done)%c.Segment
		}
		for r := range m {
			from, at := beside[r*w+done:][:n], first+r*line
			for _, v := range from {
				if add {
					v += c.Data[at]
				}
				c.Data[at] = v
				at += step
			}
		}
		done += n
	}
}

// layStrip returns m rows and k columns of A from (i, l) on, laid out where they are read often.
func layStrip[T Float](room []T, a *Matrix[T], i, l, m, k, columns int) strip[T] {
	if a.Source != nil {
		a.Source.Write(room, stride, a.row+i, m, a.column+l, k)
		return strip[T]{room, stride, 1}
	}
	if a.Transposed {
		from := a.Data[l*a.Stride+i:]
		if columns <= fewColumns {
			return strip[T]{from, 1, a.Stride}
		}
		for l := range k {
			copy(room[l*blockM:][:m], from[l*a.Stride:])
		}
		return strip[T]{room, 1, blockM}
	}
	from := a.Data[i*a.Stride+l:]
	if columns <= fewColumns {
		return strip[T]{from, a.Stride, 1}
	}
	for i := range m {
		copy(room[i*stride:][:k], from[i*a.Stride:])
	}
	return strip[T]{room, stride, 1}
}

// layPanels writes k rows and n columns of B from (l, j) on, panel after panel.
func layPanels[T Float](to []T, b *Matrix[T], l, j, k, n int, rows []T) {
	w := width[T]()
	if b.Source == nil && !b.Transposed {
		layRows(to, b.Data[l*b.Stride+j:], b.Stride, n, k)
		return
	}
	for q := 0; q < n; q += w {
		to, columns := to[q/w*panelSize[T]():][:k*w], min(w, n-q)
		switch {
		case b.Source == nil:
			layTurned(to, b.Data[(j+q)*b.Stride+l:], b.Stride, columns, k)
		case b.Transposed:
			b.Source.Write(rows, blockK, b.row+j+q, columns, b.column+l, k)
			layTurned(to, rows, blockK, columns, k)
		default:
			if columns < w {
				clear(to)
			}
			b.Source.Write(to, w, b.row+l, k, b.column+j+q, columns)
		}
	}
}

// layRows writes k rows of n elements as panels.
func layRows[T Float](to, from []T, stride, n, k int) {
	w, next := width[T](), panelSize[T]()
	full := n / w
	if wide && full > 0 {
		_, _ = to[(full-1)*next+k*w-1], from[(k-1)*stride+full*w-1]
		size := tileBytes / w
		layAVX2((*byte)(unsafe.Pointer(&to[0])), (*byte)(unsafe.Pointer(&from[0])), full, k, size*stride, size*next)
	} else {
		for q := range full {
			for l := range k {
				copy(to[q*next+l*w:][:w], from[l*stride+q*w:])
			}
		}
	}
	if full*w == n {
		return
	}
	for l := range k {
		last := to[full*next+l*w:][:w]
		clear(last[copy(last, from[l*stride:][full*w:n]):])
	}
}

// layTurned writes rows of k elements as columns.
func layTurned[T Float](to, from []T, stride, columns, k int) {
	w, done := width[T](), 0
	if columns == 16 && wide && single[T]() && k >= 4 {
		done = k &^ 3
		_ = from[15*stride+k-1]
		turnAVX2(&as32(to)[0], &as32(from)[0], done, 4*stride)
	}
	if columns < w {
		clear(to)
	}
	for j := range columns {
		for l := done; l < k; l++ {
			to[l*w+j] = from[j*stride+l]
		}
	}
}
