package process

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tensile/device/lease"
)

// hub is the lease of a device as a process has it: a machine, and which client each of its jobs is of. Like the
// machine it is pure.
type hub struct {
	m       *lease.Machine
	members map[string]*member
	owners  map[lease.Job]owner // by their names in the machine
	// awaited are the slots of clients that may hold something by the grants of a process before this one, and have not
	// said what.
	awaited  map[string]bool
	capacity *lease.Capacity // the newest; the machine hears of it when nobody is awaited
	now      time.Duration
	out      []letter
}

// member is a client of a hub.
type member struct {
	id   string
	jobs map[lease.Job]*seat
}

// seat is a job of a client, in one stay.
type seat struct {
	joined int64        // the Ask of its Join, 0: not known
	last   lease.Output // the newest grant
}

type owner struct {
	member *member
	job    lease.Job
}

// letter is an answer to a client.
type letter struct {
	client string
	answer answer
}

// newHub returns a hub that grants nothing before it has heard of the clients that have the awaited slots, and of a
// capacity.
func newHub(awaited []string) *hub {
	h := &hub{m: lease.NewMachine(lease.Options{}), members: make(map[string]*member),
		owners:  make(map[lease.Job]owner),
		awaited: make(map[string]bool)}
	for _, slot := range awaited {
		h.awaited[slot] = true
	}
	return h
}

// name is what the machine calls a job of a client.
func name(client string, job lease.Job) lease.Job { return job + lease.Job("@"+client) }

// step tells the machine an input.
func (h *hub) step(in lease.Input) {
	in.Now = h.now
	for _, out := range h.m.Step(in) {
		o, ok := h.owners[out.Job]
		if !ok {
			continue // of a capacity that makes no sense
		}
		if out.Job = o.job; out.Kind == lease.Grant {
			o.member.jobs[o.job].last = out
		}
		h.out = append(h.out, letter{o.member.id, answer{Output: out}})
	}
}

// letters returns what is to be sent, and forgets it.
func (h *hub) letters() []letter {
	out := h.out
	h.out = nil
	return out
}

// begin has the machine hear of the capacity when nobody is awaited any more.
func (h *hub) begin() {
	if len(h.awaited) == 0 && h.capacity != nil {
		h.step(lease.Input{Capacity: h.capacity})
	}
}

// greet takes a client that has connected, maybe not for the first time. Another client that had its slot has ended.
func (h *hub) greet(now time.Duration, hi *hello) {
	h.now = now
	for _, id := range slices.Sorted(maps.Keys(h.members)) {
		if id != hi.Client && slotOf(id) == slotOf(hi.Client) {
			h.gone(now, id)
		}
	}
	m := h.members[hi.Client]
	if m == nil {
		m = &member{id: hi.Client, jobs: make(map[lease.Job]*seat)}
		h.members[hi.Client] = m
	}
	named := make(map[lease.Job]bool)
	for _, job := range hi.Jobs {
		named[job.Job] = true
		h.stands(m, job)
	}
	for _, job := range slices.Sorted(maps.Keys(m.jobs)) {
		if !named[job] {
			h.leave(m, job)
		}
	}
	delete(h.awaited, slotOf(hi.Client))
	h.resize(now, hi.Capacity)
}

// stands compares what a client says of a job with what is known of it.
func (h *hub) stands(m *member, job standing) {
	s := m.jobs[job.Job]
	own := name(m.id, job.Job)
	switch {
	case s == nil && job.Joined:
		h.sit(m, job.Job, 0)
		r := job.Rejoin
		r.Job = own
		h.step(lease.Input{Rejoin: &r})
	case s == nil: // its Join follows
	case !job.Joined && s.last.Ask == job.Ask || job.Joined && s.last.Ask > job.Ask:
		h.out = append(h.out, letter{m.id, answer{Output: s.last}}) // it was lost with the connection
	case job.Joined: // its newest grant is known, from this process or from the one before
		if held, ok := h.m.Holds(own); ok && job.Hold >= 0 && job.Hold < held {
			h.step(lease.Input{Passed: &lease.Passed{Job: own, Seen: job.Ask, Hold: job.Hold}})
		}
	}
}

func (h *hub) sit(m *member, job lease.Job, joined int64) {
	m.jobs[job] = &seat{joined: joined}
	h.owners[name(m.id, job)] = owner{m, job}
}

func (h *hub) leave(m *member, job lease.Job) {
	h.step(lease.Input{Leave: &lease.Leave{Job: name(m.id, job)}})
	delete(m.jobs, job)
	delete(h.owners, name(m.id, job))
}

// resize takes a capacity, unless a newer one is known.
func (h *hub) resize(now time.Duration, c *lease.Capacity) {
	h.now = now
	if c != nil && (h.capacity == nil || c.Number >= h.capacity.Number) && c.Pages >= 0 && c.Pages <= lease.MaxPages {
		h.capacity = c
	}
	h.begin()
}

// told takes an input of a client's job. The error is for a client that makes no sense.
func (h *hub) told(now time.Duration, client string, t *told) error {
	h.now = now
	m := h.members[client]
	job, err := t.job()
	if err != nil {
		return err
	}
	s := m.jobs[job]
	own := name(client, job)
	switch {
	case t.Join != nil && s != nil && s.joined == t.Join.Ask: // said again, since the connection was lost
	case t.Join != nil:
		if s != nil {
			h.leave(m, job) // which was lost
		}
		h.sit(m, job, t.Join.Ask)
		j := *t.Join
		j.Job = own
		h.step(lease.Input{Join: &j})
	case s == nil: // the machine has refused its Join
	case t.Leave != nil:
		h.leave(m, job)
	case t.Want != nil:
		w := *t.Want
		w.Job = own
		h.step(lease.Input{Want: &w})
	default:
		p := *t.Passed
		p.Job = own
		h.step(lease.Input{Passed: &p})
	}
	return nil
}

// gone takes that a client's process has ended, so that its jobs hold nothing. One of which the slot alone is known is
// named by that.
func (h *hub) gone(now time.Duration, client string) {
	h.now = now
	if m := h.members[client]; m != nil {
		for _, job := range slices.Sorted(maps.Keys(m.jobs)) {
			h.leave(m, job)
		}
		delete(h.members, client)
	}
	delete(h.awaited, slotOf(client))
	h.begin()
}

// tick tells the time.
func (h *hub) tick(now time.Duration) {
	h.now = now
	h.step(lease.Input{})
}

// String shows all that is known, for reports of errors.
func (h *hub) String() string {
	var b strings.Builder
	b.WriteString(h.m.String())
	for _, id := range slices.Sorted(maps.Keys(h.awaited)) {
		fmt.Fprintf(&b, "awaited: %s\n", id)
	}
	members := slices.SortedFunc(maps.Values(h.members), func(x, y *member) int { return cmp.Compare(x.id, y.id) })
	for _, m := range members {
		for _, job := range slices.Sorted(maps.Keys(m.jobs)) {
			fmt.Fprintf(&b, "%s of client %s, last told %v\n", job, m.id, m.jobs[job].last)
		}
	}
	return b.String()
}
