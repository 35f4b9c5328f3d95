package fakecuda

import (
	"cmp"
	"fmt"
	"slices"

	"tensile/device/cuda"
)

type event struct {
	record  *node // the latest, nil: none
	watched int   // tokens that Next owes
	refused bool
}

// NewEvent implements cuda.Driver.
func (d *Driver) NewEvent() (cuda.Event, error) {
	if err := d.enter("cuEventCreate"); err != nil {
		return 0, err
	}
	d.handles++
	d.eventOf[cuda.Event(d.handles)] = &event{}
	return cuda.Event(d.handles), nil
}

// DestroyEvent implements cuda.Driver. An event whose token Next still owes is an error, but where a call has failed as
// it was told to.
func (d *Driver) DestroyEvent(e cuda.Event) error {
	const call = "cuEventDestroy"
	err := d.enter(call)
	of, unknown := d.event(call, e)
	if unknown != nil {
		return cmp.Or(err, unknown)
	} else if err != nil {
		of.refused = true
		return err
	} else if of.watched > 0 && !d.hasFailed() {
		return refuse(call, cuda.InvalidValue, "event %d is watched", e)
	}
	d.owed = slices.DeleteFunc(d.owed, func(t *token) bool { return t.event == of })
	delete(d.eventOf, e)
	return nil
}

func (d *Driver) event(call string, e cuda.Event) (*event, error) {
	of, ok := d.eventOf[e]
	if !ok {
		return nil, refuse(call, invalidHandle, "there is no event %d", e)
	}
	return of, nil
}

// recorded is event, with an error for one that was never recorded.
func (d *Driver) recorded(call string, e cuda.Event) (*event, error) {
	of, err := d.event(call, e)
	if err == nil && of.record == nil {
		err = refuse(call, invalidHandle, "event %d was never recorded", e)
	}
	return of, err
}

// reached is recorded, with an error for one that was recorded in a capture.
func (d *Driver) reached(call string, e cuda.Event) (*event, error) {
	of, err := d.recorded(call, e)
	if err == nil && of.record.capture != nil {
		err = refuse(call, cuda.StreamCaptureBad, "event %d was recorded in a capture", e)
	}
	return of, err
}

// Record implements cuda.Driver. An event whose token Next still owes is an error: what is watched would be another
// record.
func (d *Driver) Record(s cuda.Stream, e cuda.Event) error {
	const call = "cuEventRecord"
	if err := d.enter(call); err != nil {
		return err
	}
	of, err := d.stream(call, s)
	if err != nil {
		return err
	}
	to, err := d.event(call, e)
	if err != nil {
		return err
	} else if to.watched > 0 {
		return refuse(call, cuda.InvalidValue, "event %d is watched", e)
	}
	to.record = &node{what: fmt.Sprintf("record of event %d", e), stream: s}
	d.put(of, to.record)
	return nil
}

// Wait implements cuda.Driver. An event that was never recorded is an error; CUDA's would not wait.
func (d *Driver) Wait(s cuda.Stream, e cuda.Event) error {
	const call = "cuStreamWaitEvent"
	if err := d.enter(call); err != nil {
		return err
	}
	of, err := d.stream(call, s)
	if err != nil {
		return err
	}
	from, err := d.recorded(call, e)
	if err != nil {
		return err
	}
	if err := of.join(call, from.record.capture); err != nil {
		return err
	}
	of.waits = append(of.waits, from.record)
	return nil
}
