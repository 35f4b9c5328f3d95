package gemm

import (
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// A tile is what gonum gets at once: fewer than the four 64 by 64 blocks at which it starts goroutines. gonum is
// fastest, by a factor of two, when it takes dot products of long contiguous rows (A as it is, B transposed), so
// operands that lie otherwise are transposed into panels first, unless C has too few rows for that to pay. Its float32
// dot product starts at a 16-byte boundary of B's row, so rows that do not lie on one are moved to a panel as well.
const (
	tileM   = 64
	tileN   = 128  // two blocks
	tileK   = 1024 // a panel of B stays in the second-level cache
	axpyK   = 16   // where B is not packed and gonum adds multiples of its rows: few, each read to its end
	packedM = 32   // rows of C from which transposing B pays
)

// multiplyGonum divides C among the engine's threads along its longer side, by whole tiles. Every element of C is
// computed in the same way wherever it falls.
func multiplyGonum[T Float](e *Engine, p Product[T]) {
	rows, columns := count(p.M, tileM), count(p.N, tileN)
	parts := min(e.threads, max(rows, columns))
	packed := p.B.Transposed || max(p.M, p.Of) >= packedM
	if parts == 1 {
		multiplySerial(e, p, packed)
		return
	}
	var wait sync.WaitGroup
	for t := range parts {
		q := p
		if rows > columns {
			from, to := rows*t/parts*tileM, min(p.M, rows*(t+1)/parts*tileM)
			q = p.part(from, to-from, 0, p.N)
		} else {
			from, to := columns*t/parts*tileN, min(p.N, columns*(t+1)/parts*tileN)
			q = p.part(0, p.M, from, to-from)
		}
		wait.Go(func() { multiplySerial(e, q, packed) })
	}
	wait.Wait()
}

func count(n, size int) int { return (n + size - 1) / size }

// multiplySerial computes the product tile by tile on the calling goroutine.
func multiplySerial[T Float](e *Engine, p Product[T], packed bool) {
	bufs := e.takePanels()
	defer e.givePanels(bufs)
	step := axpyK
	if packed {
		step = tileK
	}
	for l := 0; l < p.K; l += step {
		for j := 0; j < p.N; j += tileN {
			n, k := min(tileN, p.N-j), min(step, p.K-l)
			b := p.B.submatrix(l, j)
			switch {
			case b.Source != nil:
				b = write(bufs, b, n, k, packed)
			case packed && !b.Transposed:
				b = pack(panel[T](bufs.b[:]), b, n, k)
			case packed && !b.aligned():
				b = move(panel[T](bufs.b[:]), b, n, k)
			}
			for i := 0; i < p.M; i += tileM {
				m := min(tileM, p.M-i)
				a := p.A.submatrix(i, l)
				if packed && a.Transposed {
					a = pack(panel[T](bufs.a[:]), a, m, k)
					a.Transposed = false
				}
				callGonum(m, n, k, a, b, p.C.submatrix(i, j), p.Add || l > 0)
			}
		}
	}
}

// callGonum hands one tile to gonum.
func callGonum[T Float](m, n, k int, a, b, c Matrix[T], add bool) {
	tA, tB, beta := blas.NoTrans, blas.NoTrans, 0.0
	if a.Transposed {
		tA = blas.Trans
	}
	if b.Transposed {
		tB = blas.Trans
	}
	if add {
		beta = 1
	}
	var g gonum.Implementation
	if single[T]() {
		g.Sgemm(tA, tB, m, n, k, 1, as32(a.Data), a.Stride, as32(b.Data), b.Stride, float32(beta), as32(c.Data),
			c.Stride)
	} else {
		g.Dgemm(tA, tB, m, n, k, 1, as64(a.Data), a.Stride, as64(b.Data), b.Stride, beta, as64(c.Data), c.Stride)
	}
}
