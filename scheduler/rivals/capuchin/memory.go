package capuchin

import (
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
	"tensile/scheduler"
)

// room makes room for an op after a step: copies out under way end, what was replayed leaves, and what was not used for
// longest.
func (m *machine) room(op, after int, need graph.Bytes) error {
	for m.used+need > m.capacity {
		if m.unspare(after, false) {
			continue
		}
		if len(m.leaving) > 0 {
			m.now = max(m.now, m.leaving[0].end)
			m.release(after)
			continue
		}
		victim, ok := m.victim(op)
		if !ok {
			if m.unspare(after, true) {
				continue
			}
			whole := m.scratch[op]
			for _, s := range m.touches[op] {
				whole += m.bytes[s]
			}
			if whole > m.capacity {
				return &scheduler.OverBudgetError{Need: whole, Budget: m.capacity,
					Reason: fmt.Sprintf("%s of job %s works on that", m.g.Ops[op].Name, m.job.Name)}
			}
			return stuckError{-1}
		}
		m.evict(victim, after)
	}
	return nil
}

// victim is what was not used for longest, of what the ops under way do not need.
func (m *machine) victim(op int) (graph.StorageID, bool) {
	end := int32(len(m.order.next) - 1)
	steps := 0
	defer func() { m.session.Count(1 + steps/4) }()
	for s := m.order.next[end]; s != end; s = m.order.next[s] {
		steps++
		if m.locked[s] == 0 && m.pending[s] == 0 && m.resident[s] &&
			!slices.Contains(m.touches[op], graph.StorageID(s)) {
			return graph.StorageID(s), true
		}
	}
	return 0, false
}

// unspare drops the first storage that was replayed ahead of its next access.
func (m *machine) unspare(after int, pending bool) bool {
	m.spared = slices.DeleteFunc(m.spared, func(s graph.StorageID) bool { return !m.replayed[s] })
	for _, s := range m.spared {
		if m.locked[s] == 0 && (pending || m.pending[s] == 0) {
			m.forget(s, after)
			return true
		}
	}
	return false
}

// evict has a storage leave passively: what follows waits until its content is on the host.
func (m *machine) evict(s graph.StorageID, after int) {
	if m.replayed[s] {
		m.forget(s, after)
		return
	}
	m.change(m.at, m.nextTouch(s, m.at), -m.bytes[s])
	m.depart(s, after)
}

// forget drops a storage that was replayed ahead of its next access.
func (m *machine) forget(s graph.StorageID, after int) {
	m.move(plan.Drop, s, after)
	m.freeBytes(s)
	m.replayed[s] = false
}

// depart has a storage leave when its content is on the host.
func (m *machine) depart(s graph.StorageID, after int) {
	if m.onHost[s] {
		m.move(plan.Drop, s, after)
		m.freeBytes(s)
		return
	}
	m.send(s, after)
	m.leaving = append(m.leaving, leaving{s, m.sends})
	m.order.Left(s)
}

// send begins a copy out after a step.
func (m *machine) send(s graph.StorageID, after int) {
	m.move(plan.Out, s, after)
	m.sends = max(m.sends, m.now) + m.out.Time(m.g.Storages[s].Bytes)
	m.onHost[s] = true
}

// fetch begins a copy in after a step.
func (m *machine) fetch(s graph.StorageID, after int) {
	m.move(plan.In, s, after)
	m.fetches = max(m.fetches, m.now) + m.in.Time(m.g.Storages[s].Bytes)
	m.arrives[s] = m.fetches
}

// prefetch begins the copies in that wait, before the step of op k, which ends at a time.
func (m *machine) prefetch(k, after int, end time.Duration) {
	for len(m.waiting) > 0 && m.fetches < end {
		f := m.waiting[0]
		if m.resident[f.storage] && !m.isLeaving(f.storage) || f.back <= k {
			m.waiting = m.waiting[1:]
			continue
		}
		if !m.onHost[f.storage] || m.isLeaving(f.storage) {
			return
		}
		bytes := m.bytes[f.storage]
		for m.used+m.scratch[k]+bytes > m.capacity && m.unspare(after, false) {
		}
		if m.used+m.scratch[k]+bytes > m.capacity || m.mostExpected(k, f.back)+bytes > m.capacity {
			return
		}
		m.fetch(f.storage, after)
		m.resident[f.storage] = true
		m.used += bytes
		m.order.Used(f.storage)
		m.change(k, f.back, bytes)
		m.waiting = m.waiting[1:]
	}
}

func (m *machine) isLeaving(s graph.StorageID) bool {
	return slices.ContainsFunc(m.leaving, func(l leaving) bool { return l.storage == s })
}

// mostExpected is the largest that is expected on the device in the ops from one to before another.
func (m *machine) mostExpected(from, to int) graph.Bytes {
	m.session.Count((to - from) / 8)
	var most graph.Bytes
	for _, bytes := range m.load[from:to] {
		most = max(most, bytes)
	}
	return most
}

// cancelLeave has a storage that is leaving stay: it is used again.
func (m *machine) cancelLeave(s graph.StorageID) {
	m.leaving = slices.DeleteFunc(m.leaving, func(l leaving) bool { return l.storage == s })
}

// free drops after a step what has been copied out by now.
func (m *machine) free(after int) {
	for len(m.leaving) > 0 && m.leaving[0].end <= m.now {
		m.release(after)
	}
}

// release drops the first storage that is leaving.
func (m *machine) release(after int) {
	s := m.leaving[0].storage
	m.leaving = m.leaving[1:]
	m.move(plan.Drop, s, after)
	m.freeBytes(s)
}

// freeBytes takes the bytes of a storage back.
func (m *machine) freeBytes(s graph.StorageID) {
	m.resident[s] = false
	m.used -= m.bytes[s]
	m.arrives[s] = 0
	m.order.Left(s)
}
