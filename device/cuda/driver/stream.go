//go:build gpu

package driver

import (
	"errors"
	"time"

	"gorgonia.org/cu"

	"tensile/device/cuda"
)

// NewStream makes a stream that does not wait for the default stream.
func (d *Driver) NewStream() (cuda.Stream, error) {
	made, err := cu.MakeStream(cu.NonBlocking)
	if err != nil {
		return 0, wrap("cuStreamCreate", err)
	}
	w, err := newWaiter(d.context, d.ended)
	if err != nil {
		made.Destroy() // the waiter's error tells more
		return 0, err
	}
	s := cuda.Stream(number(made))
	d.streams[s] = w
	return s, nil
}

// DestroyStream waits for what is watched on a stream, and gives the stream back.
func (d *Driver) DestroyStream(s cuda.Stream) error {
	if w := d.streams[s]; w != nil {
		w.stop()
	}
	delete(d.streams, s)
	h := handle[cu.Stream](s)
	return wrap("cuStreamDestroy", h.Destroy())
}

// NewEvent makes an event that takes the time and that a thread sleeps for.
func (d *Driver) NewEvent() (cuda.Event, error) {
	made, err := cu.MakeEvent(cu.BlockingSyncEvent)
	if err != nil {
		return 0, wrap("cuEventCreate", err)
	}
	e := cuda.Event(number(made))
	d.events[e] = struct{}{}
	return e, nil
}

// DestroyEvent gives an event back, which no stream has to have reached.
func (d *Driver) DestroyEvent(e cuda.Event) error {
	delete(d.events, e)
	h := handle[cu.Event](e)
	return wrap("cuEventDestroy", cu.DestroyEvent(&h))
}

// Record has an event end when what is on a stream now has ended.
func (d *Driver) Record(s cuda.Stream, e cuda.Event) error {
	return wrap("cuEventRecord", handle[cu.Event](e).Record(handle[cu.Stream](s)))
}

// Wait has what follows on a stream wait for the latest Record of an event.
func (d *Driver) Wait(s cuda.Stream, e cuda.Event) error {
	return wrap("cuStreamWaitEvent", handle[cu.Stream](s).Wait(handle[cu.Event](e), 0))
}

// Synchronize waits until all streams are empty.
func (d *Driver) Synchronize() error { return wrap("cuCtxSynchronize", cu.Synchronize()) }

// Ended reports whether the latest Record of an event has been reached.
func (d *Driver) Ended(e cuda.Event) (bool, error) {
	err := handle[cu.Event](e).Query()
	if errors.Is(err, cu.NotReady) {
		return false, nil
	}
	return err == nil, wrap("cuEventQuery", err)
}

// Elapsed returns the time from one event to another. The driver's number is a float32 of milliseconds.
func (d *Driver) Elapsed(a, b cuda.Event) (time.Duration, error) {
	ms, err := handle[cu.Event](a).Elapsed(handle[cu.Event](b))
	return time.Duration(ms * float64(time.Millisecond)), wrap("cuEventElapsedTime", err)
}
