package cpu

import (
	"context"
	"fmt"
	"math"
	"sync"

	"tensile/device"
	"tensile/graph"
	"tensile/graph/invariants"
	"tensile/plan/program"
)

// job implements device.Job.
type job struct {
	device   *Device
	g        *graph.Graph // The graph that the job was opened with.
	options  device.JobOptions
	kept     memory        // Host slots of storages that live on the host. They do not move when a program is loaded.
	slots    []graph.Bytes // Offset in kept of each storage of g.
	resident graph.Bytes   // Sum of the sizes of the storages in kept.
	recorder *recorder     // nil: commands are not recorded.

	arena      memory
	paged      bool           // Hold backs the arena page by page.
	held       program.Pages  // Pages that are backed, if the arena is paged.
	populating sync.WaitGroup // Waits for goroutines that touch the pages of the arena.
	loaded     *loaded        // The bound program; nil before the first Load.
	snapshot   *snapshot      // The last one that was asked for; nil if none was.
	entry      entry
	workers    []*lane // One per stream of the loaded program with the most streams.
	running    sync.WaitGroup
	leave      []context.CancelFunc // Per worker: ends its wait for other replicas.

	mu      sync.Mutex
	lanes   *program.Lanes // Progress of the loaded program.
	touched graph.Bytes    // Highest end of arena bytes that the job has used.
	closed  bool
}

func newJob(d *Device, g *graph.Graph, o device.JobOptions) (*job, error) {
	j := &job{device: d, g: g, options: o, lanes: program.NewLanes(nil), entry: entry{arrivals: d.enters}}
	for _, s := range g.Storages {
		if s.Role.FromHost() || s.Role == graph.Output {
			j.resident += s.Bytes
		}
	}
	if err := d.claim(o.Name, "host memory", j.resident); err != nil {
		return nil, err
	}
	var kept graph.Bytes
	var err error
	j.slots, kept = program.HostSlots(g)
	if j.kept, err = reserve(kept); err != nil {
		d.unclaim(j.resident)
		return nil, fmt.Errorf("job %s: %w", o.Name, err)
	}
	return j, nil
}

// Reserve implements device.Job. With the invariants tag an arena that is backed is full of NaN.
func (j *job) Reserve(arena graph.Bytes) error {
	j.mustRest("Reserve")
	if arena < 0 || arena%align != 0 {
		panic(fmt.Sprintf("cpu: Reserve(%d): not a multiple of %d", arena, align))
	}
	j.drop()
	if arena == 0 && j.loaded != nil {
		j.loaded.spilled.free() // in Home nobody reads it
	}
	var err error
	if j.paged {
		if j.arena, err = reserveUnbacked(arena, j.device.page); err != nil {
			return fmt.Errorf("job %s: %w", j.options.Name, err)
		}
		return nil
	}
	if err := j.device.claim(j.options.Name, "an arena", arena); err != nil {
		return err
	}
	if j.arena, err = reserve(arena); err != nil {
		j.device.unclaim(arena)
		return fmt.Errorf("job %s: %w", j.options.Name, err)
	}
	j.populating.Go(func() { populate(j.arena) }) // beside the prologue's copies
	if invariants.Enabled {
		poison(j.arena.floats(0, int(arena/graph.ElementBytes)))
	}
	return nil
}

// drop gives the arena back.
func (j *job) drop() {
	if j.recorder != nil {
		j.recorder.home()
	}
	j.populating.Wait()
	if j.paged {
		j.device.unclaim(j.bytesIn(j.held))
		j.held = nil
	} else {
		j.device.unclaim(graph.Bytes(len(j.arena.bytes)))
	}
	j.arena.free()
	j.touched = 0
}

// pages returns the memory of a range of pages of the arena, up to the end of the system's page in which that ends.
func (j *job) pages(r program.PageRange) []byte {
	page := int(j.device.page)
	return j.arena.bytes[r.From*page : min(r.To*page, cap(j.arena.bytes))]
}

// bytesIn is how much memory pages of the arena take.
func (j *job) bytesIn(pages program.Pages) graph.Bytes {
	n := 0
	for _, r := range pages {
		n += len(j.pages(r))
	}
	return graph.Bytes(n)
}

func poison(f []float32) {
	for i := range f {
		f[i] = float32(math.NaN())
	}
}

func (j *job) mustRest(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.lanes.Idle() {
		panic(fmt.Sprintf("cpu: %s of job %q with commands that have not ended", what, j.options.Name))
	}
}

// Issue implements device.Job. It panics unless the section is of the loaded program, and the arena large enough.
func (j *job) Issue(s *program.Section, from, to, iteration int, drain bool) {
	if l := j.loaded; l == nil || !l.program.Has(s) {
		panic(fmt.Sprintf("cpu: Issue to job %q of a section that is not of the program that it has loaded",
			j.options.Name))
	} else if arena := graph.Bytes(len(j.arena.bytes)); l.program.Arena > arena {
		panic(fmt.Sprintf("cpu: Issue to job %q: its program uses %d bytes of an arena of %d",
			j.options.Name, l.program.Arena, arena))
	} else if s == &l.program.Snapshot && j.snapshot == nil {
		panic(fmt.Sprintf("cpu: Issue to job %q of a snapshot section, and there is no memory for it", j.options.Name))
	}
	j.issue(s, from, to, iteration, drain)
}

func (j *job) issue(s *program.Section, from, to, iteration int, drain bool) {
	if j.recorder != nil && from == 0 {
		j.recorder.section(s)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if from == 0 {
		j.entry.issue(s)
	}
	j.lanes.Issue(s, from, to, iteration, drain)
	j.wakeLanes()
}

func (j *job) wakeLanes() {
	for _, l := range j.workers {
		l.wake.Signal()
	}
}

// Host implements device.Job.
func (j *job) Host(s graph.StorageID) []float32 {
	j.mustRest("Host")
	if j.slots[s] >= graph.Bytes(len(j.kept.bytes)) {
		return nil // of what exists within an iteration alone
	}
	return j.kept.floats(j.slots[s], int(j.g.Storages[s].Bytes/graph.ElementBytes))
}

// Touched implements device.Job.
func (j *job) Touched() graph.Bytes {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.touched
}

// Close ends the lanes, also in the middle of what was issued, and gives all memory back.
func (j *job) Close() error {
	j.mu.Lock()
	j.closed = true
	j.wakeLanes()
	j.entry.close()
	j.mu.Unlock()
	for _, leave := range j.leave {
		leave()
	}
	j.running.Wait()
	j.entry.leave()
	j.device.forget(j)
	j.drop()
	if j.loaded != nil {
		j.loaded.spilled.free()
	}
	j.kept.free()
	j.device.unclaim(j.resident)
	j.device.lanes -= len(j.workers)
	return nil
}
