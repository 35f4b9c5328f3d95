package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrDevices is what Import returns, after the file's name and the devices, for a snapshot of several of which
// ImportOptions names none.
var ErrDevices = errors.New("have events: choose one")

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
	case len(busy) == 0:
		return 0, fmt.Errorf("%s: the snapshot has no events: call torch.cuda.memory._record_memory_history() "+
			"before what is to be recorded", name)
	case want != nil && !slices.Contains(busy, strconv.Itoa(*want)):
		return 0, fmt.Errorf("%s: device %d has no events: choose one that has (%s)", name, *want,
			strings.Join(busy, ", "))
	case want != nil:
		return *want, nil
	case len(busy) > 1:
		return 0, fmt.Errorf("%s: the devices %s %w", name, strings.Join(busy, ", "), ErrDevices)
	}
	return only, nil
}

// record makes the record of a device.
func (s *snapshot) record(device int) (*Record, error) {
	m := maker{ledger: newLedger(), names: make(map[uint64]string)}
	before := s.before(device)
	for _, b := range before {
		if err := m.add(Malloc, b.addr, b.size); err != nil {
			return nil, fmt.Errorf("%s: device %d, before its first entry: %w", s.lines.at.file, device, err)
		}
	}
	r := &Record{Before: len(before)}
	for _, e := range s.devices[device] {
		if e.what == entryOOM {
			r.OOM = append(r.OOM, OOM{len(m.trace), e.size, int64(e.addr), m.ledger.load})
			continue
		}
		kind := Malloc
		if e.what == entryFree {
			kind = Free
		}
		if err := m.add(kind, e.addr, e.size); err != nil {
			return nil, fmt.Errorf("%s: device %d, entry %d: %w", s.lines.at.file, device, e.index, err)
		}
	}
	for _, b := range s.active[device] {
		if _, there := m.ledger.sizes[m.names[b.addr]]; there {
			continue
		}
		if err := m.add(Malloc, b.addr, b.size); err != nil {
			return nil, fmt.Errorf("%s: device %d, after its last entry: %w", s.lines.at.file, device, err)
		}
	}
	r.Trace = m.trace
	return r, nil
}

// before returns the blocks that were there before a device's history began, by address: those that are freed first of
// all, and those that are active at the end without an entry.
func (s *snapshot) before(device int) []residual {
	seen := make(map[uint64]bool)
	var before []residual
	for _, e := range s.devices[device] {
		if e.what == entryOOM {
			continue
		}
		if e.what == entryFree && !seen[e.addr] {
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
