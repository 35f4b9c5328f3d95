package lease

import (
	"fmt"
	"slices"
	"time"
)

// Options are the settings of a machine. The zero value is the recommended one.
type Options struct {
	// Overtakes is how often requests behind a First or Join that does not fit may be granted before it; 0: 8.
	// More use the memory better, fewer shorten the wait of jobs with large groups.
	Overtakes int
}

const defaultOvertakes = 8

// Machine is the lease of one device's pages. It is not safe for concurrent use.
type Machine struct {
	options  Options
	capacity int
	now      time.Duration
	jobs     map[Job]*holder
	joined   []*holder // by their Join's grant
	order    []*holder // those whose iteration has begun and waits for more groups, oldest first
	queue    []*holder // those whose Join or First waits
	arrivals int64
	served   int64         // of the newest that came out of the queue: those that join start there
	left     map[Job]int64 // what jobs that have left were served, where it is more
	out      []Output
}

// holder is a job as the machine knows it.
type holder struct {
	Join
	joined bool
	began  bool // it is in the order
	hold   int
	rest   int // while began
	want   Want
	asking bool // want is not granted yet

	arrival   int64 // in the queue
	overtaken int
	served    int64         // microseconds x pages / weight
	charged   time.Duration // until when served counts

	draining bool
}

// NewMachine returns a machine that knows of no jobs, and of no capacity.
func NewMachine(o Options) *Machine {
	if o.Overtakes == 0 {
		o.Overtakes = defaultOvertakes
	}
	return &Machine{options: o, jobs: make(map[Job]*holder), left: make(map[Job]int64)}
}

// Step tells the machine an input and returns what follows. It takes time in proportion to the number of jobs.
func (m *Machine) Step(in Input) []Output {
	m.now = max(m.now, in.Now)
	m.out = nil
	switch {
	case in.Join != nil:
		m.join(in.Join)
	case in.Want != nil:
		m.want(in.Want)
	case in.Passed != nil:
		m.passed(in.Passed)
	case in.Leave != nil:
		m.leave(in.Leave.Job)
	case in.Capacity != nil:
		m.resize(in.Capacity.Pages)
	}
	for m.grantGroups() {
	}
	m.grantQueue()
	return m.out
}

func (m *Machine) say(kind Kind, job Job, why string) {
	m.out = append(m.out, Output{Kind: kind, Job: job, Why: why})
}

func (m *Machine) refuse(job Job, format string, args ...any) {
	m.say(Refuse, job, fmt.Sprintf(format, args...))
}

func (m *Machine) join(j *Join) {
	switch {
	case m.jobs[j.Job] != nil:
		m.refuse(j.Job, "it has asked to join already")
	case j.Base < 0 || j.Peak < j.Base || j.Peak > MaxPages:
		m.refuse(j.Job, "base %d, peak %d: a peak is from its base to %d pages", j.Base, j.Peak, MaxPages)
	case j.Weight < 0 || j.Weight > MaxWeight:
		m.refuse(j.Job, "weight %d: give 1 to %d, or 0 for 1", j.Weight, MaxWeight)
	default:
		k := &holder{Join: *j, served: m.left[j.Job], charged: m.now}
		k.Weight = max(k.Weight, 1)
		delete(m.left, j.Job)
		m.jobs[j.Job] = k
		m.enqueue(k)
	}
}

func (m *Machine) want(w *Want) {
	k := m.jobs[w.Job]
	switch {
	case k == nil || !k.joined:
		m.refuse(w.Job, "it wants a group, and has not joined")
	case w.First == k.began:
		m.refuse(w.Job, "it wants a group that is first of an iteration: %v, and is within one: %v", w.First, k.began)
	case w.Rest < k.Base || w.Rest > k.Peak:
		m.refuse(w.Job, "rest %d is not from its base %d to its peak %d", w.Rest, k.Base, k.Peak)
	case k.began && w.Rest > k.rest:
		m.refuse(w.Job, "rest rises from %d to %d within an iteration", k.rest, w.Rest)
	case w.Hold < 0 || w.Hold > MaxPages:
		m.refuse(w.Job, "hold %d is not from 0 to %d pages", w.Hold, MaxPages)
	case (w.First || w.Last) && w.Hold < k.Base:
		m.refuse(w.Job, "hold %d is below its base %d in the first or last group", w.Hold, k.Base)
	default:
		queued := k.asking && !k.began
		k.want, k.asking = *w, true
		if w.First && !queued {
			m.enqueue(k)
		}
	}
}

func (m *Machine) passed(p *Passed) {
	k := m.jobs[p.Job]
	switch {
	case k == nil || !k.joined:
		m.refuse(p.Job, "it has passed a group, and has not joined")
	case p.Hold < 0 || p.Hold > k.hold:
		m.refuse(p.Job, "its hold goes from %d to %d, and falls only", k.hold, p.Hold)
	default:
		m.charge(k)
		k.hold = p.Hold
	}
}

func (m *Machine) leave(job Job) {
	k := m.jobs[job]
	if k == nil {
		m.refuse(job, "it leaves, and has not joined")
		return
	}
	m.charge(k)
	is := func(other *holder) bool { return other == k }
	m.joined = slices.DeleteFunc(m.joined, is)
	m.order = slices.DeleteFunc(m.order, is)
	m.queue = slices.DeleteFunc(m.queue, is)
	delete(m.jobs, job)
	m.remember(k)
}

func (m *Machine) resize(pages int) {
	if pages < 0 || pages > MaxPages {
		m.refuse("", "capacity %d is not from 0 to %d pages", pages, MaxPages)
		return
	}
	m.capacity = pages
	m.shed()
}

// grantGroups grants what the jobs of the order ask for, where (T) and (S) allow it. One pass from the oldest to the
// youngest does, since a grant leaves the others with less; but after the last group of an iteration, which leaves more to
// those older than it, it reports that there should be another.
func (m *Machine) grantGroups() (again bool) {
	total, idle, younger := m.sums()
	room := MaxPages // by how much holds may rise, for all of the order that was passed
	older := 0
	for i := 0; i < len(m.order); {
		k := m.order[i]
		younger -= k.hold
		beside := idle + older + younger // what k has to leave, when it ends
		if k.asking {
			hold := max(k.hold, k.want.Hold)
			more := hold - k.hold
			before, after := beside+max(k.rest, k.hold), beside+max(k.want.Rest, hold)
			limit := m.capacity // of the sum
			if i == 0 {
				limit = max(limit, before) // a promise that was made before the capacity fell
			}
			if (after <= before || after <= m.capacity) && (more == 0 || more <= room && total+more <= limit) {
				m.charge(k)
				k.hold, k.rest, k.asking = hold, k.want.Rest, false
				total, room = total+more, room-more
				m.say(Grant, k.Job, "")
				if k.want.Last {
					k.began = false
					m.order = slices.Delete(m.order, i, i+1)
					idle += k.Base
					again = true
					continue
				}
			}
		}
		room = min(room, m.capacity-beside-max(k.rest, k.hold))
		older += k.Base
		i++
	}
	return again
}

// sums returns the sum of all holds, of the bases of idle jobs, and of the holds of the order.
func (m *Machine) sums() (total, idle, began int) {
	for _, k := range m.joined {
		total += k.hold
		if k.began {
			began += k.hold
		} else {
			idle += k.Base
		}
	}
	return total, idle, began
}

// fits reports whether (T) and (S) allow a First, or a Join if the job has not joined.
func (m *Machine) fits(k *holder) bool {
	total, idle, younger := m.sums()
	hold, rest := k.next()
	if total-k.hold+hold > m.capacity {
		return false
	}
	if k.joined {
		idle -= k.Base
		younger += hold
	} else {
		idle += k.Base
	}
	older := 0
	for _, i := range m.order {
		younger -= i.hold
		if idle+older+max(i.rest, i.hold)+younger > m.capacity {
			return false
		}
		older += i.Base
	}
	return !k.joined || idle+older+max(rest, hold) <= m.capacity
}

// next returns what a job of the queue would hold, and the most that it would need until its iteration ends.
func (k *holder) next() (hold, rest int) {
	if !k.joined {
		return k.Base, k.Base
	}
	return max(k.hold, k.want.Hold), k.want.Rest
}
