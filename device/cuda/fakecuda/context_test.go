package fakecuda

import (
	"testing"

	"tensile/device/cuda"
	"tensile/graph"
	"tensile/graph/cost"
)

// A driver that is open takes its context off the card's memory.
func TestContext(t *testing.T) {
	facts := cost.Facts{Name: "a6000", Memory: 1000}
	for _, context := range []graph.Bytes{0, 300, 1000} {
		r := newRig(t, Options{Facts: facts, Context: context})
		if used, free := r.d.Used(), must[graph.Bytes](r)(free(r.d)); used != context || free != 1000-context {
			t.Errorf("%d bytes are used and %d free, want %d and %d", used, free, context, 1000-context)
		}
		_, err := r.d.Alloc(1001 - context)
		r.refused(err, cuda.OutOfMemory)
	}
	d := New(Options{Facts: facts, Context: 1001})
	r := rig{T: t, d: d}
	r.refused(d.Open(0), cuda.OutOfMemory, "a context takes 1001 bytes of 1000")
	d = New(Options{Facts: facts, Context: 300})
	r.do(d.Open(0))
	if r.do(d.Close()); d.Used() != 0 {
		t.Errorf("%d bytes are used of a driver that is closed", d.Used())
	}
}

func free(d *Driver) (graph.Bytes, error) {
	free, _, err := d.Free()
	return free, err
}
