package executor

import (
	"errors"
	"slices"
)

// finish lets a job rest in Home, or removes it if it was told to.
func (h *Host) finish(j *job) error {
	h.forget(j)
	m := j.machine
	h.observer(Event{Job: j.name, Ended: &Ended{Iterations: m.Iterations(), Plans: m.Plans(),
		Transition: m.Transition(),
		Touched:    j.touched, Weights: j.readWeights()}})
	if j.leaves {
		return h.remove(j)
	}
	return nil
}

// fail takes a job that the device has no place for out of what goes on.
func (h *Host) fail(j *job, err error) {
	m := j.machine
	h.observer(Event{Job: j.name, Ended: &Ended{Err: errors.Join(err, h.drop(j)),
		Iterations: m.Iterations(), Plans: m.Plans(), Transition: m.Transition(), Touched: j.touched}})
	if j.leaves {
		h.observer(Event{Job: j.name, Removed: true})
	}
}

// remove closes the place of a job that has ended.
func (h *Host) remove(j *job) error {
	err := h.drop(j)
	h.observer(Event{Job: j.name, Removed: true})
	return err
}

// drop forgets a job and gives back what it has on the device.
func (h *Host) drop(j *job) error {
	h.forget(j)
	h.jobs = slices.DeleteFunc(h.jobs, func(other *job) bool { return other == j })
	h.dropped = append(h.dropped, j.place)
	err := j.close()
	if j.taking != nil {
		j.taking.Release()
	}
	for _, out := range j.machine.leaveLease(nil) {
		h.stepLease(*out.Lease) // the pages are free, now that the place has closed
	}
	return err
}
