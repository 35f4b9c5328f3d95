package executor

import (
	"fmt"

	"tensile/device"
	"tensile/graph"
	"tensile/program"
)

// job is one of a host's jobs and its place on the device.
type job struct {
	name    string
	graph   *graph.Graph
	machine *Machine
	place   device.Job
	touched graph.Bytes
	leaves  bool // to be removed when it has ended
}

// runnable checks that the device can execute the steps of a program as the plan says, in an arena of its size.
func (h *Host) runnable(j *job, p *program.Program) error {
	if align := h.device.Align(); p.Arena < 0 || p.Arena%align != 0 {
		return fmt.Errorf("job %s: its plan needs an arena of %d bytes, the device has multiples of %d", j.name, p.Arena, align)
	} else if p.Align <= 0 || p.Align%align != 0 {
		return fmt.Errorf("job %s: its plan aligns to %d bytes, the device wants %d", j.name, p.Align, align)
	}
	for slot, step := range p.Plan.Steps {
		variant, ok := device.Find(h.device.Variants(j.graph, step.Op), step.Variant)
		if name := j.graph.Ops[step.Op].Name; !ok {
			return fmt.Errorf("job %s, step %d: the device has no variant %q of %s", j.name, slot, step.Variant, name)
		} else if step.Scratch < variant.Scratch {
			return fmt.Errorf("job %s, step %d: %s needs %s of scratch, the plan grants %s", j.name, slot, name, variant.Scratch, step.Scratch)
		}
	}
	return nil
}

func (j *job) close() error {
	if err := j.place.Close(); err != nil {
		return fmt.Errorf("close job %s: %w", j.name, err)
	}
	return nil
}

// weights returns the content of a job's persistent storages, nil on a device without data. Nothing may be issued.
func (j *job) weights() map[graph.StorageID][]float32 {
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
