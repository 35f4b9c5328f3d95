package compile

import (
	"cmp"
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan"
	"tensile/plan/program"
)

// withSnapshot writes a program with a section that copies the state out while it carries out an iteration. What the
// host has is copied from its slot, on the host's stream, before the first copy out that overwrites the slot. What only
// the device has when the iteration begins is copied out before it is overwritten there: the kernel that does so waits.
// Where the plan copies that content out anyway, early in the iteration, it is copied from the host slot after that,
// and the last copy of the plan waits for it: the next body overwrites the slot and does not know of snapshots.
//
// Which of the places that a saver knows costs less depends on the plan, so that Compile tries both: early, and between
// the copies of the plan. The first may delay the plan's first copies, the second may come too late for large storages.
func (c *compiler) withSnapshot(early bool) *program.Program {
	out := c.program()
	stale := c.stale()
	body := c.next()
	c.saver = newSaver(c, stale, &body, early)
	c.body()
	out.Snapshot, out.Saved = c.section, c.saver.size
	out.Regions = append(out.Regions, program.SnapshotMemory)
	return out
}

// saver places the copies of a snapshot among the commands of an iteration. Where on the copy-out stream those of the
// device's content stand decides what they delay: all stand before the first copy of the plan, or each before the first
// one that leaves so much time before it, by the latencies of Options.Durations, or before one that would make it late
// for the step that overwrites its content. Those that are overwritten first go first.
type saver struct {
	slots []graph.Bytes
	size  graph.Bytes
	kept  []graph.StorageID // in the order in which their slots are overwritten
	saved []saving          // that are left, in the order of their deadlines
	after []bool            // per storage: kept after the plan's copy out of it
	kepts need              // those so far
	last  int               // the plan's last copy out, by its index there

	early bool
	out   cost.Link
	ends  []time.Duration // per step: when it ends, as predicted
	free  time.Duration   // when the copy-out stream is, so far
}

type saving struct {
	storage graph.StorageID
	slot    int // the first step that overwrites it; the number of steps: none does
	took    time.Duration
}

func newSaver(c *compiler, stale []graph.StorageID, body *program.Section, early bool) *saver {
	v := &saver{after: make([]bool, len(c.g.Storages)), early: early, out: c.options.Durations.Out}
	v.slots, v.size = program.SnapshotSlots(c.g)
	for _, m := range c.moves {
		if m.Kind == plan.Out {
			v.last = m.index
		}
	}
	outs := body.Counts[streamOf(program.Out)]
	for _, cmd := range body.Commands {
		if cmd.Kind != program.Out {
			continue
		}
		if outs--; outs > 0 && cmd.Version == 0 && slices.Contains(stale, cmd.Storage) {
			v.after[cmd.Storage] = true
		}
	}
	written, copied := c.overwritten()
	for i := range c.g.Storages {
		s := &c.g.Storages[i]
		if !s.Role.Persistent() {
			continue
		}
		if v.after[s.ID] {
			continue
		}
		if _, found := slices.BinarySearch(stale, s.ID); found {
			v.saved = append(v.saved, saving{s.ID, written[s.ID], v.out.Time(s.Bytes)})
		} else {
			v.kept = append(v.kept, s.ID)
		}
	}
	slices.SortStableFunc(v.saved, func(a, b saving) int { return cmp.Compare(a.slot, b.slot) })
	slices.SortStableFunc(v.kept, func(a, b graph.StorageID) int { return cmp.Compare(copied[a], copied[b]) })
	var now time.Duration
	for _, d := range c.options.durations(c.p).Steps {
		now += d
		v.ends = append(v.ends, now)
	}
	for _, m := range c.moves {
		if m.Kind == plan.Out {
			v.copied(c, m)
		}
	}
	v.free = max(0, v.free-now) // what is left of the iteration before
	return v
}

// overwritten returns, per storage, the first step that writes or drops it on the device, and the first copy out that
// overwrites its host slot; the number of steps or moves where there is none.
func (c *compiler) overwritten() (written, copied []int) {
	written = slices.Repeat([]int{len(c.p.Steps)}, len(c.g.Storages))
	copied = slices.Repeat([]int{len(c.moves)}, len(c.g.Storages))
	for i, m := range c.moves {
		switch m.Kind {
		case plan.Drop:
			written[m.Storage] = min(written[m.Storage], max(0, m.After))
		case plan.Out:
			copied[m.Storage] = min(copied[m.Storage], i)
		}
	}
	for slot, step := range c.p.Steps {
		for i, w := range c.g.Writes(step.Op) {
			if step.Want.Has(i) {
				written[w.Storage] = min(written[w.Storage], slot)
			}
		}
	}
	return written, copied
}

// endOf is when a step has ended, as predicted.
func (v *saver) endOf(slot int) time.Duration {
	if slot < 0 {
		return 0
	}
	return v.ends[slot]
}

// copied counts a copy of the plan.
func (v *saver) copied(c *compiler, m folded) {
	v.free = max(v.free, v.endOf(m.After)+m.Delay) + v.out.Time(c.g.Storages[m.Storage].Bytes)
}

// keep copies what the host has. The nil saver, of a body, copies nothing.
func (v *saver) keep(c *compiler) {
	if v == nil {
		return
	}
	for _, s := range v.kept {
		v.keepOf(c, s, -1)
	}
}

func (v *saver) keepOf(c *compiler, s graph.StorageID, slot int) program.Point {
	return c.emit(program.Command{Kind: program.Keep, Stream: streamOf(program.Keep), Slot: slot, Storage: s,
		Host: c.host(s), Bytes: c.g.Storages[s].Bytes, Snapshot: v.place(s)}, need{})
}

// afterOut copies from the host slot what the plan has copied to it.
func (v *saver) afterOut(c *compiler, m folded) {
	if v != nil && v.after[m.Storage] && c.version[m.Storage] == 0 {
		v.after[m.Storage] = false
		v.kepts.point(v.keepOf(c, m.Storage, m.After))
	}
}

func (v *saver) place(s graph.StorageID) program.Address {
	return program.Address{Region: regionOf(program.SnapshotMemory), Offset: v.slots[s]}
}

// copyBefore copies what a step overwrites.
func (v *saver) copyBefore(c *compiler, slot int) {
	for v != nil && len(v.saved) > 0 && v.saved[0].slot <= slot {
		v.save(c, 0, slot-1)
	}
}

// beforeOut copies what there is time for before a copy of the plan, and what would come too late after it.
func (v *saver) beforeOut(c *compiler, m folded, n *need) {
	if v == nil {
		return
	}
	if m.index == v.last {
		n.raise(v.kepts)
	}
	start := v.endOf(m.After) + m.Delay
	for i := 0; i < len(v.saved); {
		if v.early || v.free+v.saved[i].took <= start || i == 0 && v.late(c, m, start) {
			v.save(c, i, m.After)
		} else {
			i++
		}
	}
	v.copied(c, m)
}

// late reports whether the first copy comes later than its step when it stands after a copy of the plan, and not when
// it stands before.
func (v *saver) late(c *compiler, m folded, start time.Duration) bool {
	first := v.saved[0]
	if first.slot == len(c.p.Steps) {
		return false
	}
	due := v.endOf(first.slot - 1)
	after := max(v.free, start) + v.out.Time(c.g.Storages[m.Storage].Bytes) + first.took
	return v.free+first.took <= due && after > due
}

// save copies a storage out, after a step.
func (v *saver) save(c *compiler, i, slot int) {
	s := v.saved[i].storage
	v.free += v.saved[i].took
	v.saved = slices.Delete(v.saved, i, i+1)
	r := c.l.Stays.Entry[s]
	var n need
	n.toRead(c.stayUses[r])
	at := c.append(program.Command{Kind: program.Save, Stream: streamOf(program.Save), Slot: slot, Storage: s,
		Bytes: c.g.Storages[s].Bytes, Device: inArena(c.l.Offsets[r]), Snapshot: v.place(s)}, n)
	c.stayUses[r].read(at)
}
