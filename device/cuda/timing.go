package cuda

import (
	"slices"
	"time"
)

// work puts something on a stream.
type work func(s Stream) error

// best is how long work takes that begins together, each on a stream of its own: of a few runs, after one that warms
// up, that in which all of it had ended first.
func (d *Device) best(streams []Stream, all ...work) (best []time.Duration, err error) {
	const runs = 4
	for run := range runs {
		took, err := d.timed(streams, all)
		if err != nil {
			return nil, err
		}
		if run == 1 || run > 1 && slices.Max(took) < slices.Max(best) {
			best = took
		}
	}
	return best, nil
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
		if took[i], err = d.driver.Between(begin, e); err != nil {
			return nil, err
		}
	}
	return took, nil
}
