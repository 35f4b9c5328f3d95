package cuda

import (
	"cmp"
	"slices"
	"time"
)

// work puts something on a stream.
type work func(s Stream) error

// best is how long work takes that begins together, each on a stream of its own: of a few runs, after one that warms
// up, that in which all of it had ended first.
func (d *Device) best(streams []Stream, all ...work) ([]time.Duration, error) {
	took, err := d.runs(3, streams, all)
	if err != nil {
		return nil, err
	}
	return took[0], nil
}

// runs times work that begins together, after a run that warms up. That in which all of it had ended first comes first.
func (d *Device) runs(n int, streams []Stream, all []work) ([][]time.Duration, error) {
	if _, err := d.timed(streams, all); err != nil {
		return nil, err
	}
	runs := make([][]time.Duration, n)
	for i := range runs {
		var err error
		if runs[i], err = d.timed(streams, all); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(runs, func(a, b []time.Duration) int { return cmp.Compare(slices.Max(a), slices.Max(b)) })
	return runs, nil
}

// timed has streams wait for one event, puts work on them, and returns when each had ended after that event.
func (d *Device) timed(streams []Stream, all []work) ([]time.Duration, error) {
	begin, err := d.mark(d.clock)
	if err != nil {
		return nil, err
	}
	defer d.events.put(begin)
	ends := make([]Event, len(all))
	for i, w := range all {
		if err := d.driver.Wait(streams[i], begin); err != nil {
			return nil, err
		}
		if err := w(streams[i]); err != nil {
			return nil, err
		}
		if ends[i], err = d.mark(streams[i]); err != nil {
			return nil, err
		}
		defer d.events.put(ends[i])
	}
	if err := d.driver.Synchronize(); err != nil {
		return nil, err
	}
	took := make([]time.Duration, len(all))
	for i, e := range ends {
		if took[i], err = d.driver.Elapsed(begin, e); err != nil {
			return nil, err
		}
	}
	return took, nil
}
