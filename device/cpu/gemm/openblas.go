package gemm

import (
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// openBLAS is the library as loaded into this process. Its thread count is one for the process, so calls hold turn
// for reading while the count is theirs, and a call that wants another takes it for writing first.
type openBLAS struct {
	name         string
	core         string // whose kernels it has chosen
	sgemm, dgemm uintptr
	setThreads   func(int32)

	turn    sync.RWMutex
	threads int
}

// spin is the binary logarithm of how many cycles a thread of OpenBLAS waits for its next product before it sleeps:
// half a millisecond, enough from one product to the next. OpenBLAS's own 26 is some 20 ms, in which threads that wait
// for a gate keep a core busy.
const spin = "20"

// sleepSoon tells OpenBLAS of spin, which it reads from the environment of C when it is loaded, where it was not told
// otherwise.
func sleepSoon() {
	libc, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
	if err != nil {
		return
	}
	if _, err := purego.Dlsym(libc, "setenv"); err != nil {
		return
	}
	var setenv func(name, value string, overwrite int32) int32
	purego.RegisterLibFunc(&setenv, libc, "setenv")
	setenv("OPENBLAS_THREAD_TIMEOUT", spin, 0)
}

// loadOpenBLAS returns the library, or nil where there is none. It loads once.
var loadOpenBLAS = sync.OnceValue(func() *openBLAS {
	sleepSoon()
	for _, file := range []string{"libopenblas.so.0", "libopenblas.so"} {
		if handle, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_LOCAL); err == nil {
			if blas := bindOpenBLAS(handle); blas != nil {
				return blas
			}
		}
	}
	return nil
})

// bindOpenBLAS finds what we call. The Fortran entry points take every argument by address, which suits a call without
// cgo, and little-endian 64-bit integers are right for builds with 32-bit ones too.
func bindOpenBLAS(handle uintptr) *openBLAS {
	var found [4]uintptr
	for i, name := range []string{"sgemm_", "dgemm_", "openblas_set_num_threads", "openblas_get_config"} {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil
		}
		found[i] = symbol
	}
	b := &openBLAS{sgemm: found[0], dgemm: found[1]}
	purego.RegisterFunc(&b.setThreads, found[2])
	var config func() string
	purego.RegisterFunc(&config, found[3])
	b.name = openBLASName(config())
	b.core = "unknown"
	if symbol, err := purego.Dlsym(handle, "openblas_get_corename"); err == nil {
		var core func() string
		purego.RegisterFunc(&core, symbol)
		b.core = core()
	}
	return b
}

// openBLASName makes "openblas 0.3.21" of "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...".
func openBLASName(config string) string {
	if words := strings.Fields(config); len(words) > 1 && words[0] == "OpenBLAS" {
		return "openblas " + words[1]
	}
	return "openblas"
}

// acquire makes the process-wide thread count the one wanted until release.
func (b *openBLAS) acquire(threads int) {
	for {
		b.turn.RLock()
		if b.threads == threads {
			return
		}
		b.turn.RUnlock()
		b.turn.Lock()
		b.setThreads(int32(threads))
		b.threads = threads
		b.turn.Unlock()
	}
}

func (b *openBLAS) release() { b.turn.RUnlock() }

// arguments of the Fortran entry points, by address.
type arguments struct {
	transA, transB  byte
	m, n, k         int64
	lda, ldb, ldc   int64
	alpha32, beta32 float32
	alpha64, beta64 float64
}

// multiplyOpenBLAS computes the transposed product, which is what the rows look like to Fortran: Cᵀ = Bᵀ·Aᵀ. It
// allocates its arguments.
func multiplyOpenBLAS[T Float](blas *openBLAS, threads int, p *Product[T]) {
	a := &arguments{
		transA: transposition(p.B), transB: transposition(p.A),
		m: int64(p.N), n: int64(p.M), k: int64(p.K),
		lda: int64(p.B.Stride), ldb: int64(p.A.Stride), ldc: int64(p.C.Stride),
		alpha32: 1, alpha64: 1,
	}
	if p.Add {
		a.beta32, a.beta64 = 1, 1
	}
	entry, alpha, beta := blas.dgemm, unsafe.Pointer(&a.alpha64), unsafe.Pointer(&a.beta64)
	if single[T]() {
		entry, alpha, beta = blas.sgemm, unsafe.Pointer(&a.alpha32), unsafe.Pointer(&a.beta32)
	}
	blas.acquire(threads)
	defer blas.release()
	purego.SyscallN(entry,
		uintptr(unsafe.Pointer(&a.transA)), uintptr(unsafe.Pointer(&a.transB)),
		uintptr(unsafe.Pointer(&a.m)), uintptr(unsafe.Pointer(&a.n)), uintptr(unsafe.Pointer(&a.k)),
		uintptr(alpha), uintptr(unsafe.Pointer(&p.B.Data[0])), uintptr(unsafe.Pointer(&a.lda)),
		uintptr(unsafe.Pointer(&p.A.Data[0])), uintptr(unsafe.Pointer(&a.ldb)),
		uintptr(beta), uintptr(unsafe.Pointer(&p.C.Data[0])), uintptr(unsafe.Pointer(&a.ldc)), 1, 1)
}

func transposition[T Float](m Matrix[T]) byte {
	if m.Transposed {
		return 'T'
	}
	return 'N'
}
