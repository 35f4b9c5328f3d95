package gemm

import (
	"fmt"
	"unsafe"
)

// Float is the element type of matrices.
type Float interface{ ~float32 | ~float64 }

// Matrix is a dense matrix stored by rows that start Stride elements apart.
type Matrix[T Float] struct {
	Data       []T
	Stride     int
	Transposed bool // stored as the transpose of what enters the product

	// Source, of B alone, stands for what is stored, which is then nowhere: it is written where it is needed, tile by
	// tile. Data and Stride are not used. Only an engine that Parts takes it.
	Source      Source[T]
	row, column int // Position in the source at which the matrix begins.
}

// Source writes rows by columns elements of a stored matrix, from a row and a column on, to where rows start stride
// elements apart. Several goroutines may ask at once.
type Source[T Float] interface {
	Write(to []T, stride, row, rows, column, columns int)
}

// Product is C = A·B, or C += A·B with Add, where A enters as M by K, B as K by N, and C is M by N, stored as it is.
type Product[T Float] struct {
	M, N, K int
	A, B, C Matrix[T]
	Add     bool

	// Of is the M of a larger product of which this computes some rows, to the same bits if the engine Parts; 0: M.
	Of int
}

// Multiply computes the product. C must not overlap A or B.
func Multiply[T Float](e *Engine, p Product[T]) {
	p.check(e)
	if e.blas != nil {
		multiplyOpenBLAS(e.blas, e.threads, &p)
		return
	}
	multiplyGonum(e, p)
}

func (p *Product[T]) check(e *Engine) {
	if (p.B.Source != nil || p.Of > 0) && !e.Parts() {
		panic("gemm: " + e.name + " multiplies whole matrices that are stored")
	}
	if p.M < 1 || p.N < 1 || p.K < 1 || p.C.Transposed ||
		!p.A.holds(p.M, p.K) || !p.B.holds(p.K, p.N) || !p.C.holds(p.M, p.N) {
		panic(fmt.Sprintf("gemm: %dx%dx%d does not fit A %v, B %v, C %v", p.M, p.N, p.K, p.A, p.B, p.C))
	}
}

// holds reports whether a matrix that enters as rows by columns lies within the data.
func (m Matrix[T]) holds(rows, columns int) bool {
	if m.Source != nil {
		return true
	}
	if m.Transposed {
		rows, columns = columns, rows
	}
	return m.Stride >= columns && len(m.Data) >= (rows-1)*m.Stride+columns
}

func (m Matrix[T]) String() string {
	return fmt.Sprintf("(%d elements, stride %d, transposed %v)", len(m.Data), m.Stride, m.Transposed)
}

// submatrix returns the part of the matrix that starts at the given place of what enters the product.
func (m Matrix[T]) submatrix(row, column int) Matrix[T] {
	if m.Transposed {
		row, column = column, row
	}
	if m.Source != nil {
		m.row, m.column = m.row+row, m.column+column
		return m
	}
	m.Data = m.Data[row*m.Stride+column:]
	return m
}

// part returns the product's rows [i, i+m) and columns [j, j+n).
func (p Product[T]) part(i, m, j, n int) Product[T] {
	p.M, p.A = m, p.A.submatrix(i, 0)
	p.N, p.B = n, p.B.submatrix(0, j)
	p.C = p.C.submatrix(i, j)
	return p
}

// single reports whether T is a float32, else it is a float64.
func single[T Float]() bool {
	var zero T
	return unsafe.Sizeof(zero) == 4
}

// as32 and as64 show the same elements under their type's plain name.
func as32[T Float](s []T) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

func as64[T Float](s []T) []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}
