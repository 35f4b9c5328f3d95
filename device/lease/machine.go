package lease

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Options are the settings of a machine. The zero value is the recommended one.
type Options struct {
	// Overtakes is how often requests behind a First or Join that does not fit may be granted before it; 0: 8.
	// More use the memory better, fewer shorten the wait of jobs with large groups.
	Overtakes int
	// Still is how long a job may hold pages that others wait for without a word, and without waiting itself. Then it
	// is told to drain, and after as long again the others do without its pages, until it says something.
	// 0: 10 s; negative: for ever. Where a job holds all of its memory for a turn of many iterations
	// it is the length of a turn.
	Still time.Duration
	// Methods returns a new method by the word of a Capacity, nil if there is none by that word; nil: NewMethod.
	Methods func(word string) Method
}

const (
	defaultOvertakes = 8
	defaultStill     = 10 * time.Second
)

// Machine is the lease of one device's pages. It is not safe for concurrent use.
type Machine struct {
	options  Options
	capacity int
	newest   int64 // number of the capacity
	open     bool  // there was one
	// bound is what jobs may hold at most: the capacity, or what was promised to iterations that began before it
	// fell.
	bound    int
	now      time.Duration
	jobs     map[Job]*holder
	joined   []*holder // by their Join's grant
	order    []*holder // those whose iteration has begun and waits for more groups, oldest first
	live     int       // so many of the order go on; the others are aside, or in need of what those hold
	lacks    bool      // the oldest asks, and waits for nothing but that idle jobs come to hold their Base
	queue    []*holder // those whose Join or First waits
	arrivals int64
	begun    int64         // the newest seniority
	served   int64         // by the least served of those that have something to do; who joins them starts there
	left     map[Job]int64 // what jobs that have left were served, where it is more
	word     string        // of the method
	method   Method        // nil: what the rule allows is granted at once
	out      []Output
}

// holder is a job as the machine knows it.
type holder struct {
	Join
	joined bool
	began  bool  // it is in the order
	asked  int64 // the Ask of its newest grant
	hold   int
	rest   int   // while began: the most that a group needs, from the newest that was granted or asked for
	senior int64 // its seniority while began
	want   Want
	asking bool // want is not granted yet
	at     Want // the newest that was granted
	delay       // of want

	arrival   int64 // in the queue
	overtaken int
	served    int64         // microseconds x pages / weight
	charged   time.Duration // until when served counts
	since     int64         // what it was when the newest iteration began
	turn      int64         // by how much it grew from the beginning of the iteration before to that

	heard    time.Duration // when it said something, or was granted something, or told to drain
	draining bool
	aside    bool // it stands still, and nobody counts on it
}

// NewMachine returns a machine that knows of no jobs, and of no capacity.
func NewMachine(o Options) *Machine {
	if o.Overtakes == 0 {
		o.Overtakes = defaultOvertakes
	}
	if o.Still == 0 {
		o.Still = defaultStill
	}
	if o.Methods == nil {
		o.Methods = NewMethod
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
		m.resize(in.Capacity)
	case in.Rejoin != nil:
		m.rejoin(in.Rejoin)
	}
	if !m.open {
		return m.out
	}
	m.grants()
	if m.watch() {
		m.grants()
	}
	return m.out
}

// grants grants all that can be granted.
func (m *Machine) grants() {
	if slices.ContainsFunc(m.joined, func(k *holder) bool { return k.aside }) {
		m.arrange()
	} else {
		m.live = len(m.order)
	}
	for again := true; again; again = m.relents() {
		for _, k := range m.joined {
			k.delayed = false
		}
		m.lower()
		m.grantGroups()
		m.grantQueue()
	}
}

// hear returns a job of an input, nil if there is none.
func (m *Machine) hear(job Job) *holder {
	k := m.jobs[job]
	if k != nil {
		k.heard, k.aside = m.now, false
	}
	return k
}

func (m *Machine) say(kind Kind, job Job, why string) {
	m.out = append(m.out, Output{Kind: kind, Job: job, Why: why})
}

func (m *Machine) refuse(job Job, format string, args ...any) {
	m.say(Refuse, job, fmt.Sprintf(format, args...))
}

func (m *Machine) join(j *Join) {
	if k := m.enter(j); k != nil {
		m.enqueue(k)
	}
}

// enter returns a new job, nil if it is refused.
func (m *Machine) enter(j *Join) *holder {
	switch {
	case m.jobs[j.Job] != nil:
		m.refuse(j.Job, "it has asked to join already")
	case j.Base < 0 || j.Peak < j.Base || j.Peak > MaxPages:
		m.refuse(j.Job, "base %d, peak %d: a peak is from its base to %d pages", j.Base, j.Peak, MaxPages)
	case j.Ask <= 0:
		m.refuse(j.Job, "it numbers what it asks for %d, and not from 1", j.Ask)
	case j.Weight < 0 || j.Weight > MaxWeight:
		m.refuse(j.Job, "weight %d: give 1 to %d, or 0 for 1", j.Weight, MaxWeight)
	case !j.known():
		m.refuse(j.Job, "it has more than %d groups, or some that need more than its peak %d, or take longer than %v",
			MaxGroups, j.Peak, MaxTime)
	default:
		k := &holder{Join: *j, served: m.left[j.Job], since: m.left[j.Job], charged: m.now}
		k.Weight = max(k.Weight, 1)
		delete(m.left, j.Job)
		m.jobs[j.Job] = k
		return k
	}
	return nil
}

// rejoin takes a job as it is.
func (m *Machine) rejoin(r *Rejoin) {
	switch {
	case m.open:
		m.refuse(r.Job, "it rejoins after the first capacity")
	case r.Hold < 0 || r.Hold > MaxPages:
		m.refuse(r.Job, "hold %d is not from 0 to %d pages", r.Hold, MaxPages)
	case r.Seniority < 0 || r.Seniority > 0 && (r.Rest < r.Base || r.Rest > r.Peak):
		m.refuse(r.Job, "seniority %d, rest %d: a rest is from its base %d to its peak %d", r.Seniority, r.Rest, r.Base,
			r.Peak)
	case r.Group < 0:
		m.refuse(r.Job, "group %d is below 0", r.Group)
	default:
		k := m.enter(&r.Join)
		if k == nil {
			return
		}
		k.joined, k.asked, k.hold, k.heard = true, r.Ask, r.Hold, m.now
		k.at = Want{Job: r.Job, Group: r.Group, Snapshot: r.InSnapshot}
		m.joined = append(m.joined, k)
		if r.Seniority > 0 {
			k.began, k.senior, k.rest = true, r.Seniority, r.Rest
			m.begun = max(m.begun, r.Seniority)
			m.order = append(m.order, k)
		}
	}
}

func (m *Machine) want(w *Want) {
	k := m.hear(w.Job)
	switch {
	case k == nil || !k.joined:
		m.refuse(w.Job, "it wants a group, and has not joined")
	case w.Ask < k.asked:
		m.refuse(w.Job, "it asks by number %d after %d", w.Ask, k.asked)
	case w.Ask == k.asked: // the grant is on its way
		if w.Hold >= 0 && w.Hold < k.hold {
			m.charge(k)
			k.hold = w.Hold
			m.note(Note{Passed: &Passed{k.Job, k.asked, k.hold}})
		}
	case w.First && k.began:
		m.refuse(w.Job, "it wants the first group of an iteration, and is within one")
	case !w.First && !k.began:
		m.refuse(w.Job, "it wants another group of an iteration, and is in none")
	case w.Rest < k.Base || w.Rest > k.Peak:
		m.refuse(w.Job, "rest %d is not from its base %d to its peak %d", w.Rest, k.Base, k.Peak)
	case k.began && w.Rest > k.rest:
		m.refuse(w.Job, "rest rises from %d to %d within an iteration", k.rest, w.Rest)
	case w.Hold < 0 || w.Hold > MaxPages:
		m.refuse(w.Job, "hold %d is not from 0 to %d pages", w.Hold, MaxPages)
	case (w.First || w.Last) && w.Hold < k.Base:
		m.refuse(w.Job, "hold %d is below its base %d in the first or last group", w.Hold, k.Base)
	case !k.places(w):
		m.refuse(w.Job, "group %d, first %v, last %v, is not one of the %d of its Join", w.Group, w.First, w.Last,
			len(k.of(w)))
	default:
		queued := k.asking && !k.began
		if !k.asking || w.Ask != k.want.Ask {
			k.delay = delay{}
			m.note(Note{Asked: w})
		}
		k.want, k.asking = *w, true
		if k.began {
			k.rest = w.Rest // what was granted is in its hold
		}
		if w.First && !queued {
			m.enqueue(k)
		}
	}
}

func (m *Machine) passed(p *Passed) {
	k := m.hear(p.Job)
	switch {
	case k == nil || !k.joined:
		m.refuse(p.Job, "it has passed a group, and has not joined")
	case p.Seen < k.asked:
	case p.Seen > k.asked:
		m.refuse(p.Job, "it has seen grant %d, after %d", p.Seen, k.asked)
	case p.Hold < 0 || p.Hold > k.hold:
		m.refuse(p.Job, "its hold goes from %d to %d, and falls only", k.hold, p.Hold)
	default:
		m.charge(k)
		k.hold = p.Hold
		m.note(Note{Passed: p})
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
	if i := slices.Index(m.order, k); i >= 0 {
		m.drop(i)
	}
	m.queue = slices.DeleteFunc(m.queue, is)
	delete(m.jobs, job)
	m.remember(k)
	if k.joined {
		m.note(Note{Left: &Leave{job}})
	}
}

func (m *Machine) resize(c *Capacity) {
	switch {
	case c.Pages < 0 || c.Pages > MaxPages:
		m.refuse("", "capacity %d is not from 0 to %d pages", c.Pages, MaxPages)
		return
	case c.Number < m.newest:
		return
	case c.Method != "" && c.Method != m.word && m.options.Methods(c.Method) == nil:
		m.refuse("", "there is no method %q", c.Method)
		return
	}
	if !m.open {
		// Jobs that were aside may have lost their place in the order: any in which (S) holds will do.
		m.open, m.bound = true, MaxPages
		slices.SortStableFunc(m.order, func(a, b *holder) int { return cmp.Compare(a.senior, b.senior) })
		m.capacity = c.Pages
		m.arrange()
	}
	m.capacity, m.newest = c.Pages, c.Number
	m.adopt(c.Method)
	m.note(Note{Capacity: c})
	m.shed()
}

// lower has the bound fall to the capacity as far as what was promised allows, or rise to it.
func (m *Machine) lower() {
	if m.bound <= m.capacity {
		m.bound = m.capacity
		return
	}
	total, idle, younger := m.sums()
	promised, older := total, 0
	for _, k := range m.order {
		younger -= k.hold
		promised = max(promised, idle+older+max(k.rest, k.hold)+younger)
		older += k.Base
	}
	m.bound = max(m.capacity, min(m.bound, promised))
}

// grantGroups grants what the jobs of the order ask for, where (T) and (S) allow it. One pass from the oldest to the
// youngest does, since a grant leaves the others with no more.
func (m *Machine) grantGroups() {
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
				limit = m.bound
			}
			if (after <= before || after <= m.capacity) && (more == 0 || more <= room && total+more <= limit) &&
				m.allows(k) {
				m.charge(k)
				k.hold, k.rest, k.asking = hold, k.want.Rest, false
				total, room = total+more, room-more
				k.asked, k.heard = k.want.Ask, m.now
				m.out = append(m.out, Output{Kind: Grant, Job: k.Job, Ask: k.asked})
				k.at = k.want
				m.note(Note{Granted: &k.at})
				if k.want.Last {
					m.drop(i)
					idle += k.Base
					continue
				}
			}
		}
		room = min(room, m.capacity-beside-max(k.rest, k.hold))
		older += k.Base
		i++
	}
	m.lacks = m.lacking()
}

// lacking reports whether the oldest of those that go on asks, and (T) alone is in its way, not the method.
func (m *Machine) lacking() bool {
	if m.live == 0 || !m.order[0].asking || m.order[0].delayed {
		return false
	}
	k := m.order[0]
	_, idle, began := m.sums()
	beside, hold := idle+began-k.hold, max(k.hold, k.want.Hold)
	after := beside + max(k.want.Rest, hold)
	return after <= m.capacity || after <= beside+max(k.rest, k.hold)
}

// drop takes a job out of the order.
func (m *Machine) drop(i int) {
	m.order[i].began = false
	m.order = slices.Delete(m.order, i, i+1)
	if i < m.live {
		m.live--
	}
}

// sums returns the sum of all holds, of what idle jobs come to hold by themselves, and of the holds of the order.
func (m *Machine) sums() (total, idle, began int) {
	for _, k := range m.joined {
		total += k.hold
		if k.began {
			began += k.hold
		} else {
			idle += k.rests()
		}
	}
	return total, idle, began
}

// fits reports whether the rule allows a First, as the youngest of those that go on, or a Join if the job has not
// joined, for the jobs that go on. could has looked at the rest: (S) of the job itself, and for a Join that of the
// jobs behind.
func (m *Machine) fits(k *holder) bool {
	total, idle, younger := m.sums()
	hold, _ := k.next()
	if total-k.hold+hold > m.capacity || k.joined && m.lacks {
		return false
	}
	if k.joined {
		idle -= k.rests()
		younger += hold
	} else {
		idle += k.Base
	}
	older := 0
	for n, i := range m.order {
		if n == m.live {
			break
		}
		younger -= i.hold
		if idle+older+max(i.rest, i.hold)+younger > m.capacity {
			return false
		}
		older += i.Base
	}
	return true
}

// rests returns what an idle job comes to hold by itself: its Base, or what it holds if it stands still.
func (k *holder) rests() int {
	if k.aside {
		return max(k.Base, k.hold)
	}
	return k.Base
}

// next returns what a job of the queue would hold, and the most that it would need until its iteration ends.
func (k *holder) next() (hold, rest int) {
	if !k.joined {
		return k.Base, k.Base
	}
	return max(k.hold, k.want.Hold), k.want.Rest
}

// Holds returns how many pages a job that has joined holds.
func (m *Machine) Holds(job Job) (pages int, ok bool) {
	k := m.jobs[job]
	if k == nil || !k.joined {
		return 0, false
	}
	return k.hold, true
}
