package cpu

import (
	"context"
	"runtime"
	"sync"
	"time"

	"tensile/device"
	"tensile/device/cpu/kernel"
	"tensile/graph"
	"tensile/plan/program"
)

// item is a command that a lane carries out.
type item struct {
	section   *program.Section
	command   *program.Command
	index     int
	iteration int
	ready     time.Duration
	start     time.Duration
}

// lane carries out the commands of a stream one after the other. What it shares is guarded by the job's mutex.
type lane struct {
	job    *job
	stream program.Stream
	call   kernel.Call[float32]

	wake   sync.Cond // the queue, a count that is awaited, the pauses, the time or closed has changed
	awaits bool      // has a command that is not ready
	untold bool      // events were recorded that Next was not woken for
	stands bool      // computes, and waits for a copy of the prologue
}

func newLane(j *job, s program.Stream) *lane {
	return &lane{job: j, stream: s, wake: sync.Cond{L: &j.mu},
		call: kernel.Call[float32]{Seed: j.options.Seed, GEMM: j.device.engine}}
}

// run carries commands out until the job is closed, when ctx is done too.
func (l *lane) run(ctx context.Context) {
	runtime.LockOSThread()
	for {
		it, ok := l.next()
		if !ok {
			return
		}
		l.execute(ctx, &it)
		l.finish(&it)
	}
}

// next waits until a command may start and returns it; it reports false when the job is closed.
func (l *lane) next() (item, bool) {
	j := l.job
	j.mu.Lock()
	defer j.mu.Unlock()
	for !j.closed && (!l.bound() || !j.lanes.Ready(l.stream)) {
		if l.awaits = l.bound() && j.lanes.Queued(l.stream) > 0; l.awaits {
			l.hurry()
			l.stand()
		}
		l.wait()
	}
	l.awaits = false
	l.stand()
	if j.closed {
		return item{}, false
	}
	r, index := j.lanes.Head(l.stream)
	it := item{section: r.Section, command: &r.Section.Commands[index], index: index, iteration: r.Iteration,
		ready: j.device.Now()}
	if it.start = it.ready; it.command.Hold > 0 {
		it.start = l.hold(&it)
	}
	if it.command.Kind == program.In {
		l.arrive(&it)
	}
	return it, !j.closed
}

// stand tells the device whether the lane, if it computes, waits for a copy of the prologue.
func (l *lane) stand() {
	j := l.job
	if j.closed || j.loaded.program.Streams[l.stream] != program.Compute {
		return
	}
	awaited := false
	for s := range j.loaded.program.Streams {
		r, _ := j.lanes.Head(program.Stream(s))
		awaited = awaited || l.awaits && r != nil && r.Section == &j.loaded.program.Prologue &&
			j.lanes.Awaited(program.Stream(s))
	}
	if awaited != l.stands {
		l.stands = awaited
		j.entry.stand(awaited)
	}
}

// arrive begins a copy in. One of the prologue waits until it has the link. The caller holds the job's mutex, which is
// free meanwhile.
func (l *lane) arrive(it *item) {
	j := l.job
	if it.section == &j.loaded.program.Prologue {
		l.tell()
		j.mu.Unlock()
		j.entry.wait()
		j.mu.Lock()
		it.start = j.device.Now()
	}
	if !j.closed {
		j.entry.begin(it.section, it.command)
	}
}

// bound reports whether the loaded program has a stream for the lane.
func (l *lane) bound() bool { return int(l.stream) < len(l.job.loaded.program.Streams) }

// hurry ends the pauses of copies that the lane waits for.
func (l *lane) hurry() {
	if l.job.lanes.Hurry(l.stream) {
		l.job.wakeLanes()
	}
}

// wait blocks the lane until something has changed. Nothing that it has done stays untold meanwhile.
func (l *lane) wait() {
	l.tell()
	l.wake.Wait()
}

// tell has Next learn what was recorded.
func (l *lane) tell() {
	if l.untold {
		l.untold = false
		l.job.device.wakeNext()
	}
}

// hold pauses before a copy until its time has come or another lane waits for it, and returns when that was. The caller
// holds the job's mutex.
func (l *lane) hold(it *item) time.Duration {
	j := l.job
	until := it.ready + it.command.Hold
	timer := time.AfterFunc(it.command.Hold, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		l.wake.Signal()
	})
	defer timer.Stop()
	for !j.lanes.Hurried(l.stream) && j.device.Now() < until && !j.closed {
		l.wait()
	}
	return j.device.Now()
}

// finish counts the command as ended, records its end, and wakes the lanes that waited for it. Next is woken at the end
// of a section; in between it learns what was recorded when the lane comes to rest.
func (l *lane) finish(it *item) {
	j := l.job
	event := device.Event{Job: j, Section: it.section, Iteration: it.iteration, Index: it.index,
		Ready: it.ready, Start: it.start}
	j.mu.Lock()
	defer j.mu.Unlock()
	last := j.lanes.Last(l.stream)
	j.lanes.End(l.stream)
	if k := it.command.Kind; k == program.In || k.Executes() {
		j.entry.end(it.section, it.command)
	}
	j.touched = max(j.touched, j.loaded.program.Reach(it.command))
	j.device.record(event) // before anyone who waits for it can end and be told of
	if l.untold = !last; last {
		j.device.wakeNext()
	}
	for _, other := range j.workers {
		switch {
		case !other.awaits:
		case j.lanes.Ready(other.stream):
			other.wake.Signal()
		default:
			other.hurry()
		}
	}
}

func (l *lane) execute(ctx context.Context, it *item) {
	j, c := l.job, it.command
	elements := int(c.Bytes / graph.ElementBytes)
	switch c.Kind {
	case program.Kernel:
		l.kernel(c, it.iteration)
	case program.Reduce:
		op := &j.loaded.program.Graph.Ops[c.Op]
		gradient := j.elementsAt(c.Outputs[0], elementsOf(&j.loaded.program.Graph.Tensors[op.Outputs[0]]))
		j.options.Mean(ctx, it.iteration, op.Name, gradient)
	case program.Out:
		j.device.links[c.Kind].copy(j.elementsAt(c.Host, elements), j.elementsAt(c.Device, elements))
	case program.In:
		j.device.links[c.Kind].copy(j.elementsAt(c.Device, elements), j.elementsAt(c.Host, elements))
	case program.Save:
		j.device.links[program.Out].copy(j.elementsAt(c.Snapshot, elements), j.elementsAt(c.Device, elements))
	case program.Keep:
		copy(j.elementsAt(c.Snapshot, elements), j.elementsAt(c.Host, elements))
	case program.Load:
		j.options.Input(it.iteration, j.loaded.ids[c.Storage], j.bytes(c.Host, c.Bytes))
	case program.Read:
		j.options.Output(it.iteration, j.loaded.ids[c.Storage], j.elementsAt(c.Host, elements))
	case program.Poison:
		poison(j.elementsAt(c.Device, elements))
	}
}

func (l *lane) kernel(c *program.Command, iteration int) {
	j, call, g := l.job, &l.call, l.job.loaded.program.Graph
	op := &g.Ops[c.Op]
	call.Kind, call.Attrs, call.Variant, call.Iteration = op.Kind, op.Attrs, c.Variant, iteration
	call.InShapes, call.OutShapes = j.loaded.inputs[c.Op], j.loaded.outputs[c.Op]
	call.In, call.Out = call.In[:0], call.Out[:0]
	for i, a := range c.Inputs {
		call.In = append(call.In, j.elementsAt(a, elementsOf(&g.Tensors[op.Inputs[i]])))
	}
	for i, a := range c.Outputs {
		call.Out = append(call.Out, j.elementsAt(a, elementsOf(&g.Tensors[op.Outputs[i]])))
	}
	call.Scratch = j.elementsAt(c.Scratch, int(c.ScratchBytes/graph.ElementBytes))
	kernel.Run(call)
}

// elementsOf is how many float32 the elements of a tensor fill, the last perhaps in part.
func elementsOf(t *graph.Tensor) int {
	return int((t.Bytes() + graph.ElementBytes - 1) / graph.ElementBytes)
}
