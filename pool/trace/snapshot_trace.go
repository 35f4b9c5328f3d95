package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// choose returns the device that is meant.
func (s *snapshot) choose(want *int) (int, error) {
	var busy []string
	only := -1
	for d, events := range s.devices {
		if len(events) > 0 {
			only, busy = d, append(busy, strconv.Itoa(d))
		}
	}
	name := s.lines.at.file
	switch {
	case want != nil && (*want < 0 || *want >= len(s.devices) || len(s.devices[*want]) == 0):
		return 0, fmt.Errorf("%s: device %d has no events; devices that have: %s", name, *want,
			"["+strings.Join(busy, " ")+"]")
	case want != nil:
		return *want, nil
	case len(busy) == 0:
		return 0, fmt.Errorf("%s: the snapshot has no events: call torch.cuda.memory._record_memory_history() "+
			"before what is to"+
			" be recorded", name)
	case len(busy) > 1:
		return 0, fmt.Errorf("%s: the devices %s have events: choose one", name, strings.Join(busy, ", "))
	}
	return only, nil
}

// trace makes the trace of a device.
func (s *snapshot) trace(device int) (Trace, error) {
	m := maker{ledger: newLedger(), names: make(map[uint64]string)}
	for _, b := range s.before(device) {
		if err := m.add(Malloc, b.addr, b.size); err != nil {
			return nil, fmt.Errorf("%s: device %d, before its first entry: %w", s.lines.at.file, device, err)
		}
	}
	for _, e := range s.devices[device] {
		kind := Malloc
		if e.free {
			kind = Free
		}
		if err := m.add(kind, e.addr, e.size); err != nil {
			return nil, fmt.Errorf("%s: device %d, entry %d: %w", s.lines.at.file, device, e.index, err)
		}
	}
	return m.trace, nil
}

// before returns the blocks that were there before a device's history began, by address: those that are freed first of
// all, and those that are active at the end without an entry.
func (s *snapshot) before(device int) []residual {
	seen := make(map[uint64]bool)
	var before []residual
	for _, e := range s.devices[device] {
		if e.free && !seen[e.addr] {
			before = append(before, residual{e.addr, e.size})
		}
		seen[e.addr] = true
	}
	for _, b := range s.active[device] {
		if !seen[b.addr] {
			before = append(before, b)
		}
		seen[b.addr] = true
	}
	slices.SortFunc(before, func(a, b residual) int { return cmp.Compare(a.addr, b.addr) })
	return before
}

// maker makes a trace of addresses.
type maker struct {
	ledger *ledger
	names  map[uint64]string
	trace  Trace
}

func (m *maker) add(kind Kind, addr uint64, size int64) error {
	e := Event{Kind: kind, Block: m.names[addr]}
	if e.Block == "" {
		e.Block = "0x" + strconv.FormatUint(addr, 16)
		m.names[addr] = e.Block
	}
	if kind == Malloc {
		e.Bytes = size
	}
	m.trace = append(m.trace, e)
	return m.ledger.add(e)
}
