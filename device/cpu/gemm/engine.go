package gemm

import (
	"fmt"
	"strings"
	"sync"
)

// Options say which engine [Open] takes. The zero value is the recommended setting.
type Options struct {
	NoOpenBLAS bool // take gonum even where OpenBLAS is installed: slower, but the same bits with any thread count
}

// Engine computes products. It may be used by several goroutines at once.
type Engine struct {
	name    string
	threads int
	blas    *openBLAS // nil: gonum

	mu    sync.Mutex
	spare []*panels // Unused panels for gonum.
}

// Open returns an engine whose products use the given number of threads: OpenBLAS if its library can be loaded, else
// gonum. The only error is a thread count below 1.
func Open(threads int, o Options) (*Engine, error) {
	if threads < 1 {
		return nil, fmt.Errorf("open BLAS: %d threads asked for, want 1 or more", threads)
	}
	e := &Engine{name: "gonum", threads: threads}
	if !o.NoOpenBLAS {
		if e.blas = loadOpenBLAS(); e.blas != nil {
			e.name = e.blas.name
		}
	}
	return e, nil
}

// Name is the library that serves, with its version where it tells: "openblas 0.3.21" or "gonum".
func (e *Engine) Name() string { return e.name }

// Identity is the name with what else decides the bits of a product, but for the threads: "openblas-0.3.21-SkylakeX",
// which ends with the kernels that OpenBLAS has chosen for this processor, or "gonum-v0.17.0-assembly".
func (e *Engine) Identity() string {
	if e.blas != nil {
		return strings.ReplaceAll(e.name, " ", "-") + "-" + e.blas.core
	}
	return gonumIdentity()
}

// Threads is the number of threads that one product may use.
func (e *Engine) Threads() int { return e.threads }

// Parts reports whether any part of a product, some of its rows and columns over all of K, has the bits that it has in
// the whole. OpenBLAS promises no such thing: it chooses how it sums by the sizes of the product.
func (e *Engine) Parts() bool { return e.blas == nil }
