package ptx

import (
	"fmt"
)

// mov decodes moves between registers, of numbers, special registers, addresses, and to and from the parts of a
// register.
func (f *frame) mov(s *statement, in instruction) error {
	key, t, err := s.form()
	if err != nil || key != "mov" {
		return unknown(s)
	}
	if err := s.count(2, 2); err != nil {
		return err
	}
	if t.class == predicate {
		return f.predicateLogic(key, s, in)
	}
	if t.size < 2 {
		return unknown(s)
	}
	to, from := s.operands[0], s.operands[1]
	if to.kind == vector || from.kind == vector {
		return f.movParts(s, in, t)
	}
	if in.d, _, err = f.target(s, to, t, false); err != nil {
		return err
	}
	in.exec = moving
	if from.kind == named && !from.not && from.second == "" {
		if v := s.scope.variable(from.name); v != nil {
			if t.size != 8 || t.class == float {
				return errorAt(s.line, "an address has 64 bits: %q", s.text)
			}
			in.a = f.number(f.located(v).address + from.value)
			if v.space == param {
				return errorAt(s.line, "the address of a parameter is not supported: %q", s.text)
			}
			f.emit(in, s)
			return nil
		}
		if size, ok := specialSizes[from.name]; ok && from.value == 0 {
			if t.size != size || t.class == float {
				return errorAt(s.line, "%s has %d bytes: %q", from.name, size, s.text)
			}
			at, ok := f.names[from.name]
			if !ok {
				at = f.slot()
				f.names[from.name] = at
				f.k.specials = append(f.k.specials, special{at, from.name})
			}
			in.a = at
			f.emit(in, s)
			return nil
		}
	}
	if in.a, err = f.source(s, from, t, false); err != nil {
		return err
	}
	f.emit(in, s)
	return nil
}

// movParts decodes mov.b64 {a, b}, c and mov.b64 c, {a, b}.
func (f *frame) movParts(s *statement, in instruction, t typ) error {
	whole, parts := s.operands[0], s.operands[1]
	unpack := whole.kind == vector
	if unpack {
		whole, parts = parts, whole
	}
	n := len(parts.elements)
	if t.class != untyped || parts.kind != vector || n != 2 && n != 4 || int(t.size)/n < 2 {
		return unknown(s)
	}
	part := typ{untyped, t.size / uint8(n)}
	var err error
	if unpack {
		in.a, err = f.source(s, whole, t, false)
	} else {
		in.d, _, err = f.target(s, whole, t, false)
	}
	for _, o := range parts.elements {
		var at int32
		if err != nil {
			break
		}
		if unpack {
			at, _, err = f.target(s, o, part, false)
		} else {
			at, err = f.source(s, o, part, false)
		}
		in.more = append(in.more, at)
	}
	in.exec = packing(part)
	if unpack {
		in.exec = unpacking(part)
	}
	f.emit(in, s)
	return err
}

// cvt decodes cvt{.mode}{.sat}.to.from d, a.
func (f *frame) cvt(s *statement, in instruction) error {
	if len(s.op) < 3 || len(s.operands) != 2 {
		return unknown(s)
	}
	last := len(s.op) - 1
	from, ok := typeNames[s.op[last]]
	to, also := typeNames[s.op[last-1]]
	mods := s.op[1 : last-1]
	mode, saturate := "", false
	if len(mods) > 0 && mods[0] != "sat" {
		mode, mods = mods[0], mods[1:]
	}
	if len(mods) > 0 && mods[0] == "sat" {
		saturate, mods = true, mods[1:]
	}
	if !ok || !also || len(mods) > 0 {
		return unknown(s)
	}
	f1 := conversion(to, from, mode, saturate)
	if f1 == nil {
		return unknown(s)
	}
	var err error
	var wide typ
	if in.d, wide, err = f.target(s, s.operands[0], to, true); err != nil {
		return err
	}
	if in.a, err = f.source(s, s.operands[1], from, true); err != nil {
		return err
	}
	in.f1 = func(a uint64) uint64 { return f1(a & from.mask()) }
	in.exec = quick(fmt.Sprintf("cvt.%s.%s", mode, s.op[last-1]), from, exec1)
	if wide.size > to.size {
		in.f1 = func(a uint64) uint64 { return to.extend(f1(a&from.mask())) & wide.mask() }
		in.exec = exec1
	}
	f.emit(in, s)
	return nil
}

// cvta decodes cvta{.to}.space.u64 d, a, which changes no address here.
func (f *frame) cvta(s *statement, in instruction) error {
	mods := s.op[1:]
	if len(mods) > 0 && mods[0] == "to" {
		mods = mods[1:]
	}
	if len(mods) != 2 || spaceNames[mods[0]] == generic || mods[0] == "param" || mods[1] != "u64" {
		return unknown(s)
	}
	in.exec = moving
	t := typ{unsigned, 8}
	if err := s.count(2, 2); err != nil {
		return err
	}
	if v := s.scope.variable(s.operands[1].name); v != nil && s.operands[1].kind == named && v.space != param {
		var err error
		in.d, _, err = f.target(s, s.operands[0], t, false)
		in.a = f.number(f.located(v).address + s.operands[1].value)
		f.emit(in, s)
		return err
	}
	err := f.operands(s, &in, t, t)
	f.emit(in, s)
	return err
}
