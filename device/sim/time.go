package sim

import (
	"math"
	"time"

	"tensile/device"
	"tensile/program"
)

// grain is how many units of work make up a nanosecond: a multiple of 1 to 16, so that the even share of up to 16 jobs
// is a whole number. The products below fit for commands of up to three hours, divided by the number of jobs.
const grain = 720720

// settle starts everything that can start now, and ends what takes no time, until nothing changes.
func (d *Device) settle() {
	for changed := true; changed; {
		changed = false
		for _, j := range d.jobs {
			for l := range program.Lanes {
				changed = d.step(j, l) || changed
			}
		}
	}
}

// step brings a lane of a job forward if it can be at this instant, and reports whether anything changed.
func (d *Device) step(j *job, l program.Lane) bool {
	lane := &j.lanes[l]
	if lane.state == running || len(lane.queue) == 0 {
		return false
	}
	q := lane.queue[0]
	if lane.state == blocked {
		if !j.reached(q) {
			return j.hurryFor(q)
		}
		lane.state, lane.ready = held, d.now
	}
	if d.now-lane.ready < q.hold() && lane.ended >= lane.hurried {
		return false
	}
	lane.state, lane.start, lane.left = running, d.now, grain*int64(d.duration(j, q))
	j.touch(q.command())
	if lane.left == 0 {
		d.end(j, l)
	}
	return true
}

// end takes the first command of a lane from its queue and reports it.
func (d *Device) end(j *job, l program.Lane) {
	lane := &j.lanes[l]
	q := lane.queue[0]
	lane.queue = lane.queue[1:]
	lane.ended++
	lane.state = blocked
	d.events = append(d.events, device.Event{Job: j, Section: q.run.section, Iteration: q.run.iteration, Index: q.index,
		Ready: lane.ready, Start: lane.start, End: d.now})
}

// users returns how many jobs have a running command, per lane.
func (d *Device) users() [program.Lanes]int64 {
	var n [program.Lanes]int64
	for _, j := range d.jobs {
		for l := range j.lanes {
			if j.lanes[l].state == running {
				n[l]++
			}
		}
	}
	return n
}

// pause returns the time until the next running command or hold ends, rounded up to nanoseconds, and whether there is
// one.
func (d *Device) pause() (time.Duration, bool) {
	users := d.users()
	pause, found := time.Duration(math.MaxInt64), false
	for _, j := range d.jobs {
		for l := range j.lanes {
			switch lane := &j.lanes[l]; lane.state {
			case running:
				pause, found = min(pause, time.Duration((lane.left*users[l]+grain-1)/grain)), true
			case held:
				pause, found = min(pause, lane.queue[0].hold()-(d.now-lane.ready)), true
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
		for l := range program.Lanes {
			if lane := &j.lanes[l]; lane.state == running {
				if lane.left -= int64(pause) * grain / users[l]; lane.left <= 0 {
					d.end(j, l)
				}
			}
		}
	}
}

// duration returns how long a command takes when it has its unit or link for itself.
func (d *Device) duration(j *job, q queued) time.Duration {
	switch c := q.command(); c.Kind {
	case program.Kernel:
		return d.noisy(j, q, j.latency[c.Op])
	case program.Out:
		return d.facts.Out.Time(c.Bytes)
	case program.In:
		return d.facts.In.Time(c.Bytes)
	}
	return 0
}
