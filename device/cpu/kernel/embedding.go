package kernel

import (
	"fmt"
	"unsafe"

	"tensile/device/cpu/gemm"
	"tensile/device/cpu/vector"
)

// indices returns the int64 elements of an operand.
func indices[T gemm.Float](operand []T) []int64 {
	var zero T
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(operand))), len(operand)*int(unsafe.Sizeof(zero))/8)
}

// row returns an index of a table's row, which must exist.
func row(index int64, rows int) int {
	if index < 0 || index >= int64(rows) {
		panic(fmt.Sprintf("kernel: index %d is not one of the %d rows", index, rows))
	}
	return int(index)
}

// embedding: table ids -> y, a row of the table per id.
func embedding[T gemm.Float](c *Call[T]) {
	table, ids, y := c.In[0], indices(c.In[1]), c.Out[0]
	n, v := len(ids), c.InShapes[0][0]
	for r, id := range ids {
		copy(item(y, r, n), item(table, row(id, v), v))
	}
}

// embeddingDW: ids dy -> dtable, or some rows of it. Rows of the same id are added in the order of ids.
func embeddingDW[T gemm.Float](c *Call[T]) {
	ids, dy, dtable := indices(c.In[0]), c.In[1], c.Out[0]
	n, rows := len(ids), c.OutShapes[0][0]
	width := len(dtable) / rows
	c.split(rows, width, func(from, to int) { clear(dtable[from*width : to*width]) })
	c.split(width, n, func(first, end int) {
		for r, id := range ids {
			at := row(id, c.Attrs.Extent[0]) - c.Attrs.Begin
			if at < 0 || at >= rows {
				continue
			}
			to := item(dtable, at, rows)[first:end]
			vector.Add(to, to, item(dy, r, n)[first:end])
		}
	})
}

// bias: x b -> y, b added to every row.
func bias[T gemm.Float](c *Call[T]) {
	x, b, y := c.In[0], c.In[1], c.Out[0]
	n := c.InShapes[0][0]
	for r := range n {
		from, to := item(x, r, n), item(y, r, n)
		from, to = from[:len(b)], to[:len(b)]
		for i, v := range b {
			to[i] = from[i] + v
		}
	}
}
