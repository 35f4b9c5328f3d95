package fakecuda

import (
	"bytes"
	"testing"
)

// TestCopies sends bytes to the device and back on two streams with an event between them.
func TestCopies(t *testing.T) {
	for seed := range uint64(8) {
		r := newRig(t, Options{Seed: seed})
		in, out, host := r.stream(), r.stream(), r.pin(2)
		a := r.alloc(4096)
		from, to := host[:1000], host[4096:][:1000]
		for i := range from {
			from[i] = byte(i*7 + 1)
		}
		r.do(r.d.CopyIn(in, a, from))
		e := r.mark(in)
		r.do(r.d.Wait(out, e))
		r.do(r.d.CopyOut(out, to, a))
		last := r.mark(out)
		r.d.Watch(out, last, 7)
		token, ok, err := r.d.Next(t.Context(), nil)
		if r.do(err); !ok || token != 7 {
			t.Fatalf("seed %d: Next = %d, %v", seed, token, ok)
		}
		if !bytes.Equal(from, to) {
			t.Errorf("seed %d: other bytes came back", seed)
		}
		r.do(r.d.Release(a))
	}
}
