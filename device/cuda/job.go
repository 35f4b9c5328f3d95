package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/plan/program"
)

// job implements device.Job.
type job struct {
	device  *Device
	g       *graph.Graph // The graph that the job was opened with.
	options device.JobOptions
	kept    *pinned       // Host slots of storages that live on the host. They do not move when a program is loaded.
	slots   []graph.Bytes // Offset in kept of each storage of g.
	word    Address       // Device address of the number of the iteration, an int64.

	loaded   *loaded   // The bound program; nil before the first Load.
	snapshot *snapshot // The last one that was asked for; nil if none was.
	arena    Address
	reserved graph.Bytes                     // Size of the arena.
	paged    bool                            // Hold backs the arena page by page.
	held     program.Pages                   // Pages that are backed, if the arena is paged.
	touched  graph.Bytes                     // Highest end of arena bytes that the job has used.
	prepared map[*program.Section][]prepared // Prepared launches per section, valid for the loaded program and arena.

	newest issue          // The last part of a program that was issued.
	queue  []issue        // Parts that wait until all earlier ones have ended.
	put    *program.Lanes // Progress by issue: a command counts once it is on a stream, or has ended on the host lane.
	ended  *program.Lanes // Progress by completion: a command counts once it is known to have ended.
	lanes  []*lane        // One per stream of the loaded program.
	spare  []*lane        // Lanes of earlier programs, whose streams are used again.
	rounds map[*program.Run]*round
	floor  time.Duration // When everything before the last draining section had ended.

	host   sync.Mutex // Held while a command of the host lane is executed.
	closed bool
}

// issue is a part of a section that was issued.
type issue struct {
	section   *program.Section
	from, to  int
	iteration int
	drain     bool
}

// follows reports whether a part may be issued after another one, the zero issue being none.
func (is issue) follows(before issue) bool {
	n := len(is.section.Commands)
	if is.to > n || is.to <= is.from && is.to < n {
		return false
	}
	if before.section == nil || before.to == len(before.section.Commands) {
		return is.from == 0
	}
	return is.section == before.section && is.from == before.to
}

// Open makes a place for a job, with pinned memory for what it keeps on the host.
func (d *Device) Open(g *graph.Graph, o device.JobOptions) (device.Job, error) {
	defer d.enter()()
	if d.err != nil {
		return nil, d.failure()
	}
	j := &job{device: d, g: g, options: o, put: program.NewLanes(nil), ended: program.NewLanes(nil)}
	var size graph.Bytes
	j.slots, size = program.HostSlots(g)
	var err error
	if j.kept, err = d.memory.get(size); err != nil {
		return nil, fmt.Errorf("job %s: %w", o.Name, err)
	}
	if j.word, err = d.driver.Alloc(align); err != nil {
		return nil, errors.Join(fmt.Errorf("job %s: %w", o.Name, err), d.memory.put(j.kept))
	}
	d.jobs = append(d.jobs, j)
	return j, nil
}

// Reserve implements device.Job. It returns a device.OutOfMemoryError if the device has no room for the arena.
func (j *job) Reserve(arena graph.Bytes) error {
	j.mustRest("Reserve")
	if arena < 0 || arena%align != 0 {
		panic(fmt.Sprintf("cuda: Reserve(%d) of job %q: not a multiple of %d", arena, j.options.Name, align))
	}
	defer j.device.enter()()
	if j.device.err != nil {
		return j.device.failure()
	}
	d := j.device
	if err := j.drop(); err != nil {
		return err
	}
	if arena == 0 {
		if j.loaded == nil {
			return nil
		}
		spilled := j.loaded.spilled
		j.loaded.spilled = nil // in Home nobody reads it
		return d.memory.put(spilled)
	}
	reserve := d.driver.Alloc
	if j.paged {
		reserve = func(size graph.Bytes) (Address, error) { return d.driver.ReserveAddresses(d.wholePages(size)) }
	}
	a, err := reserve(arena)
	if err != nil {
		return j.noRoom(arena, err)
	}
	j.arena, j.reserved = a, arena
	return nil
}

// noRoom returns the error of a job that does not get memory for an arena, or for what it is to hold of one.
func (j *job) noRoom(size graph.Bytes, err error) error {
	d := j.device
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != OutOfMemory {
		return fmt.Errorf("job %s: reserve an arena of %s: %w", j.options.Name, size, err)
	}
	free, total, unknown := d.driver.Free()
	if unknown != nil {
		return errors.Join(err, unknown)
	}
	return &device.OutOfMemoryError{Job: j.options.Name, Device: d.Name(), Arena: size, Free: free, Total: total,
		Err: err}
}

// drop gives the arena back.
func (j *job) drop() error {
	arena, size, held := j.arena, j.reserved, j.held
	j.arena, j.reserved, j.held, j.touched, j.prepared = 0, 0, nil, 0, nil
	if arena == 0 {
		return nil
	}
	var err error
	if d := j.device; j.paged {
		for _, r := range held {
			err = errors.Join(err, d.unmap(arena, r))
		}
		err = errors.Join(err, d.driver.ReleaseAddresses(arena, d.wholePages(size)))
	} else {
		err = d.driver.Release(arena)
	}
	if err != nil {
		return fmt.Errorf("job %s: give the arena back: %w", j.options.Name, err)
	}
	return nil
}

// rests reports whether everything issued has ended.
func (j *job) rests() bool { return len(j.queue) == 0 && j.ended.Idle() }

func (j *job) mustRest(what string) {
	if j.closed || !j.rests() {
		panic(fmt.Sprintf("cuda: %s of job %q, which is closed or has commands that have not ended", what,
			j.options.Name))
	}
}

// Issue implements device.Job. It panics unless the section is of the loaded program, and the arena large enough.
func (j *job) Issue(s *program.Section, from, to, iteration int, drain bool) {
	switch l := j.loaded; {
	case j.closed:
		panic(fmt.Sprintf("cuda: Issue to job %q, which is closed", j.options.Name))
	case l == nil || !l.program.Has(s):
		panic(fmt.Sprintf("cuda: Issue to job %q of a section that is not of the program that it has loaded",
			j.options.Name))
	case l.program.Arena > j.reserved:
		panic(fmt.Sprintf("cuda: Issue to job %q: its program uses %d bytes of an arena of %d", j.options.Name,
			l.program.Arena, j.reserved))
	case s == &l.program.Snapshot && j.snapshot == nil:
		panic(fmt.Sprintf("cuda: Issue to job %q of a snapshot section, and there is no memory for it",
			j.options.Name))
	}
	is := issue{s, from, to, iteration, drain}
	if !is.follows(j.newest) {
		panic(fmt.Sprintf("cuda: Issue to job %q of commands %d to %d, which do not follow what was issued before",
			j.options.Name, from, to))
	}
	j.mustHold(s.Commands[from:to])
	j.newest = is
	defer j.device.enter()()
	j.queue = append(j.queue, is)
	j.device.advance()
}

// Host implements device.Job.
func (j *job) Host(s graph.StorageID) []float32 {
	j.mustRest("Host")
	if j.slots[s] < 0 {
		return nil // of what exists within an iteration alone
	}
	return j.kept.slice(j.slots[s], j.g.Storages[s].Bytes).Float32()
}

// Touched implements device.Job.
func (j *job) Touched() graph.Bytes { return j.touched }

// Close drops what is queued, waits for what is on streams, and gives everything back.
func (j *job) Close() error {
	d := j.device
	defer d.enter()()
	j.queue = nil
	j.host.Lock() // waits for a command of the host lane; those after it find that the job is closed
	j.closed = true
	j.host.Unlock()
	if d.err == nil {
		j.watchAll()
	}
	problems := []error{j.wait()}
	for _, r := range j.rounds {
		d.events.put(r.base)
	}
	for _, l := range slices.Concat(j.lanes, j.spare) {
		problems = append(problems, l.close())
	}
	problems = append(problems, j.drop(), d.driver.Release(j.word), d.memory.put(j.kept))
	if j.loaded != nil {
		problems = append(problems, d.memory.put(j.loaded.spilled))
		d.arrivals.Close(j.loaded.arrival)
	}
	d.jobs = slices.DeleteFunc(d.jobs, func(other *job) bool { return other == j })
	d.ended = slices.DeleteFunc(d.ended, func(e device.Event) bool { return e.Job == j })
	d.advance() // prologues of others may have waited for this one's
	if err := errors.Join(append(problems, d.untold())...); err != nil {
		return fmt.Errorf("job %s: %w", j.options.Name, err)
	}
	return nil
}

// wait waits until nothing of a job that was closed is on streams, and nothing of it watched or run.
func (j *job) wait() error {
	d := j.device
	waits := func() bool {
		for _, s := range d.tokens {
			if s.lane.job == j {
				return true
			}
		}
		return false
	}
	for waits() {
		token, _, err := d.driver.Next(context.Background(), nil)
		if err != nil {
			d.fail(fmt.Errorf("wait for the device: %w", err))
			break
		}
		d.take(token)
		d.advance() // other jobs
	}
	for token, s := range d.tokens {
		if s.lane.job == j {
			delete(d.tokens, token)
		}
	}
	if d.err != nil { // something may be on streams of which nobody will tell
		return d.driver.Synchronize()
	}
	return nil
}
