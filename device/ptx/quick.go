package ptx

import (
	"math"
	"math/bits"
)

// Common instructions have a fast path for full warps. Everything else, and partly active warps, uses the generic path.

// lanes are a register's values in the lanes of a warp.
type lanes [32]uint64

// execution executes an instruction for the lanes m of a warp; false means that the warp has failed.
type execution func(w *warp, in *instruction, m uint32) bool

// quick returns the fast path of an instruction on a type if there is one, and otherwise the given execution.
func quick(key string, t typ, otherwise execution) execution {
	if t.size < 4 {
		return otherwise
	}
	if test := comparing[key+t.String()]; test != nil {
		return func(w *warp, in *instruction, m uint32) bool {
			if m != everyLane {
				return otherwise(w, in, m)
			}
			w.predicates[in.p] = test(&w.registers[in.a], &w.registers[in.b])
			w.preWritten[in.p] = everyLane
			return true
		}
	}
	loop := loops[key+t.String()]
	if loop == nil {
		return otherwise
	}
	return func(w *warp, in *instruction, m uint32) bool {
		if m != everyLane {
			return otherwise(w, in, m)
		}
		loop(&w.registers[in.d], &w.registers[in.a], &w.registers[in.b], &w.registers[in.c])
		return true
	}
}

// loops has what instructions compute, by mnemonic and type.
var loops = map[string]func(d, a, b, c *lanes){
	"add.u32": add32, "add.s32": add32, "add.u64": add64, "add.s64": add64,
	"sub.u32": sub32, "sub.s32": sub32, "sub.u64": sub64, "sub.s64": sub64,
	"mul.lo.u32": mul32, "mul.lo.s32": mul32, "mul.lo.u64": mul64, "mul.lo.s64": mul64,
	"mad.lo.u32": mad32, "mad.lo.s32": mad32, "mad.lo.u64": mad64, "mad.lo.s64": mad64,
	"and.b32": and64, "and.b64": and64, "or.b32": or64, "or.b64": or64, "xor.b32": xor64, "xor.b64": xor64,
	"mul.wide.u32": mul64,
	"mul.wide.s32": func(d, a, b, _ *lanes) {
		for i := range d {
			d[i] = uint64(int64(int32(a[i])) * int64(int32(b[i])))
		}
	},
	"mad.wide.u32": mad64,
	"mad.wide.s32": func(d, a, b, c *lanes) {
		for i := range d {
			d[i] = uint64(int64(int32(a[i]))*int64(int32(b[i]))) + c[i]
		}
	},
	"mul.hi.u64": func(d, a, b, _ *lanes) {
		for i := range d {
			d[i], _ = bits.Mul64(a[i], b[i])
		}
	},
	"shl.b32": func(d, a, b, _ *lanes) {
		for i := range d {
			d[i] = uint64(uint32(a[i]) << b[i])
		}
	},
	"shl.b64": func(d, a, b, _ *lanes) {
		for i := range d {
			d[i] = a[i] << b[i]
		}
	},
	"shr.u32": shr64, "shr.b32": shr64, "shr.u64": shr64, "shr.b64": shr64,
	"cvt..u64.u32": keep, "cvt..s64.u32": keep, // the type at the end is that of the operand
	"cvt..u32.u64": cut, "cvt..s32.u64": cut,
	"cvt..s64.s32": func(d, a, _, _ *lanes) {
		for i := range d {
			d[i] = uint64(int64(int32(a[i])))
		}
	},
	"add.rn.f32": func(d, a, b, _ *lanes) {
		for i := range d {
			d[i] = fromF32(toF32(a[i]) + toF32(b[i]))
		}
	},
	"sub.rn.f32": func(d, a, b, _ *lanes) {
		for i := range d {
			d[i] = fromF32(toF32(a[i]) - toF32(b[i]))
		}
	},
	"mul.rn.f32": func(d, a, b, _ *lanes) {
		for i := range d {
			d[i] = fromF32(toF32(a[i]) * toF32(b[i]))
		}
	},
	"fma.rn.f32": func(d, a, b, c *lanes) {
		for i := range d {
			// as in fma32, but for what is rare
			sum := float64(toF32(a[i]))*float64(toF32(b[i])) + float64(toF32(c[i]))
			if s := math.Float64bits(sum); s&(1<<29-1) != 1<<28 && s<<1-897<<53 < (0x7ff-897)<<53 {
				d[i] = fromF32(float32(sum))
			} else {
				d[i] = fromF32(fma32(toF32(a[i]), toF32(b[i]), toF32(c[i])))
			}
		}
	},
	"add.rn.f64": func(d, a, b, _ *lanes) {
		for i := range d {
			d[i] = fromF64(toF64(a[i]) + toF64(b[i]))
		}
	},
	"mul.rn.f64": func(d, a, b, _ *lanes) {
		for i := range d {
			d[i] = fromF64(toF64(a[i]) * toF64(b[i]))
		}
	},
}

func add32(d, a, b, _ *lanes) {
	for i := range d {
		d[i] = uint64(uint32(a[i] + b[i]))
	}
}

func add64(d, a, b, _ *lanes) {
	for i := range d {
		d[i] = a[i] + b[i]
	}
}

func sub32(d, a, b, _ *lanes) {
	for i := range d {
		d[i] = uint64(uint32(a[i] - b[i]))
	}
}

func sub64(d, a, b, _ *lanes) {
	for i := range d {
		d[i] = a[i] - b[i]
	}
}

func mul32(d, a, b, _ *lanes) {
	for i := range d {
		d[i] = uint64(uint32(a[i] * b[i]))
	}
}

func mul64(d, a, b, _ *lanes) {
	for i := range d {
		d[i] = a[i] * b[i]
	}
}

func mad32(d, a, b, c *lanes) {
	for i := range d {
		d[i] = uint64(uint32(a[i]*b[i] + c[i]))
	}
}

func mad64(d, a, b, c *lanes) {
	for i := range d {
		d[i] = a[i]*b[i] + c[i]
	}
}

func and64(d, a, b, _ *lanes) {
	for i := range d {
		d[i] = a[i] & b[i]
	}
}

func or64(d, a, b, _ *lanes) {
	for i := range d {
		d[i] = a[i] | b[i]
	}
}

func xor64(d, a, b, _ *lanes) {
	for i := range d {
		d[i] = a[i] ^ b[i]
	}
}

func shr64(d, a, b, _ *lanes) {
	for i := range d {
		d[i] = a[i] >> b[i]
	}
}

func keep(d, a, _, _ *lanes) { *d = *a }

func cut(d, a, _, _ *lanes) {
	for i := range d {
		d[i] = uint64(uint32(a[i]))
	}
}

// comparing has the lanes for which setp holds, by mnemonic and type.
var comparing = map[string]func(a, b *lanes) uint32{
	"setp.eq.u32": equal, "setp.eq.s32": equal, "setp.eq.b32": equal,
	"setp.eq.u64": equal, "setp.eq.s64": equal, "setp.eq.b64": equal,
	"setp.ne.u32": unequal, "setp.ne.s32": unequal, "setp.ne.b32": unequal,
	"setp.ne.u64": unequal, "setp.ne.s64": unequal, "setp.ne.b64": unequal,
	"setp.lt.u32": lanesBelow, "setp.lt.u64": lanesBelow,
	"setp.gt.u32": func(a, b *lanes) uint32 { return lanesBelow(b, a) },
	"setp.gt.u64": func(a, b *lanes) uint32 { return lanesBelow(b, a) },
	"setp.ge.u32": func(a, b *lanes) uint32 { return ^lanesBelow(a, b) },
	"setp.ge.u64": func(a, b *lanes) uint32 { return ^lanesBelow(a, b) },
	"setp.lt.s32": below32, "setp.lt.s64": below64,
	"setp.gt.s32": func(a, b *lanes) uint32 { return below32(b, a) },
	"setp.gt.s64": func(a, b *lanes) uint32 { return below64(b, a) },
	"setp.ge.s32": func(a, b *lanes) uint32 { return ^below32(a, b) },
	"setp.ge.s64": func(a, b *lanes) uint32 { return ^below64(a, b) },
}

func equal(a, b *lanes) (holds uint32) {
	for i := range a {
		if a[i] == b[i] {
			holds |= 1 << i
		}
	}
	return holds
}

func unequal(a, b *lanes) uint32 { return ^equal(a, b) }

func lanesBelow(a, b *lanes) (holds uint32) {
	for i := range a {
		if a[i] < b[i] {
			holds |= 1 << i
		}
	}
	return holds
}

func below32(a, b *lanes) (holds uint32) {
	for i := range a {
		if int32(a[i]) < int32(b[i]) {
			holds |= 1 << i
		}
	}
	return holds
}

func below64(a, b *lanes) (holds uint32) {
	for i := range a {
		if int64(a[i]) < int64(b[i]) {
			holds |= 1 << i
		}
	}
	return holds
}

// stretch is a range of memory that a whole warp accesses, each lane what follows that of the lane before.
type stretch struct {
	region *region
	offset uint64
	cells  []cell
}

// stretch returns what the instruction accesses, if it is a stretch that at finds nothing wrong with, in one page.
func (w *warp) stretch(in *instruction, addresses *lanes, size uint64) (s stretch, ok bool) {
	r := w.r.cached[in.index]
	if r == nil || r.constant || size < 4 {
		return s, false
	}
	first := addresses[0]
	for i, address := range addresses {
		if address-first != uint64(i)*size {
			return s, false
		}
	}
	first += in.mem.offset
	s.region, s.offset = r, first-r.begin
	all, length := 32*size, uint64(len(r.bytes))
	if first&(size-1) != 0 || s.offset >= length || length-s.offset < all || s.offset%pageBytes > pageBytes-all {
		return s, false
	}
	p := r.pages[s.offset/pageBytes]
	if p == nil {
		p = w.r.s.page()
		r.pages[s.offset/pageBytes] = p
	}
	if p.shift != wordPage {
		return s, false
	}
	s.cells = p.cells[s.offset%pageBytes>>wordPage:][:all>>wordPage]
	return s, true
}

// load marks that the warp reads the stretch, and returns its bytes; nil if that is a fault, which readable names.
func (s *stretch) load(w *warp, in *instruction, size uint64) []byte {
	all := 32 * size
	for o := s.offset; o < s.offset+all; {
		n := min(64-o&63, s.offset+all-o)
		want := ^uint64(0) >> (64 - n) << (o & 63)
		if s.region.written[o>>6]&want != want {
			return nil
		}
		o += n
	}
	now := w.r.s.now | uint64(w.number*32)
	since, perLane := s.region.since, size>>wordPage
	for i := range s.cells {
		c := &s.cells[i]
		if c.write < since && c.read < since {
			c.read = now | uint64(i)/perLane
			continue
		}
		if in.mem.readOnly && c.write >= since || w.reads(c, s.region, uint64(w.number*32)|uint64(i)/perLane, 0) != 0 {
			return nil
		}
	}
	return s.region.bytes[s.offset : s.offset+all]
}

// store marks that the warp writes the stretch, and returns its bytes; nil if that is a race, which writable names.
func (s *stretch) store(w *warp, size uint64) []byte {
	all := 32 * size
	now := w.r.s.now | uint64(w.number*32)
	since, perLane := s.region.since, size>>wordPage
	for i := range s.cells {
		c := &s.cells[i]
		if c.write < since && c.read < since {
			c.write = now | uint64(i)/perLane
			continue
		}
		if w.writes(c, s.region, uint64(w.number*32)|uint64(i)/perLane, 0) != 0 {
			return nil
		}
	}
	for o := s.offset; o < s.offset+all; {
		n := min(64-o&63, s.offset+all-o)
		s.region.written[o>>6] |= ^uint64(0) >> (64 - n) << (o & 63)
		o += n
	}
	return s.region.bytes[s.offset : s.offset+all]
}
