package sim

import (
	"math"
	"time"

	"tensile/device"
	"tensile/plan/program"
)

// grain is how many units of work make up a nanosecond: a multiple of 1 to 16, so that the even share of up to 16 jobs
// is a whole number. The products below fit for commands of up to three hours, divided by the number of jobs.
const grain = 720720

// settle starts everything that can start now, and ends what takes no time, until nothing changes.
func (d *Device) settle() {
	for changed := true; changed; {
		changed = false
		for _, j := range d.jobs {
			for s := range j.heads {
				changed = d.step(j, program.Stream(s)) || changed
			}
		}
	}
}

// step brings a lane of a job forward if it can be at this instant, and reports whether anything changed.
func (d *Device) step(j *job, s program.Stream) bool {
	h := &j.heads[s]
	if h.state >= faulting || j.lanes.Queued(s) == 0 {
		return false
	}
	if h.state == blocked {
		if !j.lanes.Ready(s) {
			return j.lanes.Hurry(s)
		}
		h.state, h.ready = held, d.now
	}
	c := j.command(s)
	if d.now-h.ready < c.Hold && !j.lanes.Hurried(s) || d.yields(j, s) {
		return false
	}
	d.entries.Begin(j.entry, j.section(s), c)
	launch, work := d.duration(j, s)
	h.state, h.start, h.launch, h.work = launching, d.now, launch, work
	j.touched = max(j.touched, j.program.Reach(c))
	if h.left = grain * int64(d.faults(j, c)); h.left > 0 {
		h.state = faulting
		return true
	}
	d.launch(j, s)
	return true
}

// launch has a command launch, all of whose pages are on the device.
func (d *Device) launch(j *job, s program.Stream) {
	h := &j.heads[s]
	h.state, h.left = launching, grain*int64(h.work)
	d.work(j, s)
}

// work has a launched command do its work, or end if it has none. One that is still launching goes on with that.
func (d *Device) work(j *job, s program.Stream) {
	h := &j.heads[s]
	switch {
	case h.launch > 0:
	case h.left > 0:
		h.state = running
	default:
		d.end(j, s)
	}
}

// section returns that of the first command of a lane that has one.
func (j *job) section(s program.Stream) *program.Section {
	r, _ := j.lanes.Head(s)
	return r.Section
}

// yields reports whether the first command of a lane is a copy of a prologue that leaves the link to others.
func (d *Device) yields(j *job, s program.Stream) bool {
	return j.section(s) == &j.program.Prologue && d.entries.Yields(j.entry, j.lanes.Awaited(s))
}

// end takes the first command of a lane from its queue and reports it.
func (d *Device) end(j *job, s program.Stream) {
	h := &j.heads[s]
	r, index := j.lanes.Head(s)
	d.entries.End(j.entry, r.Section, &r.Section.Commands[index])
	j.lanes.End(s)
	h.state = blocked
	d.events = append(d.events, device.Event{Job: j, Section: r.Section, Iteration: r.Iteration, Index: index,
		Ready: h.ready, Start: h.start, End: d.now})
}

// users returns how many lanes have a running command, per unit. A command that is being launched uses no unit.
func (d *Device) users() [program.Units]int64 {
	var n [program.Units]int64
	for _, j := range d.jobs {
		for s := range j.heads {
			if u, uses := j.heads[s].uses(); uses {
				n[u]++
			}
		}
	}
	return n
}

// uses returns the unit that a command uses now: one that faults has the link.
func (h *head) uses() (u program.Unit, uses bool) {
	switch h.state {
	case faulting:
		return program.CopyIn, true
	case running:
		return h.unit, true
	}
	return 0, false
}

// pause returns the time until the next launch, running command or hold ends, rounded up to nanoseconds, and whether
// there is one.
func (d *Device) pause() (time.Duration, bool) {
	users := d.users()
	pause, found := time.Duration(math.MaxInt64), false
	for _, j := range d.jobs {
		for s := range j.heads {
			switch h := &j.heads[s]; h.state {
			case launching:
				pause, found = min(pause, h.launch), true
			case faulting, running:
				u, _ := h.uses()
				pause, found = min(pause, time.Duration((h.left*users[u]+grain-1)/grain)), true
			case held:
				left := j.command(program.Stream(s)).Hold - (d.now - h.ready)
				if left > 0 { // else it yields until something has ended
					pause, found = min(pause, left), true
				}
			}
		}
	}
	return pause, found
}

// advance lets time pass, no more than pause says, and ends what is done.
func (d *Device) advance(pause time.Duration) {
	users := d.users()
	d.now += pause
	for _, j := range d.jobs {
		for s := range j.heads {
			switch h := &j.heads[s]; h.state {
			case launching:
				h.launch -= pause
				d.work(j, program.Stream(s))
			case faulting:
				if h.left -= int64(pause) * grain / users[program.CopyIn]; h.left <= 0 {
					d.launch(j, program.Stream(s))
				}
			case running:
				if h.left -= int64(pause) * grain / users[h.unit]; h.left <= 0 {
					d.end(j, program.Stream(s))
				}
			}
		}
	}
}

// duration returns how long the first command of a lane takes when it has its unit for itself, in two parts. The launch
// comes first, and only kernels have one: the part of their duration up to Facts.Launch.
func (d *Device) duration(j *job, s program.Stream) (launch, work time.Duration) {
	switch c := j.command(s); c.Kind {
	case program.Kernel:
		r, index := j.lanes.Head(s)
		alone := d.noisy(j.name, r.Iteration, index, j.takes(c))
		launch = min(alone, d.facts.Launch)
		return launch, alone - launch
	case program.Reduce:
		return 0, j.takes(c)
	case program.Out, program.Save:
		return 0, d.facts.Out.Time(c.Bytes)
	case program.In:
		return 0, d.facts.In.Time(c.Bytes)
	case program.Keep:
		return 0, d.facts.Host.Time(c.Bytes)
	}
	return 0, 0
}
