package lease

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// enqueue has a Join or First wait for its turn.
func (m *Machine) enqueue(k *holder) {
	m.charge(k)
	if saved := m.served - k.served; saved > 0 { // who had nothing to ask for saves no turns up
		k.served, k.since = m.served, k.since+saved
	}
	m.arrivals++
	k.arrival, k.overtaken = m.arrivals, 0
	m.queue = append(m.queue, k)
}

// grantQueue grants what fits of the queue, least served first. What does not fit lets others pass for so many times,
// and each only while it is ahead by less than one iteration, of its own or of that which waits: the first group of a
// job often fits where it holds pages of its last one, so that it would always be before others.
func (m *Machine) grantQueue() {
	if len(m.queue) == 0 {
		return
	}
	for _, k := range m.queue {
		m.charge(k)
	}
	slices.SortFunc(m.queue, func(a, b *holder) int {
		return cmp.Or(cmp.Compare(a.served, b.served), cmp.Compare(a.arrival, b.arrival))
	})
	var waits []*holder // that do not fit, and could
	ahead := func(k *holder) bool {
		return k.joined && slices.ContainsFunc(waits, func(b *holder) bool {
			return k.served-b.served >= max(1, k.turn, b.turn)
		})
	}
	for i := 0; i < len(m.queue); {
		k := m.queue[i]
		switch {
		case !m.could(k):
			i++
		case !ahead(k) && m.fits(k) && (!k.joined || m.allows(k)):
			m.queue = slices.Delete(m.queue, i, i+1)
			m.begin(k)
			for _, before := range m.queue[:i] {
				before.overtaken++
			}
		default:
			if k.overtaken >= m.options.Overtakes {
				return
			}
			waits = append(waits, k)
			i++
		}
	}
}

// begin grants a Join or First.
func (m *Machine) begin(k *holder) {
	least := k.served
	for _, i := range m.joined {
		if m.charge(i); i.began || i.asking || i.hold > i.Base {
			least = min(least, i.served)
		}
	}
	m.served = max(m.served, least)
	k.served = add(k.served, 1) // so that not even jobs that take no time are always first
	hold, rest := k.next()
	k.hold, k.heard = hold, m.now
	if !k.joined {
		k.joined, k.asked = true, k.Ask
		m.joined = append(m.joined, k)
		m.out = append(m.out, Output{Kind: Grant, Job: k.Job, Ask: k.asked})
		m.note(Note{Joined: &k.Join})
		return
	}
	m.begun++
	k.turn, k.since = k.served-k.since, k.served
	k.rest, k.asked, k.asking = rest, k.want.Ask, false
	if !k.want.Last {
		k.began, k.senior = true, m.begun
		m.order = slices.Insert(m.order, m.live, k)
		m.live++
	}
	m.out = append(m.out, Output{Kind: Grant, Job: k.Job, Ask: k.asked, Seniority: m.begun})
	k.at = k.want
	m.note(Note{Granted: &k.at})
}

// could reports whether a request of the queue would be granted when all iterations that go on had ended.
func (m *Machine) could(k *holder) bool {
	others, spread := 0, 0 // what the others hold then
	for _, i := range m.joined {
		if !i.draining {
			spread = max(spread, i.Peak-i.Base)
		}
		switch {
		case i == k:
		case i.began:
			others += i.Base
		default:
			others += i.rests()
		}
	}
	for _, i := range m.order[m.live:] {
		others += max(i.hold-i.Base, 0)
	}
	if k.joined {
		return !k.draining && others+max(k.want.Rest, k.want.Hold) <= m.capacity
	}
	return others+k.Base+max(spread, k.Peak-k.Base) <= m.capacity && m.keeps(k.Base)
}

// keeps reports whether (S) would hold for the jobs behind those that go on if these had ended, all stood still no
// more, and one with a Base joined.
func (m *Machine) keeps(base int) bool {
	behind := 0
	for _, k := range m.joined {
		base += k.Base
	}
	for _, i := range m.order[m.live:] {
		base -= i.Base
		behind += i.hold
	}
	for _, i := range m.order[m.live:] {
		behind -= i.hold
		if base+max(i.rest, i.hold)+behind > m.capacity {
			return false
		}
		base += i.Base
	}
	return true
}

// shed tells jobs to drain that cannot begin another iteration within the capacity: those that could not even alone,
// then the youngest by their Join, until the others fit.
func (m *Machine) shed() {
	for _, k := range m.joined {
		if k.Peak > m.capacity {
			m.drain(k, "the capacity is below its peak")
		}
	}
	for {
		bases, spread, youngest := 0, 0, (*holder)(nil)
		for _, k := range m.joined {
			if !k.draining {
				bases += k.Base
				spread = max(spread, k.Peak-k.Base)
				youngest = k
			}
		}
		if bases+spread <= m.capacity {
			return
		}
		m.drain(youngest, "the capacity is below what the jobs need together")
	}
}

func (m *Machine) drain(k *holder, why string) {
	if !k.draining {
		k.draining = true
		m.say(Drain, k.Job, why)
	}
}

// charge counts what a job was served up to now. While it waits in the queue its Base is free, so that what it was
// served comes to rest.
func (m *Machine) charge(k *holder) {
	if k.joined {
		pages := k.hold
		if k.asking && !k.began {
			pages = max(0, pages-k.Base)
		}
		k.served = add(k.served, times(pages, m.now-k.charged)/int64(k.Weight))
	}
	k.charged = m.now
}

// times returns pages x time, in microseconds, or the largest number if it is more.
func times(pages int, d time.Duration) int64 {
	us := d.Microseconds()
	if us > 0 && int64(pages) > math.MaxInt64/us {
		return math.MaxInt64
	}
	return int64(pages) * us
}

// add returns the sum of two numbers of which neither is negative, or the largest number if it is more.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// remember keeps what a job was served, if it leaves with more than others, for when it joins again.
func (m *Machine) remember(k *holder) {
	const most = 64
	for job, served := range m.left {
		if served <= m.served {
			delete(m.left, job)
		}
	}
	if k.served > m.served && len(m.left) < most {
		m.left[k.Job] = k.served
	}
}
