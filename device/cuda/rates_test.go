package cuda_test

import (
	"testing"

	"tensile/device/cuda"
	"tensile/graph"
	"tensile/internal/fakecuda"
)

// TestRates compares what the device finds with the rates that the fake driver was given.
func TestRates(t *testing.T) {
	driver := fakecuda.New(fakecuda.Options{})
	d, err := cuda.New(driver, cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Rates([]graph.Bytes{64 * graph.KiB, graph.MiB}, []int{16, 70})
	if err != nil {
		t.Fatal(err)
	}
	facts := d.Facts()
	for _, c := range r.Copies {
		for _, took := range []struct {
			what      string
			got, want float64
		}{
			{"out", c.Out.Seconds(), facts.Out.Time(c.Bytes).Seconds()},
			{"in", c.In.Seconds(), facts.In.Time(c.Bytes).Seconds()},
			{"out beside in", c.BothOut.Seconds(), facts.Out.Time(c.Bytes).Seconds()},
			{"in beside out", c.BothIn.Seconds(), facts.In.Time(c.Bytes).Seconds()},
		} {
			if ratio := took.got / took.want; ratio < 0.9 || ratio > 1.1 {
				t.Errorf("%s %s: %v s, want %v", c.Bytes, took.what, took.got, took.want)
			}
		}
	}
	if len(r.Products) != 2 || r.Products[0].Took <= 0 || r.Products[0].Took >= r.Products[1].Took {
		t.Errorf("products: %+v", r.Products)
	}
	if o := r.Overlap; o.Side != 70 || o.Bytes != graph.MiB || o.Together < max(o.Product, o.Copies) ||
		o.Hidden() < 0.9 || o.Hidden() > 1.01 {
		t.Errorf("overlap: %+v, hidden %v", o, o.Hidden())
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
