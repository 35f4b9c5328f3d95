package ptx

import "math/bits"

// How instructions are executed for the lanes m of a warp. What is quick has a loop of its own for a whole warp.

func exec1(w *warp, in *instruction, m uint32) bool {
	d, a, f := &w.registers[in.d], &w.registers[in.a], in.f1
	for ; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		d[i] = f(a[i])
	}
	return true
}

func exec2(w *warp, in *instruction, m uint32) bool {
	d, a, b, f := &w.registers[in.d], &w.registers[in.a], &w.registers[in.b], in.f2
	for ; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		d[i] = f(a[i], b[i])
	}
	return true
}

func exec3(w *warp, in *instruction, m uint32) bool {
	d, a, b, c, f := &w.registers[in.d], &w.registers[in.a], &w.registers[in.b], &w.registers[in.c], in.f3
	for ; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		d[i] = f(a[i], b[i], c[i])
	}
	return true
}

// dividing is exec2 for div and rem of integers.
func dividing(w *warp, in *instruction, m uint32) bool {
	b := &w.registers[in.b]
	for rest := m; rest != 0; rest &= rest - 1 {
		if i := bits.TrailingZeros32(rest) & 31; b[i] == 0 {
			return w.fail(in, i, Trap, 0, "divides by zero, of which PTX does not say what it gives")
		}
	}
	return exec2(w, in, m)
}

func moving(w *warp, in *instruction, m uint32) bool {
	d, a := &w.registers[in.d], &w.registers[in.a]
	if m == everyLane {
		*d = *a
		return true
	}
	for ; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		d[i] = a[i]
	}
	return true
}

// moreWritten checks that the further operands were written.
func (w *warp) moreWritten(in *instruction, m uint32) bool {
	for _, slot := range in.more {
		if missing := m &^ w.written[slot]; missing != 0 {
			return w.fail(in, bits.TrailingZeros32(missing), Unwritten, 0, "reads a register that nothing has written")
		}
	}
	return true
}

// inserting is bfi: c is the position, the further operand the length.
func inserting(t typ) execution {
	return func(w *warp, in *instruction, m uint32) bool {
		if !w.moreWritten(in, m) {
			return false
		}
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			w.registers[in.d][i] = insert(t, w.registers[in.a][i], w.registers[in.b][i], w.registers[in.c][i],
				w.registers[in.more[0]][i])
		}
		return true
	}
}

// packing puts the further operands, of type part, side by side; unpacking is the reverse.
func packing(part typ) execution {
	return func(w *warp, in *instruction, m uint32) bool {
		if !w.moreWritten(in, m) {
			return false
		}
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			value := uint64(0)
			for j, slot := range in.more {
				value |= w.registers[slot][i] << (8 * int(part.size) * j)
			}
			w.registers[in.d][i] = value
		}
		return true
	}
}

func unpacking(part typ) execution {
	return func(w *warp, in *instruction, m uint32) bool {
		a := w.registers[in.a] // a copy: it may be among the parts
		for j, slot := range in.more {
			w.written[slot] |= m
			for rest := m; rest != 0; rest &= rest - 1 {
				i := bits.TrailingZeros32(rest) & 31
				w.registers[slot][i] = a[i] >> (8 * int(part.size) * j) & part.mask()
			}
		}
		return true
	}
}

// carrying is add and sub that write the carry (.cc) or read it (addc, subc).
func carrying(key string, t typ) execution {
	reads, writes := key[3] == 'c', len(key) > 4
	flip := uint64(0)
	if key[0] == 's' {
		flip = t.mask() // a - b is a + ^b + 1, and a borrow is no carry
	}
	shift := 8 * uint(t.size)
	return func(w *warp, in *instruction, m uint32) bool {
		if missing := m &^ w.carryKnown; reads && missing != 0 {
			return w.fail(in, bits.TrailingZeros32(missing), Unwritten, 0, "reads a carry that nothing has written")
		}
		for rest := m; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros32(rest) & 31
			carry := flip & 1
			if reads {
				carry = uint64(w.carry>>i) & 1
			}
			sum, over := bits.Add64(w.registers[in.a][i], w.registers[in.b][i]^flip, carry)
			if shift < 64 {
				over = sum >> shift & 1
			}
			w.registers[in.d][i] = sum & t.mask()
			if writes {
				w.carry = w.carry&^(1<<i) | uint32(over)<<i
			}
		}
		if writes {
			w.carryKnown |= m
		}
		return true
	}
}

func (w *warp) setPredicate(p int32, m, value uint32) {
	w.predicates[p] = w.predicates[p]&^m | value&m
	w.preWritten[p] |= m
}

// compare is setp without further operands, and testp.
func compare(w *warp, in *instruction, m uint32) bool {
	a, b, f := &w.registers[in.a], &w.registers[in.b], in.is
	holds := uint32(0)
	for rest := m; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(rest) & 31
		if f(a[i], b[i]) {
			holds |= 1 << i
		}
	}
	w.setPredicate(in.p, m, holds)
	return true
}

// compareAnd is setp that combines what it finds, and its contrary, with a third predicate.
func compareAnd(combine string, third int32, not uint32) execution {
	return func(w *warp, in *instruction, m uint32) bool {
		if w.preWritten[third]&m != m {
			return w.unwritten(in, w.preWritten[third]|^m)
		}
		with, p, q := w.predicates[third]^not, in.p, in.q
		compare(w, in, m)
		holds := w.predicates[p]
		contrary := ^holds
		switch combine {
		case "and":
			holds, contrary = holds&with, contrary&with
		case "or":
			holds, contrary = holds|with, contrary|with
		case "xor":
			holds, contrary = holds^with, contrary^with
		}
		w.setPredicate(p, m, holds)
		if q != 0 {
			w.setPredicate(q, m, contrary)
		}
		return true
	}
}

func setPredicate(value uint32) execution {
	return func(w *warp, in *instruction, m uint32) bool {
		w.setPredicate(in.p, m, value)
		return true
	}
}

func combinePredicates(a, b int32, f func(a, b uint32) uint32) execution {
	return func(w *warp, in *instruction, m uint32) bool {
		if known := w.preWritten[a] & w.preWritten[b]; known&m != m {
			return w.unwritten(in, known|^m)
		}
		w.setPredicate(in.p, m, f(w.predicates[a], w.predicates[b]))
		return true
	}
}

func selecting(w *warp, in *instruction, m uint32) bool {
	if known := w.preWritten[in.p]; known&m != m {
		return w.unwritten(in, known|^m)
	}
	d, a, b, holds := &w.registers[in.d], &w.registers[in.a], &w.registers[in.b], w.predicates[in.p]
	for ; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		if holds>>i&1 != 0 {
			d[i] = a[i]
		} else {
			d[i] = b[i]
		}
	}
	return true
}

func trapping(w *warp, in *instruction, m uint32) bool {
	return w.fail(in, bits.TrailingZeros32(m), Trap, 0, "traps")
}
