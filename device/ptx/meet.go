package ptx

import (
	"math/bits"
	"strings"
)

// assembled tells whether all lanes that the lanes m name, and that have not ended, are here; ok is false on a fault.
// Lanes may name different sets, of which each is on its own.
func (w *warp) assembled(in *instruction, m uint32) (all, ok bool) {
	if missing := m &^ w.written[in.named]; missing != 0 {
		return false, w.unwritten(in, ^missing)
	}
	all = true
	for i, named := range w.sets(in, m) {
		switch {
		case named>>i&1 == 0:
			return false, w.fail(in, i, Divergent, 0, "is not among the threads 0x%x that it names", named)
		case named&w.alive&^m != 0:
			all = false
		}
		for rest := named & m; rest != 0; rest &= rest - 1 {
			if j := bits.TrailingZeros32(rest); all && uint32(w.registers[in.named][j]) != named {
				return false, w.fail(in, i, Divergent, 0, "names the threads 0x%x, of which thread %d names others",
					named, j)
			}
		}
	}
	return all, true
}

// sets yields the lanes m with the set that each names.
func (w *warp) sets(in *instruction, m uint32) func(yield func(lane int, named uint32) bool) {
	return func(yield func(lane int, named uint32) bool) {
		for rest := m; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros32(rest) & 31
			if !yield(i, uint32(w.registers[in.named][i])) {
				return
			}
		}
	}
}

// shuffling is shfl.sync: every lane gets a, of another lane that b says, within bounds that c says. PTX leaves
// undefined what a lane gets that takes no part.
func shuffling(mode string, second bool) execution {
	return func(w *warp, in *instruction, m uint32) bool {
		if known := w.written[in.a] & w.written[in.b] & w.written[in.c]; known&m != m {
			return w.unwrittenOf(in, m)
		}
		from, inside := w.registers[in.a], uint32(0)
		to := &w.registers[in.d]
		for i, named := range w.sets(in, m) {
			b, c := int(w.registers[in.b][i]&31), int(w.registers[in.c][i])
			clamp, segment := c&31, c>>8&31
			most, least := i&segment|clamp&^segment, i&segment
			var j int
			var ok bool
			switch mode {
			case "up":
				j = i - b
				ok = j >= most
			case "down":
				j = i + b
				ok = j <= most
			case "bfly":
				j = i ^ b
				ok = j <= most
			case "idx":
				j = least | b&^segment
				ok = j <= most
			}
			if !ok {
				j = i
			} else {
				inside |= 1 << i
			}
			if named&m>>j&1 == 0 {
				return w.fail(in, i, Divergent, 0,
					"takes from thread %d of the warp, which takes no part or has ended", j)
			}
			to[i] = from[j]
		}
		w.written[in.d] |= m
		if second {
			w.setPredicate(in.p, m, inside)
		}
		return true
	}
}

// voting is vote.sync.
func voting(mode string, not uint32) execution {
	return func(w *warp, in *instruction, m uint32) bool {
		if known := w.preWritten[in.q]; known&m != m {
			return w.unwritten(in, known|^m)
		}
		yes := (w.predicates[in.q] ^ not) & m
		for i, named := range w.sets(in, m) {
			all := named & m
			holds := false
			switch mode {
			case "all":
				holds = yes&all == all
			case "any":
				holds = yes&all != 0
			case "uni":
				holds = yes&all == all || yes&all == 0
			case "ballot":
				w.registers[in.d][i] = uint64(yes & all)
				w.written[in.d] |= 1 << i
				continue
			}
			value := uint32(0)
			if holds {
				value = 1 << i
			}
			w.setPredicate(in.p, 1<<i, value)
		}
		return true
	}
}

// syncing is bar.warp.sync, which orders memory if the whole warp takes part.
func syncing(w *warp, in *instruction, m uint32) bool {
	if m == w.alive && uint32(w.registers[in.named][bits.TrailingZeros32(m)])&m == m {
		w.since = w.r.s.advance()
	}
	return true
}

// arrive waits at a barrier of the block.
func (w *warp) arrive(in *instruction) bool {
	lane := bits.TrailingZeros32(w.active)
	if known := w.written[in.a] & w.written[in.b]; known&w.active != w.active {
		return w.unwrittenOf(in, w.active)
	}
	w.barrier = w.registers[in.a][lane]
	for rest := w.active; rest != 0; rest &= rest - 1 {
		if i := bits.TrailingZeros32(rest); w.registers[in.a][i] != w.barrier {
			return w.fail(in, i, Divergent, 0, "waits at barrier %d, and thread %d of its warp at barrier %d",
				w.registers[in.a][i], lane, w.barrier)
		}
		if in.b != 0 && w.registers[in.b][bits.TrailingZeros32(rest)] != uint64(len(w.r.warps)*32) {
			return w.fail(in, lane, Divergent, 0, "waits for %d threads;"+
				"only barriers for all %d of the block are supported",
				w.registers[in.b][lane], len(w.r.warps)*32)
		}
	}
	switch {
	case w.barrier > 15:
		return w.fail(in, lane, Divergent, 0, "barrier %d; they are 0 to 15", w.barrier)
	case w.alive != w.lanes:
		return w.fail(in, lane, Divergent, 0, "waits at a barrier that threads of its block have ended without")
	case w.active != w.alive:
		return w.park(in)
	}
	w.waits = true
	return false
}

// shuffle decodes shfl.sync.mode.b32 d{|p}, a, b, c, mask.
func (f *frame) shuffle(s *statement, in instruction) error {
	if len(s.op) != 4 || s.op[1] != "sync" || s.op[3] != "b32" {
		return unknown(s)
	}
	if mode := s.op[2]; mode != "up" && mode != "down" && mode != "bfly" && mode != "idx" {
		return unknown(s)
	}
	if err := s.count(5, 5); err != nil {
		return err
	}
	to := s.operands[0]
	second := to.second
	to.second = ""
	var err error
	if in.d, _, err = f.target(s, to, tB32, false); err != nil {
		return err
	}
	if second != "" {
		if in.p, err = f.predicate(s, operand{kind: named, name: second}); err != nil {
			return err
		}
	}
	if err := f.sources(s, &in, 1, tB32, tB32, tB32); err != nil {
		return err
	}
	in.exec = shuffling(s.op[2], second != "")
	return f.meeting(s, in, 4)
}

// meeting ends the decoding of an instruction whose operand number at names lanes.
func (f *frame) meeting(s *statement, in instruction, at int) error {
	named, err := f.source(s, s.operands[at], tB32, false)
	in.named = named
	in.flow = meet
	f.emit(in, s)
	return err
}

// vote decodes vote.sync.{all,any,uni}.pred p, {!}q, mask and vote.sync.ballot.b32 d, {!}q, mask.
func (f *frame) vote(s *statement, in instruction) error {
	if len(s.op) != 4 || s.op[1] != "sync" {
		return unknown(s)
	}
	if err := s.count(3, 3); err != nil {
		return err
	}
	var err error
	switch mode := s.op[2] + "." + s.op[3]; mode {
	case "all.pred", "any.pred", "uni.pred":
		in.p, err = f.predicate(s, s.operands[0])
	case "ballot.b32":
		in.d, _, err = f.target(s, s.operands[0], tB32, false)
	default:
		return unknown(s)
	}
	if err != nil {
		return err
	}
	not := uint32(0)
	if s.operands[1].not {
		not = everyLane
	}
	if in.q, err = f.predicate(s, s.operands[1]); err != nil {
		return err
	}
	in.exec = voting(s.op[2], not)
	return f.meeting(s, in, 2)
}

// active decodes activemask.b32 d.
func (f *frame) active(s *statement, in instruction) error {
	if len(s.op) != 2 || s.op[1] != "b32" {
		return unknown(s)
	}
	in.exec = func(w *warp, in *instruction, m uint32) bool {
		for rest := m; rest != 0; rest &= rest - 1 {
			w.registers[in.d][bits.TrailingZeros32(rest)] = uint64(m)
		}
		return true
	}
	if err := f.operands(s, &in, tB32); err != nil {
		return err
	}
	f.emit(in, s)
	return nil
}

// bar decodes bar.sync a{, b}, barrier.sync, and bar.warp.sync mask.
func (f *frame) bar(s *statement, in instruction) error {
	switch strings.Join(s.op, ".") {
	case "bar.warp.sync":
		if err := s.count(1, 1); err != nil {
			return err
		}
		in.exec = syncing
		return f.meeting(s, in, 0)
	case "bar.sync", "barrier.sync", "barrier.sync.aligned":
		if err := s.count(1, 2); err != nil {
			return err
		}
		types := []typ{tU32, tU32}[:len(s.operands)]
		in.flow = barrier
		if err := f.sources(s, &in, 0, types...); err != nil {
			return err
		}
		f.emit(in, s)
		return nil
	}
	return unknown(s)
}
