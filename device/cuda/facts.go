package cuda

import (
	"errors"
	"fmt"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
)

// measure returns the rates that plans start from: peaks from the device's clocks, the links as two copies of pinned
// memory find them. The shares of the peaks and the launch are those of package cost's table.
func (d *Device) measure() (cost.Facts, error) {
	free, _, err := d.driver.Free()
	if err != nil {
		return cost.Facts{}, err
	}
	p := &d.properties
	f := cost.Facts{
		Name:           d.Name(),
		Compute:        cost.FLOPsPerSecond(2e3 * float64(p.Processors) * cores(p.Major, p.Minor) * float64(p.Clock)),
		Bandwidth:      cost.BytesPerSecond(2e3 * float64(p.MemoryClock) * float64(p.BusWidth) / 8), // both edges
		Host:           cost.Link{Rate: 10e9},
		Memory:         free,
		ComputeShare:   0.55,
		BandwidthShare: 0.85,
		Launch:         5 * time.Microsecond,
	}
	f.Out, f.In, err = d.links()
	return f, err
}

// cores is how many float32 operations a multiprocessor begins per cycle, from CUDA's programming guide.
func cores(major, minor int) float64 {
	switch {
	case major == 6 && minor == 0, major == 7, major == 8 && minor == 0:
		return 64
	}
	return 128
}

// links measures both directions.
func (d *Device) links() (out, in cost.Link, err error) {
	const small, large = 64 * graph.KiB, 2 * graph.MiB
	host, err := d.memory.get(large)
	if err != nil {
		return out, in, err
	}
	defer d.memory.put(host)
	there, err := d.driver.Alloc(large)
	if err != nil {
		return out, in, err
	}
	defer func() { err = errors.Join(err, d.driver.Release(there)) }()
	one := func(copy func(s Stream, size graph.Bytes) error) (cost.Link, error) {
		var took [2]time.Duration
		for i, size := range []graph.Bytes{small, large} {
			best, err := d.best([]Stream{d.clock}, func(s Stream) error { return copy(s, size) })
			if err != nil {
				return cost.Link{}, fmt.Errorf("measure the link: %w", err)
			}
			took[i] = best[0]
		}
		rate := float64(large-small) / max(1, float64(took[1]-took[0])) * 1e9
		fixed := took[0] - time.Duration(float64(small)/rate*1e9)
		return cost.Link{Rate: cost.BytesPerSecond(rate), Latency: max(0, fixed)}, nil
	}
	in, err = one(func(s Stream, size graph.Bytes) error { return d.driver.CopyIn(s, there, host.bytes[:size]) })
	if err == nil {
		out, err = one(func(s Stream, size graph.Bytes) error { return d.driver.CopyOut(s, host.bytes[:size], there) })
	}
	return out, in, err
}
