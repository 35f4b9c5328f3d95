package cpu

import (
	"fmt"
	"sync"

	"tensile/device"
	"tensile/graph"
	"tensile/plan/program"
)

// snapshot implements device.Snapshot.
type snapshot struct {
	device     *Device
	g          *graph.Graph
	slots      []graph.Bytes // per storage of g; -1: it is no part of a snapshot
	size       graph.Bytes
	memory     memory
	populating sync.WaitGroup
	release    sync.Once
}

// Snapshot implements device.Job.
func (j *job) Snapshot() (device.Snapshot, error) {
	s := &snapshot{device: j.device, g: j.g}
	s.slots, s.size = program.SnapshotSlots(j.g)
	if err := j.device.claim(j.options.Name, "a snapshot", s.size); err != nil {
		return nil, err
	}
	var err error
	if s.memory, err = reserve(s.size); err != nil {
		j.device.unclaim(s.size)
		return nil, fmt.Errorf("job %s: a snapshot: %w", j.options.Name, err)
	}
	s.populating.Go(func() { populate(s.memory) }) // while the job still trains without
	j.snapshot = s
	return s, nil
}

// Content implements device.Snapshot.
func (s *snapshot) Content(id graph.StorageID) []float32 {
	if s.slots[id] < 0 {
		return nil
	}
	return s.memory.floats(s.slots[id], int(s.g.Storages[id].Bytes/graph.ElementBytes))
}

// Release implements device.Snapshot.
func (s *snapshot) Release() {
	s.release.Do(func() {
		s.populating.Wait()
		s.memory.free()
		s.device.unclaim(s.size)
	})
}
