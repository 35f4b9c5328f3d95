package cuda

import (
	"fmt"
	"sync"

	"tensile/device"
	"tensile/graph"
	"tensile/plan/program"
)

// snapshot implements device.Snapshot.
type snapshot struct {
	g       *graph.Graph
	slots   []graph.Bytes // per storage of g; -1: it is no part of a snapshot
	memory  *pinned
	release sync.Once
}

// Snapshot implements device.Job.
func (j *job) Snapshot() (device.Snapshot, error) {
	defer j.device.enter()()
	if j.device.err != nil {
		return nil, j.device.failure()
	}
	s := &snapshot{g: j.g}
	var size graph.Bytes
	s.slots, size = program.SnapshotSlots(j.g)
	memory, err := j.device.memory.get(size)
	if err != nil {
		return nil, fmt.Errorf("job %s: a snapshot: %w", j.options.Name, err)
	}
	s.memory, j.snapshot = memory, s
	return s, nil
}

// Content implements device.Snapshot.
func (s *snapshot) Content(id graph.StorageID) []float32 {
	if s.slots[id] < 0 {
		return nil
	}
	return s.memory.slice(s.slots[id], s.g.Storages[id].Bytes).Float32()
}

// Release implements device.Snapshot.
func (s *snapshot) Release() { s.release.Do(s.memory.free) }
