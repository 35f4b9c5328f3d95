package ptx

import (
	"math/bits"
	"strings"
)

// warp is 32 threads of a block that execute together where they are at the same instruction.
type warp struct {
	r      *run
	k      *Kernel
	number uint32 // Index of the warp in its block.
	lanes  uint32 // Mask of lanes that exist.
	fault  *Fault

	registers  []lanes  // Values by register slot.
	written    []uint32 // By register slot, mask of lanes that have written it.
	predicates []uint32 // By predicate number, mask of lanes in which it holds.
	preWritten []uint32 // By predicate number, mask of lanes that have written it.
	carry      uint32   // Mask of lanes whose carry bit is set.
	carryKnown uint32   // Mask of lanes that have written the carry bit.
	local      []byte   // Local memory of all lanes, one after the other.
	localKnown []bool   // Per byte of local, whether it was written.
	steps      int64
	executed   int64 // Instructions executed by all threads of all blocks.
	since      uint64
	waits      bool   // The warp waits at a barrier.
	barrier    uint64 // Number of that barrier.
	alive      uint32 // Mask of lanes that have not ended.

	// pc is the next instruction of the active lanes; others are the diverged groups. At meet, a pc, the active group
	// may rejoin another.
	pc     int32
	active uint32
	meet   int32
	others []group
}

// group is lanes at one instruction. They are parked if they wait there for others.
type group struct {
	pc     int32
	lanes  uint32
	parked bool
}

const never = 1<<31 - 1

func newWarp(r *run, number uint32) *warp {
	k := r.k
	w := &warp{r: r, k: k, number: number, lanes: everyLane}
	if rest := r.threads - 32*number; rest < 32 {
		w.lanes = 1<<rest - 1
	}
	w.registers = r.s.take(k.slots)
	w.written = make([]uint32, k.slots)
	w.predicates = make([]uint32, k.preds)
	w.preWritten = make([]uint32, k.preds)
	w.local = make([]byte, 32*k.localBytes)
	w.localKnown = make([]bool, 32*k.localBytes)
	for _, c := range k.constants {
		for i := range w.registers[c.slot] {
			w.registers[c.slot][i] = c.value
		}
	}
	for _, s := range k.specials {
		w.fill(s)
	}
	return w
}

// fill sets the slot of a special register.
func (w *warp) fill(s special) {
	varies := strings.HasPrefix(s.name, "%tid") || strings.HasPrefix(s.name, "%lane")
	value := w.special(s.name, 0)
	for lane := range uint32(32) {
		if varies {
			value = w.special(s.name, lane)
		}
		w.registers[s.slot][lane] = value
	}
}

// reset prepares the warp for the next block.
func (w *warp) reset() {
	clear(w.written)
	clear(w.predicates)
	clear(w.preWritten)
	clear(w.localKnown)
	w.written[0], w.predicates[0], w.preWritten[0] = everyLane, everyLane, everyLane
	for _, c := range w.k.constants {
		w.written[c.slot] = everyLane
	}
	for _, s := range w.k.specials {
		w.written[s.slot] = everyLane
		if strings.HasPrefix(s.name, "%ctaid") {
			w.fill(s)
		}
	}
	w.carryKnown, w.steps, w.since, w.waits = 0, 0, w.r.blockBegin, false
	w.alive, w.active = w.lanes, w.lanes
	w.pc, w.meet, w.others = 0, never, w.others[:0]
}

var specialSizes = map[string]uint8{
	"%tid.x": 4, "%tid.y": 4, "%tid.z": 4, "%ntid.x": 4, "%ntid.y": 4, "%ntid.z": 4,
	"%ctaid.x": 4, "%ctaid.y": 4, "%ctaid.z": 4, "%nctaid.x": 4, "%nctaid.y": 4, "%nctaid.z": 4,
	"%laneid": 4, "%warpid": 4, "%nwarpid": 4, "WARP_SZ": 4,
	"%lanemask_eq": 4, "%lanemask_lt": 4, "%lanemask_le": 4, "%lanemask_gt": 4, "%lanemask_ge": 4,
}

// special returns the value of a special register.
func (w *warp) special(name string, lane uint32) uint64 {
	var of [3]uint32
	switch name {
	case "%tid.x", "%tid.y", "%tid.z":
		of = w.r.thread(w.number*32 + lane)
	case "%ntid.x", "%ntid.y", "%ntid.z":
		of = w.r.l.Block
	case "%ctaid.x", "%ctaid.y", "%ctaid.z":
		of = w.r.block
	case "%nctaid.x", "%nctaid.y", "%nctaid.z":
		of = w.r.l.Grid
	case "%laneid":
		return uint64(lane)
	case "%warpid":
		return uint64(w.number)
	case "%nwarpid":
		return uint64(len(w.r.warps))
	case "WARP_SZ":
		return 32
	case "%lanemask_eq":
		return 1 << lane
	case "%lanemask_lt":
		return 1<<lane - 1
	case "%lanemask_le":
		return 2<<lane - 1
	case "%lanemask_gt":
		return (1<<32 - 1) &^ (2<<lane - 1)
	case "%lanemask_ge":
		return (1<<32 - 1) &^ (1<<lane - 1)
	}
	return uint64(of[name[len(name)-1]-'x'])
}

// run executes up to n instructions, fewer if the warp ends, fails or waits at a barrier.
func (w *warp) run(budget int) {
	code := w.k.code
	for ; budget > 0; budget-- {
		in := &code[w.pc]
		w.steps++
		w.executed += int64(bits.OnesCount32(w.active))
		if w.preWritten[in.guard]&w.active != w.active {
			w.unwritten(in, w.preWritten[in.guard])
			return
		}
		m := w.active & (w.predicates[in.guard] ^ in.guardNot)
		if in.flow != onward {
			if !w.move(in, m) {
				return
			}
			continue
		}
		if m != 0 {
			if known := w.written[in.a] & w.written[in.b] & w.written[in.c]; known&m != m {
				w.unwrittenOf(in, m)
				return
			}
			if !in.exec(w, in, m) {
				return
			}
			w.written[in.d] |= m
		}
		if w.pc++; w.pc == w.meet {
			w.regroup()
		}
	}
	if w.steps > w.r.limit && w.alive != 0 {
		w.fail(&code[w.pc], bits.TrailingZeros32(w.active), Endless, 0, "it does not end in %d instructions", w.r.limit)
	}
}

// unwritten fails at an instruction that reads a register in lanes where known has no bit.
func (w *warp) unwritten(in *instruction, known uint32) bool {
	return w.fail(in, bits.TrailingZeros32(w.active&^known), Unwritten, 0, "reads a register that nothing has written")
}

func (w *warp) unwrittenOf(in *instruction, m uint32) bool {
	missing := m &^ (w.written[in.a] & w.written[in.b] & w.written[in.c])
	return w.fail(in, bits.TrailingZeros32(missing), Unwritten, 0, "reads a register that nothing has written")
}

// move executes an instruction that decides which comes next, for the lanes m; false ends the turn of the warp.
func (w *warp) move(in *instruction, m uint32) bool {
	switch in.flow {
	case jump:
		switch m {
		case 0:
			w.pc++
		case w.active:
			w.pc = in.target
		default:
			w.others = append(w.others, group{pc: in.target, lanes: m})
			w.active &^= m
			w.pc++
		}
		if len(w.others) > 0 {
			w.regroup()
		}
	case leave:
		w.alive &^= m
		w.active &^= m
		w.pc++
		if m != 0 {
			for i := range w.others {
				w.others[i].parked = false // they may have waited for these
			}
		}
		w.regroup()
		return w.alive != 0
	case meet, barrier:
		if m != w.active {
			w.others = append(w.others, group{pc: w.pc + 1, lanes: w.active &^ m})
			if w.active = m; m == 0 {
				w.regroup()
				return true
			}
		}
		if in.flow == barrier {
			return w.arrive(in)
		}
		together, ok := w.assembled(in, m)
		if !ok {
			return false
		}
		if !together {
			return w.park(in)
		}
		if !in.exec(w, in, m) {
			return false
		}
		w.pc++
		w.regroup()
	}
	return true
}

// park lays the current group aside until others come to where it is.
func (w *warp) park(in *instruction) bool {
	w.others = append(w.others, group{w.pc, w.active, true})
	w.active = 0
	w.regroup()
	if w.active == 0 {
		g := w.others[len(w.others)-1]
		missing := w.alive &^ g.lanes
		if w.others[0].lanes == w.alive {
			missing = w.lanes &^ w.alive
		}
		return w.fail(&w.k.code[g.pc], bits.TrailingZeros32(g.lanes), Divergent, 0,
			"waits for thread %v, which is elsewhere", w.r.thread(w.number*32+uint32(bits.TrailingZeros32(missing))))
	}
	return true
}

// regroup merges the current group with those at the same instruction, and goes on with the group that is least far of
// those that are not parked.
func (w *warp) regroup() {
	if len(w.others) == 0 {
		w.meet = never
		return
	}
	if w.active != 0 {
		w.others = append(w.others, group{pc: w.pc, lanes: w.active})
	}
	merged := w.others[:0]
	for _, g := range w.others {
		found := false
		for i := range merged {
			if merged[i].pc == g.pc {
				merged[i].lanes |= g.lanes
				merged[i].parked = false // whether all are there is asked anew
				found = true
			}
		}
		if !found {
			merged = append(merged, g)
		}
	}
	w.others = merged
	best := -1
	for i, g := range merged {
		if !g.parked && (best < 0 || g.pc < merged[best].pc) {
			best = i
		}
	}
	w.active = 0
	if best < 0 {
		return
	}
	w.pc, w.active = merged[best].pc, merged[best].lanes
	merged[best] = merged[len(merged)-1]
	w.others = merged[:len(merged)-1]
	w.meet = never
	for _, g := range w.others {
		if g.pc > w.pc {
			w.meet = min(w.meet, g.pc)
		}
	}
}
