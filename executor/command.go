package executor

import (
	"fmt"
	"slices"

	"tensile/plan/proof"
)

// command is what another goroutine wants for a job. The one in Serve or Poll carries it out.
type command struct {
	job string
	do  func() error
}

// Submit adds a job, also while others train. If that fails, the observer hears that the job has ended with an error,
// or, if there is a job of that name, that the command was refused. Other jobs go on.
func (h *Host) Submit(s Spec, p proof.Proven) {
	h.command(s.Name, func() error {
		if h.find(s.Name) != nil {
			h.observer(Event{Job: s.Name, Refused: errTaken(s.Name)})
		} else if err := h.add(s, p); err != nil {
			h.observer(Event{Job: s.Name, Ended: &Ended{Err: err}})
		}
		return nil
	})
}

// Change gives a job a new program, to be applied at an iteration boundary. Called from the observer it is carried out
// before the next event.
func (h *Host) Change(name string, p proof.Proven) {
	h.command(name, func() error {
		return h.update(name, func(j *job) error {
			err := h.change(j, p)
			j.refused = err != nil && j.machine.parked != 0
			return err
		})
	})
}

// Stop lets a job end after the iterations in flight.
func (h *Host) Stop(name string) {
	h.command(name, func() error { return h.update(name, func(j *job) error { return h.step(j, Input{Stop: true}) }) })
}

// Park lets a job rest in Home after the iterations in flight, with nothing of the device, until Resume or Stop. The
// observer hears when it has come to rest (Event.Parked), with the number of this wish, which is above 0: one of a Park
// before a Resume may come late. A Change meanwhile is taken for later.
//
// If at is above 0 it rests when exactly so many iterations are complete. If more have begun it trains on as if there
// had been no Park, and the observer hears that (Event.Begun). A job that rests at fewer goes on until then.
func (h *Host) Park(name string, number int64, at int) {
	h.command(name, func() error {
		return h.update(name, func(j *job) error {
			if h.reportLate(j, at) {
				return nil
			}
			if at > 0 { // from a rest it goes on by its newest program
				if err := h.applyPrograms(func(w wanted) bool { return w.job == j }); err != nil || h.find(name) != j {
					return err
				}
			}
			return h.step(j, Input{Park: number, At: at})
		})
	})
}

// reportLate tells the observer if a job has begun more iterations than those after which it was to park or be
// checkpointed. It reports whether it has.
func (h *Host) reportLate(j *job, at int) bool {
	begun := j.machine.Begun()
	if at == 0 || begun <= at {
		return false
	}
	h.observer(Event{Job: j.name, Begun: begun})
	return true
}

// Resume lets a parked job go on by its newest program, that of a Change before this included, which the observer hears
// to be applied (Event.Applied), also if it was in force before: the arena of an older one may be too large. So it is
// refused after a Change that was refused of the parked job. Of a job that is not parked nothing changes.
func (h *Host) Resume(name string) {
	h.command(name, func() error {
		return h.update(name, func(j *job) error {
			if j.refused {
				return fmt.Errorf("job %s stays parked: its newest program was refused", name)
			}
			if err := h.applyPrograms(func(w wanted) bool { return w.job == j }); err != nil || h.find(name) != j {
				return err
			}
			return h.step(j, Input{Resume: true})
		})
	})
}

// Checkpoint takes the state of a job at the next iteration boundary, which is at once if it is in Home. The observer
// hears of it exactly once (Event.Snapshot), with an error if there is none: there is no such job, it has ended, the
// host has no memory for its state. A Checkpoint while another of the job is under way joins that one. A job that is
// told to change, park or stop meanwhile goes Home, which is such a boundary.
//
// If the job's program has a snapshot section, the job trains on meanwhile, and the observer hears of the state when
// the first iteration after the boundary is complete. Else the job goes Home and leaves it again at once.
//
// If at is above 0 the state is that after exactly so many iterations; if more have begun none is taken, and the
// observer hears that (Event.Begun). Until the state is taken another Checkpoint may change at.
func (h *Host) Checkpoint(name string, at int) {
	h.command(name, func() error {
		j := h.find(name)
		if j != nil && j.machine.State() != Finished && h.reportLate(j, at) {
			return nil
		}
		if err := j.reserve(name); err != nil {
			h.observer(Event{Job: name, Snapshot: &Snapshot{Err: err}})
			if j != nil && at > 0 {
				return h.step(j, Input{Forgo: at})
			}
			return nil
		}
		return h.step(j, Input{Checkpoint: true, At: at})
	})
}

// reserve gets memory for the state of a job, which may be nil, unless it has some.
func (j *job) reserve(name string) (err error) {
	switch {
	case j == nil:
		return fmt.Errorf("there is no job %s", name)
	case j.machine.State() == Finished:
		return fmt.Errorf("job %s has ended", name)
	case j.taking != nil:
		return nil
	}
	j.taking, err = j.place.Snapshot()
	return err
}

// Trace has the observer told of all that a job does in so many more iterations, of which the next to end is the first,
// and between them (Event.Trace).
func (h *Host) Trace(name string, iterations int) {
	h.command(name, func() error {
		return h.update(name, func(j *job) error { return h.step(j, Input{Trace: iterations}) })
	})
}

// Skip counts so many iterations of a job as trained, beside those in flight, at most as many as it still has to begin:
// for a simulation whose iterations are all alike, on a device without data. It panics if that has fewer.
func (h *Host) Skip(name string, iterations int) {
	h.command(name, func() error {
		return h.update(name, func(j *job) error { return h.step(j, Input{Skip: iterations}) })
	})
}

// RestAfter has all jobs, those to come too, rest in Home when so many iterations are complete: they then have nothing
// of the device. A later call with more has them go on.
func (h *Host) RestAfter(iterations int) {
	h.command("", func() error {
		h.until = &iterations
		for _, j := range slices.Clone(h.jobs) {
			if err := h.step(j, Input{Until: h.until}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Remove closes a job's place on the device and frees its name, after a stop if it has not ended; one that takes means
// with other jobs ends where it is. The observer hears of it when it is done, also if there was no such job.
func (h *Host) Remove(name string) {
	h.command(name, func() error {
		j := h.find(name)
		switch {
		case j == nil:
			h.observer(Event{Job: name, Removed: true})
			return nil
		case j.machine.State() == Finished || j.reduces: // which may wait for ever
			return h.remove(j)
		}
		j.leaves = true
		return h.step(j, Input{Stop: true})
	})
}

func (h *Host) command(job string, do func() error) {
	h.mu.Lock()
	h.commands = append(h.commands, command{job, do})
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// drain carries out the commands of other goroutines.
func (h *Host) drain() error {
	h.mu.Lock()
	commands := h.commands
	h.commands = nil
	h.mu.Unlock()
	for _, c := range commands {
		if err := c.do(); err != nil {
			h.observer(Event{Job: c.job, Refused: err})
		}
	}
	return h.applyPrograms(func(wanted) bool { return true })
}

// update does something with a job that has not ended.
func (h *Host) update(name string, do func(*job) error) error {
	j := h.find(name)
	if j == nil {
		return fmt.Errorf("there is no job %s", name)
	}
	if j.machine.State() == Finished {
		return nil
	}
	return do(j)
}

func errTaken(name string) error { return fmt.Errorf("add job %s: there is a job of that name", name) }
