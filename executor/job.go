package executor

import (
	"errors"
	"fmt"
	"slices"

	"tensile/device"
	"tensile/graph"
	"tensile/models/task"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// job is one of a host's jobs and its place on the device.
type job struct {
	// name is the job's name.
	name string
	// graph is the job's graph.
	graph *graph.Graph
	// machine decides for the job.
	machine *Machine
	// place is the job's place on the device.
	place device.Job
	// given are the programs that the machine was given, the one in force first.
	given []proof.Proven
	// touched is the highest byte of an arena that a command of the job has used.
	touched graph.Bytes
	// fault is Spec.Fault; nil: there never is one.
	fault func() error
	// trouble is Spec.Trouble; nil: there never is any.
	trouble func() error
	// taking is the memory of a Checkpoint that is under way; nil: none is.
	taking device.Snapshot
	// reduces says that the job waits for other jobs within an iteration.
	reduces bool
	// leaves says that the job is to be removed when it has ended.
	leaves bool
	// refused says that a parked job was to change to a program that was refused.
	refused bool
}

// checkRunnable checks that the device can execute a program, and that the job can change to it.
func (h *Host) checkRunnable(j *job, p proof.Proven) error {
	if err := device.Runnable(h.device, p); err != nil {
		return fmt.Errorf("job %s: %w", j.name, err)
	}
	if _, err := program.Match(j.graph, p.Program().Graph); err != nil {
		return fmt.Errorf("job %s: %w", j.name, err)
	}
	return nil
}

// failureAfter is why a job does not go on after an iteration, counted from 0, which is complete; nil: it does. A loss
// that is no number counts from its iteration on, whenever the next one has ended, so that equal jobs end alike.
func (j *job) failureAfter(iteration int) error {
	if j.fault == nil {
		return nil
	}
	err := j.fault()
	d, diverged := errors.AsType[*task.DivergedError](err)
	switch {
	case err == nil || diverged && d.Iteration > iteration:
		return nil
	case diverged:
		return err
	}
	return fmt.Errorf("job %s: %w", j.name, err)
}

// load binds a program that the machine was given to the job's place, with an arena of its size.
func (j *job) load(p *program.Program) error {
	i := slices.IndexFunc(j.given, func(q proof.Proven) bool { return q.Program() == p })
	j.given = j.given[i:]
	if err := j.place.Load(j.given[0]); err != nil {
		return err
	}
	return j.place.Reserve(p.Arena)
}

func (j *job) close() error {
	if err := j.place.Close(); err != nil {
		return fmt.Errorf("close job %s: %w", j.name, err)
	}
	return nil
}

// takeState hands out the memory of a checkpoint, which holds the job's state then.
func (j *job) takeState(t *taken) *Snapshot {
	s := &Snapshot{Iteration: t.Iteration, Release: j.taking.Release}
	for _, storage := range j.graph.Storages {
		content := j.taking.Content(storage.ID)
		if content == nil {
			continue
		}
		if t.Home {
			copy(content, j.place.Host(storage.ID))
		}
		if s.Contents == nil {
			s.Contents = make(map[graph.StorageID][]float32)
		}
		s.Contents[storage.ID] = content
	}
	j.taking = nil
	return s
}

// readWeights returns the content of a job's persistent storages, nil on a device without data. Nothing may be issued.
func (j *job) readWeights() map[graph.StorageID][]float32 {
	var all map[graph.StorageID][]float32
	for _, s := range j.graph.Storages {
		if !s.Role.Persistent() {
			continue
		}
		if content := j.place.Host(s.ID); content != nil {
			if all == nil {
				all = make(map[graph.StorageID][]float32)
			}
			all[s.ID] = content
		}
	}
	return all
}
