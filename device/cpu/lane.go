package cpu

import (
	"runtime"
	"sync"
	"time"

	"tensile/device"
	"tensile/device/cpu/kernel"
	"tensile/graph"
	"tensile/program"
)

// issued is a command in a lane's queue.
type issued struct {
	section   *program.Section
	command   *program.Command
	index     int
	iteration int
	last      bool               // of its section in its lane
	origin    [program.Lanes]int // counts when the section was issued: its waits are relative to them
	floor     [program.Lanes]int // counts when the lanes were last to be drained
}

// lane carries out commands one after the other. What it shares is guarded by the job's mutex.
type lane struct {
	job  *job
	lane program.Lane
	call kernel.Call[float32]

	wake   sync.Cond // the queue, a count that is awaited, the urgency, the time or closed has changed
	queue  []issued
	awaits bool               // waits for target
	target [program.Lanes]int // counts that the present command needs
	untold bool               // events were recorded that Next was not woken for
}

func newLane(j *job, l program.Lane) *lane {
	return &lane{job: j, lane: l, wake: sync.Cond{L: &j.mu}, call: kernel.Call[float32]{Seed: j.options.Seed, GEMM: j.device.engine}}
}

func (l *lane) run() {
	runtime.LockOSThread()
	for {
		item, ok := l.next()
		if !ok || !l.await(&item) {
			return
		}
		ready := l.job.device.Now()
		start := ready
		if item.command.Hold > 0 {
			if start, ok = l.hold(&item, ready); !ok {
				return
			}
		}
		l.execute(&item)
		l.finish(&item, ready, start)
	}
}

// next takes the next command; it reports false when the job is closed.
func (l *lane) next() (issued, bool) {
	j := l.job
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(l.queue) == 0 && !j.closed {
		l.wait()
	}
	if j.closed {
		return issued{}, false
	}
	item := l.queue[0]
	l.queue = l.queue[1:]
	return item, true
}

// wait blocks the lane until something has changed. Nothing that it has done stays untold meanwhile.
func (l *lane) wait() {
	if l.untold {
		l.untold = false
		l.job.device.wakeNext()
	}
	l.wake.Wait()
}

// await waits until the counts that the command names are reached, and hurries whatever is held before them.
func (l *lane) await(item *issued) bool {
	j := l.job
	target := item.floor
	for _, w := range item.command.Waits {
		target[w.Lane] = max(target[w.Lane], item.origin[w.Lane]+w.Count)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	l.target = target
	for other, count := range target {
		if j.done[other] < count && j.urgent[other] < count {
			j.urgent[other] = count
			j.lanes[other].wake.Signal()
		}
	}
	l.awaits = true
	for !l.reached() && !j.closed {
		l.wait()
	}
	l.awaits = false
	return !j.closed
}

// reached reports whether all counts of the target are.
func (l *lane) reached() bool {
	for other, count := range l.target {
		if l.job.done[other] < count {
			return false
		}
	}
	return true
}

// hold pauses before a copy until its time has come or another lane waits for it, and returns when that was.
func (l *lane) hold(item *issued, ready time.Duration) (time.Duration, bool) {
	j := l.job
	until := ready + item.command.Hold
	timer := time.AfterFunc(item.command.Hold, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		l.wake.Signal()
	})
	defer timer.Stop()
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.urgent[l.lane] <= j.done[l.lane] && j.device.Now() < until && !j.closed {
		l.wait()
	}
	return j.device.Now(), !j.closed
}

// finish counts the command as done, records its end, and wakes the lanes whose last unreached count this was. Next is
// woken at the end of a section; in between it learns what was recorded when the lane comes to rest.
func (l *lane) finish(item *issued, ready, start time.Duration) {
	j := l.job
	event := device.Event{Job: j, Section: item.section, Iteration: item.iteration, Index: item.index, Ready: ready, Start: start}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done[l.lane]++
	j.touched = max(j.touched, device.Reach(j.g, item.command))
	j.device.record(event) // before anyone who waits for it can end and be told of
	if l.untold = !item.last; item.last {
		j.device.wakeNext()
	}
	for _, other := range j.lanes {
		if other.awaits && other.reached() {
			other.wake.Signal()
		}
	}
}

func (l *lane) execute(item *issued) {
	j, c := l.job, item.command
	elements := int(c.Bytes / graph.ElementBytes)
	switch c.Kind {
	case program.Kernel:
		l.kernel(c, item.iteration)
	case program.Out:
		j.device.links[c.Kind].copy(j.at(c.Host, elements), j.at(c.Device, elements))
	case program.In:
		j.device.links[c.Kind].copy(j.at(c.Device, elements), j.at(c.Host, elements))
	case program.Load:
		j.options.Input(item.iteration, c.Storage, j.regions[program.HostMemory].at(j.slots[c.Storage], j.g.Storages[c.Storage].Bytes))
	case program.Read:
		j.options.Output(item.iteration, c.Storage, j.host(c.Storage))
	case program.Poison:
		poison(j.at(c.Device, elements))
	}
}

func (l *lane) kernel(c *program.Command, iteration int) {
	j, call := l.job, &l.call
	op := &j.g.Ops[c.Op]
	call.Kind, call.Attrs, call.Iteration = op.Kind, op.Attrs, iteration
	call.InShapes, call.OutShapes = j.inputs[c.Op], j.outputs[c.Op]
	call.In, call.Out = call.In[:0], call.Out[:0]
	for i, a := range c.Inputs {
		call.In = append(call.In, j.at(a, int(j.g.Tensors[op.Inputs[i]].Bytes()/graph.ElementBytes)))
	}
	for i, a := range c.Outputs {
		call.Out = append(call.Out, j.at(a, call.OutShapes[i].Elements()))
	}
	call.Scratch = j.at(c.Scratch, int(c.ScratchBytes/graph.ElementBytes))
	kernel.Run(call)
}
