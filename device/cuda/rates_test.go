package cuda_test

import (
	"slices"
	"testing"
	"time"

	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/graph"
)

// TestRates compares what the device finds with the rates that the fake driver was given.
func TestRates(t *testing.T) {
	driver := fakecuda.New(fakecuda.Options{})
	d, err := cuda.New(driver, cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Rates([]graph.Bytes{64 * graph.KiB, graph.MiB}, []int{16, 70}, time.Second/1000)
	if err != nil {
		t.Fatal(err)
	}
	facts := d.Facts()
	if len(r.CopiesAfter) != len(r.Copies) {
		t.Errorf("%d sizes of copies, and %d after all", len(r.Copies), len(r.CopiesAfter))
	}
	for _, c := range slices.Concat(r.Copies, r.CopiesAfter) {
		for _, took := range []struct {
			what      string
			got, want float64
		}{
			{"out", c.Out.Best.Seconds(), facts.Out.Time(c.Bytes).Seconds()},
			{"in", c.In.Best.Seconds(), facts.In.Time(c.Bytes).Seconds()},
			{"out beside in", c.BothOut.Median.Seconds(), facts.Out.Time(c.Bytes).Seconds()},
			{"in beside out", c.BothIn.Median.Seconds(), facts.In.Time(c.Bytes).Seconds()},
		} {
			if ratio := took.got / took.want; ratio < 0.9 || ratio > 1.1 {
				t.Errorf("%s %s: %v s, want %v", c.Bytes, took.what, took.got, took.want)
			}
		}
	}
	if len(r.Products) != 2 || r.Products[0].Took.Best <= 0 ||
		r.Products[0].Took.Median >= r.Products[1].Took.Best {
		t.Errorf("products: %+v", r.Products)
	}
	if o := r.Overlap; o.Side != 70 || o.Bytes != graph.MiB || o.Together.Best < max(o.Product.Best, o.Copies.Best) ||
		o.Hidden() < 0.9 || o.Hidden() > 1.01 {
		t.Errorf("overlap: %+v, hidden %v", o, o.Hidden())
	}
	launches := driver.Calls()["cuLaunchKernel"]
	if _, err := d.Rates([]graph.Bytes{graph.KiB}, []int{16}, 0); err != nil {
		t.Fatal(err)
	}
	if cold := driver.Calls()["cuLaunchKernel"] - launches; launches <= 2*cold {
		t.Errorf("%d launches where products warm up the device, %d where not", launches, cold)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
