package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/plan/program"
)

// lane is a stream of a program in a job.
type lane struct {
	job    *job
	unit   program.Unit
	handle Stream // none on the host
	stream program.Stream

	sent []*sent       // on the stream and not known to have ended; on the host the one that runs
	seen []int         // per lane: how many commands this one waits for, or has waited for
	last time.Duration // end of the last one that is known to have ended
}

// sent is a command that was put on a stream, or runs on the host.
type sent struct {
	lane       *lane
	round      *round
	index      int
	after      []*sent       // commands of other lanes that it waits for
	ready      time.Duration // end of what it waits for and had ended before it was put
	start, end Event         // start: 0 where it starts when what it waits for has ended
	last       bool          // It is the last command of its lane in the part that was issued.
	watched    bool
	done       bool          // it is known to have ended
	ended      time.Duration // when
}

func (s *sent) command() *program.Command { return &s.round.section.Commands[s.index] }

// round is a section that is carried out.
type round struct {
	run       *program.Run
	section   *program.Section
	iteration int
	prepared  []prepared
	left      int           // commands that have not ended
	base      Event         // against which times are measured; 0: nothing was put on a stream yet
	at        time.Duration // When the event was recorded.
	joined    []bool        // per lane: it waits for base
	counted   bool          // the device has the iteration
}

// prologueAhead is how many bytes of a prologue are on their stream at most, unless it is one copy: what was put there
// cannot give way any more.
const prologueAhead = 32 * graph.MiB

// busy reports whether a lane does something.
func (l *lane) busy() bool { return len(l.sent) > 0 }

// advance puts what can be put on streams, and starts what can start on the host.
func (j *job) advance() error {
	if err := j.admit(); err != nil || j.closed {
		return err
	}
	for changed := true; changed; {
		changed = false
		for _, l := range j.lanes {
			for l.may() {
				changed = true
				if err := l.next(); err != nil {
					return err
				}
			}
		}
	}
	if j.arrives() {
		j.watchAll()
	}
	return nil
}

// arrives reports whether copies of the prologue are to be put yet. Which of all jobs' goes next follows from how far
// each job has come, and whether it stands still.
func (j *job) arrives() bool {
	return slices.ContainsFunc(j.lanes, func(l *lane) bool {
		run, _ := j.put.Head(l.stream)
		return run != nil && run.Section == &j.loaded.program.Prologue
	})
}

// admit issues the sections that need not wait for all before them to end.
func (j *job) admit() error {
	for len(j.queue) > 0 && (!j.queue[0].drain || j.queue[0].from > 0 || j.ended.Idle()) {
		is := j.queue[0]
		j.queue = j.queue[1:]
		if _, err := j.prepare(is.section); err != nil {
			return err
		}
		if is.drain && is.from == 0 {
			for _, l := range j.lanes {
				j.floor = max(j.floor, l.last)
			}
		}
		j.put.Issue(is.section, is.from, is.to, is.iteration, is.drain)
		j.ended.Issue(is.section, is.from, is.to, is.iteration, is.drain)
		if is.from == 0 {
			j.device.arrivals.Issue(j.loaded.arrival, is.section)
		}
	}
	return nil
}

// may reports whether the next command of a lane may be put on its stream, or start on the host.
func (l *lane) may() bool {
	j := l.job
	if l.unit == program.Host {
		return j.ended.Ready(l.stream) && !l.busy()
	}
	if !j.put.Ready(l.stream) {
		return false
	}
	run, index := j.put.Head(l.stream)
	if run.Section != &j.loaded.program.Prologue {
		return true
	}
	ahead := run.Section.Commands[index].Bytes
	for _, s := range l.sent {
		ahead += s.command().Bytes
	}
	return (ahead <= prologueAhead || !l.busy()) &&
		!j.device.arrivals.Yields(j.loaded.arrival, j.ended.Awaited(l.stream))
}

// next puts the next command of a lane on its stream, or starts it on the host.
func (l *lane) next() error {
	j := l.job
	run, index := j.put.Head(l.stream)
	r := j.rounds[run]
	if r == nil {
		r = &round{run: run, section: run.Section, iteration: run.Iteration, prepared: j.prepared[run.Section],
			left: len(run.Section.Commands), joined: make([]bool, len(j.lanes))}
		j.rounds[run] = r
	}
	s := &sent{lane: l, round: r, index: index, ready: j.floor, last: j.put.Last(l.stream)}
	if l.unit == program.Host {
		l.sent = append(l.sent, s)
		s.ready = j.device.Now()
		j.run(s)
		return nil
	}
	if err := s.put(run); err != nil {
		return fmt.Errorf("job %s, iteration %d: %s: %w", j.options.Name, r.iteration, j.describe(s.command()), err)
	}
	j.put.End(l.stream)
	if r.section == &j.loaded.program.Prologue {
		j.device.arrivals.End(j.loaded.arrival, r.section, s.command())
	}
	return nil
}

// put puts a command on its stream, between the waits that it needs and an event.
func (s *sent) put(run *program.Run) error {
	l, j, d := s.lane, s.lane.job, s.lane.job.device
	still := !l.busy() || l.sent[len(l.sent)-1].last // the stream may have stood still, as far as the host knows
	if err := s.join(); err != nil {
		return err
	}
	waits, err := s.await(run)
	if err != nil {
		return err
	}
	l.sent = append(l.sent, s) // from here on it holds events
	if waits || still {
		if s.start, err = d.mark(l.handle); err != nil {
			return err
		}
	}
	if err := s.execute(); err != nil {
		return err
	}
	if s.end, err = d.mark(l.handle); err != nil {
		return err
	}
	if section := s.round.section; s.last || j.loaded.awaited[section][s.index] ||
		section == &j.loaded.program.Prologue {
		j.watch(s)
	}
	return nil
}

// mark records an event of the pool.
func (d *Device) mark(s Stream) (Event, error) {
	e, err := d.events.get()
	if err != nil {
		return 0, err
	}
	return e, d.driver.Record(s, e)
}

// join has the first command of a round on a stream wait for the event that times are measured against, which lies on a
// stream of its own, where it is reached at once.
func (s *sent) join() error {
	r, d := s.round, s.lane.job.device
	if r.base == 0 {
		r.at = d.Now()
		var err error
		if r.base, err = d.mark(d.clock); err != nil {
			return err
		}
	}
	if r.joined[s.lane.stream] {
		return nil
	}
	r.joined[s.lane.stream] = true
	return d.driver.Wait(s.lane.handle, r.base)
}

// await has the stream wait for what the command waits for, and reports whether there is anything.
func (s *sent) await(run *program.Run) (waits bool, err error) {
	l, j := s.lane, s.lane.job
	for _, w := range s.command().Waits {
		from, count := j.lanes[w.Stream], run.Count(w)
		ended := j.ended.Ended(w.Stream)
		if count <= ended {
			s.ready = max(s.ready, from.last)
			continue
		}
		to := from.sent[count-ended-1]
		s.after, waits = append(s.after, to), true
		if l.seen[w.Stream] >= count {
			continue
		}
		l.seen[w.Stream] = count
		if err := j.device.driver.Wait(l.handle, to.end); err != nil {
			return true, err
		}
	}
	return waits, nil
}

// execute puts a command itself on its stream.
func (s *sent) execute() error {
	j, c := s.lane.job, s.command()
	d, stream := j.device.driver, s.lane.handle
	switch c.Kind {
	case program.Kernel:
		return s.launch()
	case program.Out:
		return d.CopyOut(stream, j.bytes(c.Host, c.Bytes), j.addressOf(c.Device))
	case program.In:
		return d.CopyIn(stream, j.addressOf(c.Device), j.bytes(c.Host, c.Bytes))
	case program.Save:
		return d.CopyOut(stream, j.bytes(c.Snapshot, c.Bytes), j.addressOf(c.Device))
	case program.Poison:
		return d.Fill(stream, j.addressOf(c.Device), math.Float32bits(float32(math.NaN())),
			int(c.Bytes/graph.ElementBytes))
	}
	panic(fmt.Sprintf("cuda: a command of kind %s on a stream", c.Kind))
}

// launch puts the launches of an op on the stream. Before the first of a round goes the number of the iteration.
func (s *sent) launch() error {
	j, r := s.lane.job, s.round
	d, stream := j.device.driver, s.lane.handle
	if !r.counted {
		r.counted = true
		low, high := uint32(r.iteration), uint32(uint64(r.iteration)>>32)
		if err := errors.Join(d.Fill(stream, j.word, low, 1), d.Fill(stream, j.word+4, high, 1)); err != nil {
			return err
		}
	}
	for _, l := range r.prepared[s.index] {
		if err := d.Launch(stream, l); err != nil {
			return err
		}
	}
	return nil
}

// watch has Next learn when a command has ended, and with it all before it on its stream.
func (j *job) watch(s *sent) {
	if !s.watched && s.lane.unit != program.Host {
		s.watched = true
		j.device.driver.Watch(s.lane.handle, s.end, j.device.expect(s))
	}
}

// watchAll has Next learn when all that is on streams has ended.
func (j *job) watchAll() {
	for _, l := range j.lanes {
		if l.busy() {
			j.watch(l.sent[len(l.sent)-1])
		}
	}
}

// run carries out a command of the host lane.
func (j *job) run(s *sent) {
	c, iteration := s.command(), s.round.iteration
	do := func() {}
	var reads, writes device.Memory
	switch id := j.loaded.ids[c.Storage]; c.Kind {
	case program.Load:
		writes = j.bytes(c.Host, c.Bytes)
		do = func() { j.options.Input(iteration, id, writes) }
	case program.Read:
		reads = j.bytes(c.Host, c.Bytes)
		do = func() { j.options.Output(iteration, id, reads.Float32()) }
	case program.Keep:
		writes, reads = j.bytes(c.Snapshot, c.Bytes), j.bytes(c.Host, c.Bytes)
		do = func() { copy(writes, reads) }
	default:
		panic(fmt.Sprintf("cuda: a command of kind %s on the host lane", c.Kind))
	}
	j.device.driver.Run(func() {
		j.host.Lock()
		defer j.host.Unlock()
		if !j.closed {
			do()
		}
	}, reads, writes, j.device.expect(s))
}

// close gives back what a lane has.
func (l *lane) close() error {
	for _, s := range l.sent {
		l.job.device.events.put(s.start)
		if !s.watched {
			l.job.device.events.put(s.end)
		}
	}
	l.sent = nil
	if l.handle == 0 {
		return nil
	}
	return l.job.device.driver.DestroyStream(l.handle)
}
