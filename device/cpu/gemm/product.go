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

	// Source, of B, or of A that is not transposed, stands for what is stored, which is nowhere, or elsewhere: parts of
	// it are written where they are needed. Data and Stride are not used.
	Source Source[T]

	// Segment, of C alone, is how many columns lie together; as many others begin Jump elements further on. 0: all do.
	Segment, Jump int

	row, column int // Position in the source, or in the first segment, at which the matrix begins.
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
}

// Multiply computes the product. C must not overlap A or B.
func Multiply[T Float](e *Engine, p Product[T]) {
	p.check()
	if p.B.Source == nil && p.B.Transposed && p.C.Segment == 0 && p.M <= fewRows && p.M < p.N {
		p.turn()
	}
	if e.crew == nil || p.M*p.N*p.K < 2*leastProducts {
		multiplyBlocks(e, &p)
		return
	}
	divide(e, p)
}

const (
	// fewRows is up to how many rows of C the transposed product is computed where B is transposed: to lay out rows of
	// B as columns takes longer than to write C by columns.
	fewRows = 32
	// leastProducts is how many a thread gets at least: some ten microseconds.
	leastProducts = 1 << 19
)

// divide computes parts of the product at once, cut along its longer side by whole tiles.
func divide[T Float](e *Engine, p Product[T]) {
	w := width[T]()
	if rows, columns := count(p.M, tileRows), count(p.N, w); columns >= rows {
		e.crew.Split(columns, leastProducts/(p.M*p.K*w), func(from, to int) {
			part := p.part(0, p.M, from*w, min(to*w, p.N)-from*w)
			multiplyBlocks(e, &part)
		})
	} else {
		e.crew.Split(rows, leastProducts/(p.N*p.K*tileRows), func(from, to int) {
			part := p.part(from*tileRows, min(to*tileRows, p.M)-from*tileRows, 0, p.N)
			multiplyBlocks(e, &part)
		})
	}
}

// turn makes it the transposed product: Cᵀ = Bᵀ·Aᵀ, whose C is stored as its transpose.
func (p *Product[T]) turn() {
	p.M, p.N, p.A, p.B = p.N, p.M, p.B, p.A
	for _, m := range []*Matrix[T]{&p.A, &p.B, &p.C} {
		m.Transposed = !m.Transposed
	}
}

func (p *Product[T]) check() {
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
	if m.Segment > 0 {
		last := (columns - 1) / m.Segment
		end := last*m.Jump + (rows-1)*m.Stride + min(m.Segment, columns-last*m.Segment)
		return m.Stride >= m.Segment && len(m.Data) >= end
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
	if m.Segment > 0 {
		m.column += column
		m.Data = m.Data[m.column/m.Segment*m.Jump+row*m.Stride:]
		m.column %= m.Segment
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
