package fakecuda

import (
	"os"
	"strings"
	"testing"
	"unsafe"

	"tensile/device/cuda"
	"tensile/graph"
)

// rig is an open driver whose calls must succeed.
type rig struct {
	*testing.T
	d *Driver
}

func newRig(t *testing.T, o Options) rig {
	t.Helper()
	r := rig{t, New(o)}
	r.do(r.d.Open(0))
	r.do(r.d.Enter())
	return r
}

func (r rig) do(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// refused fails unless an error has a code and all words.
func (r rig) refused(err error, code cuda.Code, words ...string) {
	r.Helper()
	e, ok := err.(*cuda.Error)
	if !ok {
		r.Fatalf("got error %v, want one of the driver with %q", err, words)
	}
	if e.Code != code {
		r.Errorf("got code %d in %v, want %d", e.Code, err, code)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			r.Errorf("got error %q, want %q in it", err, word)
		}
	}
}

func must[T any](r rig) func(T, error) T {
	return func(v T, err error) T {
		r.Helper()
		r.do(err)
		return v
	}
}

func (r rig) alloc(size graph.Bytes) cuda.Address { return must[cuda.Address](r)(r.d.Alloc(size)) }
func (r rig) stream() cuda.Stream                 { return must[cuda.Stream](r)(r.d.NewStream()) }
func (r rig) event() cuda.Event                   { return must[cuda.Event](r)(r.d.NewEvent()) }

// pages returns whole pages of host memory.
func pages(n int) []byte {
	size := os.Getpagesize()
	memory := make([]byte, (n+1)*size)
	skip := -int(uintptr(unsafe.Pointer(&memory[0]))) & (size - 1)
	return memory[skip:][:n*size]
}

// pin returns pinned pages.
func (r rig) pin(n int) []byte {
	r.Helper()
	memory := pages(n)
	r.do(r.d.Pin(memory))
	return memory
}

// mark records a new event on a stream.
func (r rig) mark(s cuda.Stream) cuda.Event {
	r.Helper()
	e := r.event()
	r.do(r.d.Record(s, e))
	return e
}
