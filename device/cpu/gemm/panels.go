package gemm

import "unsafe"

// panelStride keeps a panel's rows off the same cache sets and on 64-byte boundaries.
const panelStride = tileK + 16

// panels are one goroutine's room for operands in the order that gonum is fast with: 1.5 MiB, of which float32 uses
// half. An engine keeps as many as were ever in use at once.
type panels struct {
	a    [tileM * panelStride]float64
	b    [tileN * panelStride]float64
	rows [packedRows * tileN]float64 // of a source, before they are packed
}

// packedRows is the number of rows that pack takes at once.
const packedRows = 8

func (e *Engine) takePanels() *panels {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.spare); n > 0 {
		p := e.spare[n-1]
		e.spare = e.spare[:n-1]
		return p
	}
	return new(panels)
}

func (e *Engine) givePanels(p *panels) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spare = append(e.spare, p)
}

// panel shows a panel's room as elements of T.
func panel[T Float](room []float64) []T {
	var zero T
	n := len(room) * int(unsafe.Sizeof(room[0])/unsafe.Sizeof(zero))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(room))), n)
}

// pack stores the transpose of a stored k by n matrix: n rows of k elements. The result is marked as transposed, which
// is what it is for B.
func pack[T Float](room []T, from Matrix[T], n, k int) Matrix[T] {
	l := 0
	for ; l+8 <= k; l += 8 {
		packEight(room[l:], from.Data[l*from.Stride:], from.Stride, n)
	}
	for ; l < k; l++ {
		row := from.Data[l*from.Stride:][:n]
		for j, v := range row {
			room[j*panelStride+l] = v
		}
	}
	return Matrix[T]{Data: room, Stride: panelStride, Transposed: true}
}

// write has the source of B write a tile of it that enters as k by n, in the order in which gonum would be handed a
// stored one.
func write[T Float](bufs *panels, b Matrix[T], n, k int, packed bool) Matrix[T] {
	room := panel[T](bufs.b[:])
	switch {
	case b.Transposed:
		b.Source.Write(room, panelStride, b.row, n, b.column, k)
		return Matrix[T]{Data: room, Stride: panelStride, Transposed: true}
	case !packed:
		b.Source.Write(room, tileN, b.row, k, b.column, n)
		return Matrix[T]{Data: room, Stride: tileN}
	}
	rows := Matrix[T]{Data: panel[T](bufs.rows[:]), Stride: tileN}
	for l := 0; l < k; l += packedRows {
		count := min(packedRows, k-l)
		b.Source.Write(rows.Data, tileN, b.row+l, count, b.column, n)
		pack(room[l:], rows, n, count)
	}
	return Matrix[T]{Data: room, Stride: panelStride, Transposed: true}
}

// move copies n stored rows of k elements to where they are aligned.
func move[T Float](room []T, from Matrix[T], n, k int) Matrix[T] {
	for j := range n {
		copy(room[j*panelStride:][:k], from.Data[j*from.Stride:])
	}
	return Matrix[T]{Data: room, Stride: panelStride, Transposed: true}
}

// aligned reports whether every stored row starts at a 16-byte boundary, or it does not matter.
func (m Matrix[T]) aligned() bool {
	return !single[T]() || uintptr(unsafe.Pointer(&m.Data[0]))%16 == 0 && m.Stride%4 == 0
}

// packEight stores eight rows of n elements as eight columns.
func packEight[T Float](room, rows []T, stride, n int) {
	r0, r1, r2, r3 := rows[:n], rows[stride:][:n], rows[2*stride:][:n], rows[3*stride:][:n]
	r4, r5, r6, r7 := rows[4*stride:][:n], rows[5*stride:][:n], rows[6*stride:][:n], rows[7*stride:][:n]
	for j := range r0 {
		d := room[j*panelStride:][:8]
		d[0], d[1], d[2], d[3] = r0[j], r1[j], r2[j], r3[j]
		d[4], d[5], d[6], d[7] = r4[j], r5[j], r6[j], r7[j]
	}
}
