package lease

import "time"

// A job that stands still, stopped or waiting for something outside, may hold what others wait for. It is told to
// drain. If it says nothing for as long again nobody counts on it any more: it is aside. Its pages stay its own. The
// others are put before it in the order, each if (S) holds for it there, with what the jobs aside hold as the hold of
// younger ones. Those for whom it does not hold stay behind, where they wait for the job that is aside: to move, or
// to be killed. Any order for which (S) holds is as good as another, so a job that moves again goes on where it is.

// watch tells jobs that stand still to drain, or puts them aside, and reports whether it has put one aside.
func (m *Machine) watch() (aside bool) {
	if m.options.Still < 0 {
		return false
	}
	for _, k := range m.joined {
		switch {
		case k.aside || m.now-k.heard < m.options.Still || !m.hinders(k):
		case !k.draining:
			k.heard = m.now
			m.drain(k, "it stands still, and others wait")
		case k.began || k.hold > k.Base:
			k.aside, aside = true, true
		}
	}
	return aside
}

// hinders reports whether a job holds what others wait for, and does not wait itself. One that waits to begin gives
// back all but its Base by itself.
func (m *Machine) hinders(k *holder) bool {
	waits := k.asking && k.want.Hold <= max(k.want.Rest, k.hold) && (k.began || k.hold <= k.Base)
	if waits || !k.began && k.hold == 0 {
		return false
	}
	for _, other := range m.order {
		if other.asking && other != k && (k.began || k.hold > k.Base) {
			return true
		}
	}
	for _, other := range m.queue {
		if other != k && !other.draining && (k.began || k.hold > k.Base || !m.could(other)) {
			return true
		}
	}
	return false
}

// Wake returns when the machine wants to be told the time, if no other input comes before; false: it need not be.
func (m *Machine) Wake() (at time.Duration, ok bool) {
	for _, k := range m.joined {
		if k.delayed && k.until != Never && (!ok || k.until < at) {
			at, ok = k.until, true
		}
	}
	if m.options.Still < 0 {
		return at, ok
	}
	for _, k := range m.joined {
		due := k.heard + m.options.Still
		if idle := k.draining && !k.began && k.hold <= k.Base; !k.aside && !idle && (!ok || due < at) && m.hinders(k) {
			at, ok = due, true
		}
	}
	return at, ok
}

// arrange puts those that can end without the jobs aside first, in their present order, and counts them.
func (m *Machine) arrange() {
	_, idle, younger := m.sums()
	m.live = 0
	for older := 0; ; {
		next := -1
		for i, k := range m.order[m.live:] {
			beside := idle + older + younger - k.hold
			// Those that it is put before see its Base where they saw what it holds.
			if !k.aside && (i == 0 || k.hold >= k.Base) && beside+max(k.rest, k.hold) <= m.capacity {
				next = m.live + i
				break
			}
		}
		if next < 0 {
			return
		}
		k := m.order[next]
		copy(m.order[m.live+1:next+1], m.order[m.live:next])
		m.order[m.live] = k
		m.live++
		older += k.Base
		younger -= k.hold
	}
}
